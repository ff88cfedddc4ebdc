package room

import (
	"errors"
	"log/slog"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

// Context is what a handler may do in the room. It is valid during the callback
// that it was given to, on its goroutine; its methods panic afterwards.
type Context struct {
	room     *Room
	applying bool
}

var (
	// ErrUnknownEvent: the kind declares no event of that name.
	ErrUnknownEvent = errors.New("room: the kind has no such event")
	// ErrBuffered: a buffered event is for all members, with one offset.
	ErrBuffered = errors.New("room: a buffered event cannot be sent to one member")
	// ErrNotMember: the session has left.
	ErrNotMember = errors.New("room: no such member")
	// ErrApplying: Apply runs on every node, so what it broadcast would come
	// once for each of them.
	ErrApplying = errors.New("room: Apply cannot broadcast")
	// ErrTooLarge: the event's data is larger than that of a client's may be.
	ErrTooLarge = errors.New("room: data larger than a message may be")
	// ErrFull: too much is on its way to the broker already.
	ErrFull = errors.New("room: too many publishes under way")
)

// enter is the room, whose shell is the handler's until the returned function is
// called: it cannot be taken over in between, so nothing in between may wait or
// run code that is not ours.
func (c *Context) enter() (*Room, func()) {
	r := c.room
	if r == nil {
		panic("room: Context used after its callback")
	}
	r.handler.mu.Lock()
	if r.handler.inside == abandoned {
		r.handler.mu.Unlock()
		panic(errAbandoned)
	}
	return r, r.handler.mu.Unlock
}

// Tenant of the room.
func (c *Context) Tenant() string {
	r, leave := c.enter()
	defer leave()
	return r.cfg.Topic.Tenant
}

// Room is its name.
func (c *Context) Room() string {
	r, leave := c.enter()
	defer leave()
	return r.cfg.Topic.Room
}

// Position of the newest event that was given to the members.
func (c *Context) Position() codec.Position {
	r, leave := c.enter()
	defer leave()
	return r.seq.pos
}

// Log is the engine's log, with the tenant and the kind of the room. What clients
// sent does not belong in it.
func (c *Context) Log() *slog.Logger {
	r, leave := c.enter()
	leave() // the log may be the program's own code
	return r.cfg.Logger.With("tenant", r.cfg.Topic.Tenant, "room_kind", r.cfg.Policy.Name)
}

// Members are those who are in the room, on this node, in no order.
func (c *Context) Members() []Member {
	r, leave := c.enter()
	defer leave()
	list := make([]Member, 0, r.members.count)
	for _, m := range r.members.list {
		if m != nil {
			list = append(list, m.info)
		}
	}
	return list
}

// Broadcast publishes an event to all members, as the server, under the policy
// that the kind declares for it. The handler's own Publish is not asked.
func (c *Context) Broadcast(event string, data any) error {
	d, err := codec.NewData(data) // may run the program's own code
	r, leave := c.enter()
	defer leave()
	if c.applying {
		return ErrApplying
	}
	policy := r.cfg.Policy.Event(event)
	switch {
	case policy == nil || !codec.ValidEvent(event):
		return ErrUnknownEvent
	case err != nil:
		return err
	case d.Len() > r.cfg.MaxEvent:
		return ErrTooLarge
	case r.full():
		return ErrFull
	}
	r.sequence(&message.Publish{
		By: nobody{}, Topic: r.cfg.Topic, Event: event, Policy: policy, Data: d, Key: r.cfg.Keys.Key(policy, event, "", "", d),
	})
	return nil
}

// Send gives an event to one session only. It must not be a buffered one.
func (c *Context) Send(session, event string, data any) error {
	d, err := codec.NewData(data) // may run the program's own code
	r, leave := c.enter()
	defer leave()
	policy := r.cfg.Policy.Event(event)
	switch {
	case policy == nil || !codec.ValidEvent(event):
		return ErrUnknownEvent
	case policy.Buffered():
		return ErrBuffered
	case err != nil:
		return err
	case d.Len() > r.cfg.MaxEvent:
		return ErrTooLarge
	}
	m := r.members.of(session)
	if m == nil {
		return ErrNotMember
	}
	e := codec.NewEvent(r.cfg.Topic, event, d, codec.Origin{EID: r.cfg.EID(), TS: time.Now().UnixMilli(), Secret: policy.Secret})
	to := []mailbox.Delivery{r.delivery(e, policy, r.cfg.Keys.Key(policy, event, "", "", d), 0)}
	m.Out.Deliver(r.turn, r.mb.Flow(), m.Seat, mailbox.Run{Events: to}, false)
	return nil
}

// Kick ends the membership of one session: its client is told left: kicked, behind
// what was sent to it before in the lane of the kind's buffered events, and may join
// again if it is let in. The handler's Leave is called when the callback has returned.
func (c *Context) Kick(session string) error {
	r, leave := c.enter()
	defer leave()
	m := r.members.of(session)
	if m == nil {
		return ErrNotMember
	}
	if !m.kicked {
		m.kicked = true
		r.kicked = append(r.kicked, m)
	}
	return nil
}
