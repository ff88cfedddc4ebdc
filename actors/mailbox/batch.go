package mailbox

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

// Batch is what an actor receives: its messages of one turn, taken one by one.
// What it has not taken is still queued in its place, so a panic, a pause or a
// stop in the middle loses and reorders nothing.
//
// A Batch is valid during the Receive that it was given to, on that goroutine.
type Batch struct {
	// immutable
	m *Mailbox

	// owned by the worker that runs the task
	turn    *scheduler.Turn
	current any // the message in hand, blamed for a panic
	single  any // taken from a lane, to be delivered alone
	taken   int32
	bytes   int32
	signals int32
}

// checkEvery is how many messages pass between two looks at the clock.
const checkEvery = 8

// signalShare is how many signals of a batch may pass while lanes wait, so that
// members who raise theirs without end starve no lane.
const signalShare = scheduler.BatchMessages / 2

// Turn is the worker's turn, for posting and waking in bulk.
func (b *Batch) Turn() *scheduler.Turn { return b.turn }

// Next is the next message, and false when the batch is over: nothing is left,
// its bounds are reached, or the mailbox was paused, suspended or closed
// meanwhile. A signal comes as *Raised. Expired messages do not show up.
func (b *Batch) Next() (msg any, ok bool) {
	m := b.m
	b.current = nil
	for b.taken < scheduler.BatchMessages && b.bytes < scheduler.BatchBytes {
		if b.taken%checkEvery == checkEvery-1 && b.turn.Overdue() {
			return nil, false
		}
		m.mu.Lock()
		msg, why := b.take()
		m.mu.Unlock()
		switch why {
		case nothing:
			return nil, false
		case message:
			b.current = msg
			return msg, true
		case expired:
			m.drop(msg, backpressure.Expired)
		}
	}
	return nil, false
}

// verdict is what take found.
type verdict uint8

const (
	nothing verdict = iota // or nothing that may be handed out now
	message
	expired
)

// take removes the next message from its queue. Under mu.
func (b *Batch) take() (any, verdict) {
	m := b.m
	if m.state.has(suspended | closed) {
		return nil, nothing
	}
	ready := b.ready()
	if ready == 0 || b.signals < signalShare {
		if s := m.signals.pop(); s != nil {
			b.signals++
			b.taken++
			return &s.raised, message
		}
	}
	l, ok := m.picker.Pick(ready)
	if !ok {
		return nil, nothing
	}
	e, o := m.pop(l, b.turn.Now())
	b.taken++
	b.bytes += int32(e.Size)
	if o == backpressure.Expired {
		return bare(e.Item), expired
	}
	if f, ok := e.Item.(*foreign); ok {
		b.single = f.msg
		m.queued++ // it still waits
		return nil, nothing
	}
	return e.Item, message
}

// ready are the lanes that may be served in this turn. Under mu.
func (b *Batch) ready() backpressure.Ready {
	switch {
	case b.m.state.has(paused):
		return 0
	case b.turn.Control:
		return b.m.ready & (1 << backpressure.Control)
	case b.single != nil:
		return 0 // it comes first
	}
	return b.m.ready
}

// run hands the actor a batch, and after it what has to be delivered alone.
// False: the actor panicked.
func (b *Batch) run(t *scheduler.Turn) bool {
	b.turn, b.taken, b.bytes, b.signals = t, 0, 0, 0
	ok := b.m.guard(b.deliver) && b.m.guard(b.deliverSingle)
	t.Spend(int(b.taken), int(b.bytes))
	b.turn, b.current = nil, nil
	return ok
}

func (b *Batch) deliver() { b.m.invoker.InvokeUserMessage(b) }

// deliverSingle delivers the message that was taken out of the batch, if the
// batch has left the mailbox open for it. When nothing is left of a poisoned
// mailbox, that message is the pill.
func (b *Batch) deliverSingle() {
	m := b.m
	m.mu.Lock()
	if b.turn.Control || m.state.has(suspended|closed|paused) {
		m.mu.Unlock()
		return
	}
	switch {
	case b.single != nil:
		b.current, b.single = b.single, nil
		m.queued--
	case m.state.has(poisoned) && m.queued == 0 && !m.signals.waiting():
		b.current = &actor.PoisonPill{}
	default:
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	m.invoker.InvokeUserMessage(b.current)
}
