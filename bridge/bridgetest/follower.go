package bridgetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// Reset is one time that a Follower lost its place.
type Reset struct {
	Reason codec.ResetReason
	At     codec.Position // where it went on
	Length int            // of the log when it happened
}

// Follower keeps a log of one topic by the rules of package bridge. Between two
// resets the log is consecutive, whatever the way does to arrivals. It is closed
// before its broker: until then it repeats reads that are unavailable.
type Follower struct {
	// immutable
	broker bridge.Broker
	topic  codec.Topic

	mu sync.Mutex
	// guarded by mu
	position codec.Position // the log reaches to it
	placed   bool           // position counts: it was given, or Subscribed has come
	behind   bool           // something above position is known
	reading  bool           // a read is out; at most one
	closed   bool
	log      []*codec.Event
	passing  []*codec.Event // arrivals that were not buffered
	resets   []Reset
	err      error
	changed  chan struct{} // closed and replaced at every change
}

var _ bridge.Sink = (*Follower)(nil)

// Follow begins at the head as of the subscription.
func Follow(b bridge.Broker, topic codec.Topic) *Follower {
	f := &Follower{broker: b, topic: topic, changed: make(chan struct{})}
	b.Subscribe(topic, f)
	return f
}

// FollowFrom begins after since.
func FollowFrom(b bridge.Broker, topic codec.Topic, since codec.Position) *Follower {
	f := &Follower{broker: b, topic: topic, changed: make(chan struct{}), position: since, placed: true}
	b.Subscribe(topic, f)
	return f
}

// Subscribed implements bridge.Sink.
func (f *Follower) Subscribed(head codec.Position, err *codec.Error) {
	f.step(func() {
		switch {
		case err != nil:
			f.fail(err)
		case !f.placed:
			f.position, f.placed = head, true
		case f.position != head:
			f.behind = true
		}
	})
}

// Arrived implements bridge.Sink.
func (f *Follower) Arrived(b bridge.Batch) {
	f.step(func() {
		for _, e := range b.Events {
			switch p := e.Position; {
			case p.IsZero():
				f.passing = append(f.passing, e)
			case !f.placed:
				f.fail(fmt.Errorf("bridgetest: arrival %v before Subscribed", p))
			case p.Epoch == f.position.Epoch:
				f.take(e)
			case b.Previous.Epoch == f.position.Epoch && f.position.Offset <= b.Previous.Offset:
				f.position.Epoch = p.Epoch
				f.take(e)
			default:
				f.behind = true
			}
		}
	})
}

// Gap implements bridge.Sink.
func (f *Follower) Gap(head codec.Position) {
	f.step(func() {
		if head.Epoch != f.position.Epoch || head.Offset > f.position.Offset {
			f.behind = true
		}
	})
}

// take is the rule of one epoch: the next is delivered, a lower one dropped, a
// higher one tells that there is something to read.
func (f *Follower) take(e *codec.Event) {
	switch {
	case e.Position.Offset == f.position.Offset+1:
		f.position = e.Position
		f.log = append(f.log, e)
	case e.Position.Offset > f.position.Offset:
		f.behind = true
	}
}

// page takes the answer of a read from since.
func (f *Follower) page(since codec.Position, page bridge.Page, err *codec.Error) {
	f.step(func() {
		f.reading = false
		switch {
		case err != nil && err.Code.Retryable():
			time.AfterFunc(time.Millisecond, func() { f.step(func() { f.behind = true }) })
		case err != nil:
			f.fail(err)
		case page.Reset != codec.ResetNone && f.position != since:
			f.behind = true // it answers a place that arrivals have left meanwhile
		case page.Reset != codec.ResetNone:
			f.position = page.Head
			f.resets = append(f.resets, Reset{page.Reset, page.Head, len(f.log)})
		default:
			for _, e := range page.Events {
				if e.Position.Offset > f.position.Offset+1 {
					f.fail(fmt.Errorf("bridgetest: page from %v has a hole before %v", since, e.Position))
					return
				}
				f.take(e)
			}
			if page.More {
				f.behind = true
			} else if f.position.Epoch == since.Epoch && f.position.Offset == page.Head.Offset {
				f.position.Epoch = page.Head.Epoch
			}
		}
	})
}

func (f *Follower) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// step changes state under the lock, then reads if there is something to read.
func (f *Follower) step(change func()) {
	f.mu.Lock()
	if f.closed || f.err != nil {
		f.mu.Unlock()
		return
	}
	change()
	close(f.changed)
	f.changed = make(chan struct{})
	read := f.behind && !f.reading && f.err == nil
	if read {
		f.behind, f.reading = false, true
	}
	since := f.position
	f.mu.Unlock()
	if read {
		f.broker.Read(f.topic, bridge.ReadRequest{Since: since, HasSince: true, Limit: 100},
			func(p bridge.Page, err *codec.Error) { f.page(since, p, err) })
	}
}

// Log is what it has, in order.
func (f *Follower) Log() []*codec.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// Passing are the arrivals that were not buffered.
func (f *Follower) Passing() []*codec.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.passing)
}

// Resets are the times that it lost its place.
func (f *Follower) Resets() []Reset {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.resets)
}

// Position is how far it is; zero until it is subscribed.
func (f *Follower) Position() codec.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position
}

// Until waits for a condition that is looked at, under the lock, at every change.
func (f *Follower) Until(ctx context.Context, met func(position codec.Position, resets int) bool) error {
	for {
		f.mu.Lock()
		ok, err, changed := f.placed && met(f.position, len(f.resets)), f.err, f.changed
		f.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("bridgetest: follower at %v: %w", f.Position(), ctx.Err())
		}
	}
}

// Close unsubscribes. What still comes is ignored.
func (f *Follower) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.broker.Unsubscribe(f.topic, f)
}
