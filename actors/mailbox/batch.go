package mailbox

import (
	"sync/atomic"

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
	q       *lanes // as of the last refill: where the claims are; nil outside a batch
	current any    // the message in hand, blamed for a panic
	single  any    // taken from a lane, to be delivered alone
	taken   int32
	bytes   int32
	signals int32
	alone   bool // something may have to be delivered alone

	halted atomic.Bool // paused, suspended or closed since the batch began
}

// checkEvery is how many messages pass between two looks at the clock.
const checkEvery = 16

// signalShare is how many signals of a batch may pass while lanes wait, so that
// members who raise theirs without end starve no lane.
const signalShare = scheduler.BatchMessages / 2

// Turn is the worker's turn, for posting and waking in bulk.
func (b *Batch) Turn() *scheduler.Turn { return b.turn }

// Next is the next message, and false when the batch is over: nothing is left,
// its bounds are reached, or the mailbox was paused, suspended or closed
// meanwhile. A signal comes as *Raised. Expired messages do not show up.
func (b *Batch) Next() (msg any, ok bool) {
	b.current = nil
	for b.taken < scheduler.BatchMessages && b.bytes < scheduler.BatchBytes {
		if b.taken%checkEvery == checkEvery-1 && b.turn.Overdue() {
			return nil, false
		}
		if !b.claims() || b.halted.Load() {
			msg, expires := b.refill()
			switch {
			case msg != nil && !b.due(msg, expires):
				continue
			case msg != nil:
				return msg, true
			case !b.claims():
				return nil, false
			}
		}
		c := b.q.next()
		if c == nil {
			continue // abandoned, as the next refill will see
		}
		b.bytes += c.size
		msg := c.msg
		c.msg = nil
		if b.due(msg, c.expires) {
			return msg, true
		}
	}
	return nil, false
}

// due takes a message in hand, or drops it when its deadline has passed.
func (b *Batch) due(msg any, expires int64) bool {
	b.taken++
	if expires != 0 && expires <= b.turn.Now() {
		b.m.drop(msg, backpressure.Expired)
		return false
	}
	b.current = msg
	return true
}

// claims reports whether there are messages that the worker has taken out of
// the lanes for this batch and not yet handed out. On the worker.
func (b *Batch) claims() bool { return b.q != nil && b.q.at.Load() < b.q.n }

// refill gets what comes next: a signal, or the message that waits alone, or else
// claims for as many messages as the batch still may take, if there are any.
func (b *Batch) refill() (msg any, expires int64) {
	m := b.m
	m.mu.Lock()
	defer m.mu.Unlock()
	b.unclaim()
	b.q = m.q // which only the end of the run gives back
	b.alone = b.single != nil || m.state.has(poisoned)
	if m.state.has(suspended | closed) {
		return nil, 0
	}
	ready := b.ready()
	if ready == 0 || b.signals < signalShare {
		if s := m.signals.pop(); s != nil {
			b.signals++
			return &s.raised, 0
		}
	}
	if m.sole.waits && b.ready() != 0 {
		e := m.pop(m.sole.lane)
		if f, ok := e.Item.(*foreign); ok {
			b.single, b.alone = f.msg, true
			m.queued++ // it still waits
			return nil, 0
		}
		b.bytes += int32(e.Size)
		return e.Item, e.Expires
	}
	q, bytes := m.q, b.bytes
	most := uint32(min(claimMost, scheduler.BatchMessages-b.taken))
	for q != nil && q.n < most && bytes < scheduler.BatchBytes {
		l, ok := m.picker.Pick(b.ready())
		if !ok {
			break
		}
		e := q.queue[l].Front()
		if f, ok := e.Item.(*foreign); ok {
			if q.n == 0 {
				b.single, b.alone = f.msg, true
				m.took(l, e.Size)
				m.queued++ // it still waits
			}
			break
		}
		bytes += int32(e.Size)
		q.claimed[q.n] = claim{e.Item, e.Expires, int32(e.Size), l}
		q.n++
		m.took(l, e.Size)
	}
	return nil, 0
}

// unclaim returns what was not handed out to the front of the lanes, in order.
// Under mu.
func (b *Batch) unclaim() {
	q := b.m.q
	if q == nil {
		return
	}
	for first := q.at.Swap(q.n); q.n > first; {
		q.n--
		c := &q.claimed[q.n]
		b.m.unpop(c.lane, backpressure.Entry[any]{Item: c.msg, Size: int(c.size), Expires: c.expires})
		c.msg = nil
	}
	q.n = 0
	q.at.Store(0)
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
	b.halted.Store(false) // what happened before is seen by the first refill
	ok := b.m.guard(b.deliver)
	if b.claims() {
		b.m.mu.Lock()
		b.unclaim()
		b.m.mu.Unlock()
	}
	if ok && b.alone {
		ok = b.m.guard(b.deliverSingle)
	}
	t.Spend(int(b.taken), int(b.bytes))
	b.turn, b.q, b.current = nil, nil, nil
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
