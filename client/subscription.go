package client

import (
	"context"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Join says what to join, and how.
type Join struct {
	Room string
	// Position, if not zero, is where to go on: what Subscription.Position or the
	// last Event said before.
	Position codec.Position
	// Presence asks for Presence items.
	Presence bool
	// NoEcho leaves out the events that this client publishes itself.
	NoEcho bool
	// Data is what other members see of this one, at most 1 KiB: a codec.Data, or a
	// value that encoding/json can encode; nil: none.
	Data any
}

// Subscription is this client's membership in one room, kept over lost connections:
// the room is joined anew by itself, from the position that was reached. Its items
// wait in a bounded queue for Next.
type Subscription struct {
	c     *Client
	join  codec.Join    // immutable but for its position
	ready chan struct{} // has a token while there may be something for Next

	// Guarded by c.mu.
	feed    feed
	backoff backoff    // of joins that the server refuses for a while
	retryAt time.Time  // not before; zero: at once
	joined  chan error // of the first join; nil once it is answered
	asking  *call      // the first join's request, if one was made
	over    error      // why no items follow those that wait
}

// Join joins a room and waits until the server has agreed. A room has at most one
// Subscription: ErrJoined otherwise. A refusal is an *Error.
func (c *Client) Join(ctx context.Context, j Join) (*Subscription, error) {
	s := &Subscription{
		c:     c,
		join:  codec.Join{Room: j.Room, Presence: j.Presence, NoEcho: j.NoEcho},
		ready: make(chan struct{}, 1),
		feed: feed{
			bound: c.o.Events, presence: j.Presence, taken: j.Position, given: j.Position,
		},
		joined: make(chan error, 1),
	}
	if j.Data != nil {
		data, err := dataOf(j.Data)
		if err != nil {
			return nil, err
		}
		s.join.Data = data
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answered := s.joined
	c.mu.Lock()
	s.backoff.random = c.life.backoff.random
	err := c.closing
	switch {
	case err != nil:
	case !codec.ValidRoom(j.Room):
		err = codec.NewError(codec.CodeBadRequest, "room is outside the grammar")
	case c.subs[j.Room] != nil:
		err = ErrJoined
	default:
		c.subs[j.Room] = s
		c.rejoin(s)
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case err := <-answered:
		if err != nil {
			return nil, err
		}
		return s, nil
	case <-ctx.Done():
		c.mu.Lock()
		c.part(s, func(codec.Result, error) {})
		c.mu.Unlock()
		return nil, ctx.Err()
	}
}

// Room is the room's name.
func (s *Subscription) Room() string { return s.join.Room }

// Position is where the items that Next has returned end: what to go on from later,
// in another process too.
func (s *Subscription) Position() codec.Position {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.feed.given
}

// Next returns the next item, waiting for it as long as ctx lets it. Another error
// than ctx's means that no more items come: a *LeftError, an *Error when the room
// could not be joined anew, or one that wraps ErrClosed.
func (s *Subscription) Next(ctx context.Context) (Item, error) {
	for {
		item, err := s.poll()
		if item != nil || err != nil {
			return item, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Subscription) poll() (Item, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	item, ok := s.feed.next()
	if !ok && s.over == nil {
		return nil, nil
	}
	s.wake() // for whoever waits beside this caller
	if !ok {
		return nil, s.over
	}
	if gap, isGap := item.(*Gap); isGap {
		s.c.stats.Missed += uint64(gap.Missed)
	}
	if s.over == nil {
		s.c.rejoin(s)
	}
	return item, nil
}

// wake lets one Next look.
func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Ack tells the server that everything up to p is processed, in rooms whose events
// ask for that. It does not wait; the error is ErrOffline or ErrFull, and the next
// Ack makes up for it.
func (s *Subscription) Ack(p codec.Position) error {
	return s.c.trySend(&codec.Ack{Room: s.join.Room, Position: p})
}

// Leave ends the membership; what waits in the queue is dropped, and Next returns a
// *LeftError. It waits for the server's word; when ctx ends before, the membership
// ends none the less. Leaving again is harmless.
func (s *Subscription) Leave(ctx context.Context) error {
	c := s.c
	left := make(chan answer, 1)
	c.mu.Lock()
	if s.over != nil {
		c.mu.Unlock()
		return nil
	}
	c.part(s, func(r codec.Result, err error) { left <- answer{r, err} })
	c.mu.Unlock()
	select {
	case a := <-left:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// part ends a subscription from this side, unless it is over. mu is held.
func (c *Client) part(s *Subscription, done func(codec.Result, error)) {
	if s.over != nil {
		return
	}
	unsaid := s.asking != nil && c.out.cancel(s.asking)
	s.finish(&LeftError{Room: s.join.Room})
	s.feed.items = nil
	if c.link == nil || unsaid {
		done(nil, nil) // the server knows of no membership, or will not after the next hello
		return
	}
	c.leave(s.join.Room, done)
}

// leave asks the server to end a membership. mu is held.
func (c *Client) leave(room string, done func(codec.Result, error)) {
	request := &call{request: &codec.Leave{Room: room}, lost: isForgotten, own: true, done: done}
	if err := c.add(request); err != nil {
		done(nil, err)
	}
}

// finish ends a subscription: what waits is still handed out, then err. mu is held.
func (s *Subscription) finish(err error) {
	s.over = err
	s.feed.lost()
	delete(s.c.subs, s.join.Room)
	s.settle(err)
	s.wake()
}

// settle answers whoever waits for the first join. mu is held.
func (s *Subscription) settle(err error) {
	if s.joined != nil {
		s.joined <- err
		s.joined = nil
	}
}

// request begins a join from where the subscription stands. mu is held.
func (s *Subscription) request() codec.Join {
	join := s.join
	join.Position, join.HasPosition = s.feed.ask()
	s.retryAt = time.Time{}
	return join
}

// rejoin joins the subscription's room if that is due. mu is held.
func (c *Client) rejoin(s *Subscription) {
	if c.link == nil || c.link.leaving || !s.feed.wantsJoin() || !s.retryAt.IsZero() {
		return
	}
	join := s.request()
	request := &call{request: &join, size: requestSize + join.Data.Len(), lost: isForgotten, own: s.joined == nil}
	if s.joined != nil {
		s.asking = request
	}
	request.done = func(r codec.Result, err error) {
		if r == nil && err == nil {
			return // forgotten
		}
		ok, err := result[*codec.JoinResult](r, err)
		c.joinAnswered(s, ok, err, c.received)
	}
	if err := c.add(request); err != nil {
		s.finish(err)
	}
}

// joinAnswered takes the result of a join, of a hello's too. mu is held.
func (c *Client) joinAnswered(s *Subscription, ok *codec.JoinResult, err error, size int) {
	if s.over != nil || s.feed.state != asked {
		return
	}
	if err == nil {
		s.feed.joined(ok, size)
		s.backoff.reset()
		s.settle(nil)
		s.wake()
		return
	}
	s.feed.lost()
	refusal, is := err.(*Error)
	if s.joined != nil || !is || !refusal.Code.Retryable() {
		s.finish(err)
		return
	}
	c.later(s, refusal.RetryAfter)
}

// later joins a room again after a while, spread out and growing with each try. mu
// is held.
func (c *Client) later(s *Subscription, after time.Duration) {
	s.retryAt = time.Now().Add(after + s.backoff.next())
	if c.link != nil {
		c.link.look()
	}
}
