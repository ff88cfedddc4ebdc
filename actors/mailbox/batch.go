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
// A Batch is valid during the Receive that it was given to, on that goroutine. It
// belongs to the worker, one to each, so that mailboxes need no memory for it.
type Batch struct {
	m       *Mailbox
	turn    *scheduler.Turn
	q       *lanes // as of the last refill: where the claims are
	current any    // the message in hand, blamed for a panic
	taken   int32
	bytes   int32
	signals int32
	alone   bool // something may have to be delivered alone
	asleep  bool // the last refill left nothing, and said so: the next post tells the pool
}

// batchOf is the batch of the worker that runs t.
func batchOf(t *scheduler.Turn) *Batch {
	b, ok := t.Scratch.(*Batch)
	if !ok {
		b = new(Batch)
		t.Scratch = b
	}
	return b
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
	for !b.asleep && b.taken < scheduler.BatchMessages && b.bytes < scheduler.BatchBytes {
		if b.taken%checkEvery == checkEvery-1 && b.turn.Overdue() {
			return nil, false
		}
		msg, size, expires := b.claim()
		if msg == nil {
			if msg, size, expires = b.refill(); msg == nil {
				return nil, false
			}
		}
		msg = b.m.unstamp(msg)
		b.taken++
		b.bytes += size
		if expires != 0 && expires <= b.turn.Now() {
			b.m.drop(msg, backpressure.Expired)
			continue
		}
		b.current = msg
		return msg, true
	}
	return nil, false
}

// claim is the next message that the worker has taken out of the lanes for this
// batch; nil: none, or the batch has to look at the mailbox again.
func (b *Batch) claim() (msg any, size int32, expires int64) {
	if b.q == nil || b.m.look.Load()&halted != 0 {
		return nil, 0, 0
	}
	c := b.q.next()
	if c == nil {
		return nil, 0, 0
	}
	msg, c.msg = c.msg, nil
	return msg, c.size, c.expires
}

// refill gets what comes next: a signal, or the message that waits alone, or else
// claims for as many messages as the batch still may take, and the first of them.
func (b *Batch) refill() (msg any, size int32, expires int64) {
	m := b.m
	m.mu.Lock()
	msg, size, expires = b.choose()
	m.mu.Unlock()
	if msg == nil {
		return b.claim()
	}
	return msg, size, expires
}

// choose is refill under mu.
func (b *Batch) choose() (msg any, size int32, expires int64) {
	m := b.m
	if m.q != nil {
		b.unclaim()
	}
	b.q, b.asleep, b.alone = m.q, false, m.state.has(poisoned)
	if m.state.has(suspended | closed) {
		return nil, 0, 0
	}
	ready := b.ready()
	if m.signals.last != nil && (ready == 0 || b.signals < signalShare) {
		b.signals++
		return &m.signal().raised, 0, 0
	}
	switch {
	case ready == 0:
		b.rest()
	case m.q == nil:
		if _, ok := m.sole.msg.(*foreign); ok {
			b.alone = true
			break
		}
		msg, size, expires = m.pop(m.sole.lane)
		b.rest()
	default:
		b.claimFrom(m.q)
	}
	return msg, size, expires
}

// rest puts the mailbox to sleep if nothing is left in it. It does so as soon as a
// message that waited alone is taken out: to look for another one after it would
// cost a second lock, and one that comes meanwhile wakes the task again. Under mu.
func (b *Batch) rest() {
	if b.asleep = !b.m.pending(); b.asleep {
		b.m.sleep()
		b.q = b.m.q
	}
}

// claimFrom claims what comes next in the lanes, but for what has to be delivered
// alone. Under mu.
func (b *Batch) claimFrom(q *lanes) {
	bytes := 0
	most := uint32(min(claimMost, scheduler.BatchMessages-b.taken))
	for q.n < most && int(b.bytes)+bytes < scheduler.BatchBytes {
		l, ok := b.m.picker.Pick(b.ready())
		if !ok {
			break
		}
		e := q.queue[l].Front()
		if _, ok := e.Item.(*foreign); ok {
			b.alone = b.alone || q.n == 0
			break
		}
		bytes += e.Size
		c := &q.claimed[q.n]
		c.msg, c.expires, c.size, c.lane = e.Item, e.Expires, int32(e.Size), l
		q.n++
		b.m.took(l)
	}
	if q.n > 0 {
		b.m.refund(int(q.n), bytes)
	}
}

// unclaim returns what was not handed out to the front of the lanes, in order.
// Under mu.
func (b *Batch) unclaim() {
	q := b.m.q
	if q.n == 0 {
		return
	}
	if q.claims() {
		for first := q.at.Swap(q.n); q.n > first; {
			q.n--
			b.m.unpop(&q.claimed[q.n])
			q.claimed[q.n].msg = nil
		}
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
	}
	return b.m.ready
}

// run hands the actor a batch, and after it what has to be delivered alone.
// False: the actor panicked.
func (b *Batch) run() bool {
	m := b.m
	m.unflag(halted) // what happened before is seen by the first refill
	ok := m.guard(b, b.deliver)
	if b.q != nil && b.q.claims() {
		m.mu.Lock()
		b.unclaim()
		m.mu.Unlock()
	}
	if ok && b.alone {
		ok = m.guard(b, b.deliverAlone)
	}
	b.turn.Spend(int(b.taken), int(b.bytes))
	return ok
}

func (b *Batch) deliver() { b.m.invoker.InvokeUserMessage(b) }

// deliverAlone delivers the message at which the batch stopped, if the batch has
// left the mailbox open for it. When nothing is left of a poisoned mailbox, that
// message is the pill.
func (b *Batch) deliverAlone() {
	m := b.m
	b.current = nil
	m.mu.Lock()
	if !b.turn.Control && !m.state.has(suspended|closed|paused) {
		if _, ok := m.front(foreignLane).(*foreign); ok {
			msg, _, _ := m.pop(foreignLane)
			b.current = bare(msg)
		} else if m.state.has(poisoned) && m.ready == 0 && m.signals.last == nil {
			b.current = &actor.PoisonPill{}
		}
	}
	m.mu.Unlock()
	if b.current != nil {
		m.invoker.InvokeUserMessage(b.current)
	}
}
