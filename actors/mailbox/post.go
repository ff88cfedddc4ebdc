package mailbox

import (
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

// Post queues it in the lane and wakes the actor. It never blocks; what became
// of the message is the outcome. Callable from any goroutine.
func (m *Mailbox) Post(l backpressure.Lane, it Item) backpressure.Outcome {
	return m.post(nil, l, it, false)
}

// PostFrom is Post for an actor that is running: the wake is gathered in the
// worker's turn, which hands many to the pool under one lock.
func (m *Mailbox) PostFrom(t *scheduler.Turn, l backpressure.Lane, it Item) backpressure.Outcome {
	return m.post(t, l, it, false)
}

// PostReserved uses one reservation: neither the lane's bound nor the ledger
// refuses it, only Closed does.
func (m *Mailbox) PostReserved(l backpressure.Lane, it Item) backpressure.Outcome {
	return m.post(nil, l, it, true)
}

func (m *Mailbox) post(t *scheduler.Turn, l backpressure.Lane, it Item, reserved bool) backpressure.Outcome {
	e := backpressure.Entry[any]{Item: it.Msg, Size: it.Size, Key: it.Key, Expires: it.Expires}
	var few [2]backpressure.Entry[any]
	removed := few[:0]

	m.mu.Lock()
	if reserved {
		m.release(1)
	}
	if m.state.has(closed | poisoned) {
		m.mu.Unlock()
		return backpressure.Closed
	}
	var o backpressure.Outcome
	if reserved {
		m.force(l, e)
	} else if o, removed = m.push(l, e, it.Policy, removed); !o.Took() {
		m.mu.Unlock()
		return o
	}
	if o == backpressure.Coalesced {
		if r, ok := it.Msg.(Replacer); ok {
			r.Replaces()
		}
	}
	run := !m.state.has(paused) && m.rouse()
	control := l == backpressure.Control && m.runnable()
	m.mu.Unlock()

	for i := range removed {
		why := o
		if o == backpressure.Accepted {
			why = backpressure.Backpressured
		}
		m.drop(removed[i].Item, why)
	}
	switch {
	case control:
		m.pool.ReadyControl(&m.task)
	case run && t != nil:
		t.Wake(&m.task, nil)
	case run:
		m.pool.Ready(&m.task, nil)
	}
	return o
}

// Replacer is a message that wants to know that it took the place of another one
// that waited. It is told before its actor can see it, under the mailbox's lock.
type Replacer interface{ Replaces() }

// push offers e to the lane, and keeps the ledger and the counts. Under mu.
func (m *Mailbox) push(l backpressure.Lane, e backpressure.Entry[any], p backpressure.Policy, removed []backpressure.Entry[any]) (backpressure.Outcome, []backpressure.Entry[any]) {
	cost := int64(backpressure.EntryBytes + e.Size)
	if m.account != nil && !m.account.Charge(cost) {
		return backpressure.Backpressured, removed
	}
	if m.alone(l, e) {
		if p != backpressure.CoalesceLatest {
			e.Key = 0
		}
		m.sole = soleItem{e, l, true}
		m.queued++
		m.ready = m.ready.With(l)
		return backpressure.Accepted, removed
	}
	o, removed := m.queues().queue[l].Push(e, p, removed)
	if !o.Took() {
		m.refund(cost)
		return o, removed
	}
	for i := range removed {
		m.refund(int64(backpressure.EntryBytes + removed[i].Size))
	}
	m.queued += 1 - int32(len(removed))
	m.ready = m.ready.With(l)
	return o, removed
}

// force is push for a message that was promised its place. Under mu.
func (m *Mailbox) force(l backpressure.Lane, e backpressure.Entry[any]) {
	if m.account != nil {
		m.account.Force(int64(backpressure.EntryBytes + e.Size))
	}
	if m.alone(l, e) {
		m.sole = soleItem{e, l, true}
	} else {
		m.queues().queue[l].PushReserved(e)
	}
	m.queued++
	m.ready = m.ready.With(l)
}

// soleItem is a message that waits alone, which is the rule: it needs no queues,
// and with thousands of actors the memory that a message touches is its cost.
type soleItem struct {
	backpressure.Entry[any]
	lane  backpressure.Lane
	waits bool
}

// alone reports that a message may wait as the sole one: nothing else does, and
// its lane would take it. Under mu.
func (m *Mailbox) alone(l backpressure.Lane, e backpressure.Entry[any]) bool {
	if m.q != nil || m.queued > 0 {
		return false
	}
	items, bytes := int(m.items), int(m.bytes)
	if l == backpressure.Control {
		items, bytes = ControlItems, ControlBytes
	}
	return items > 0 && e.Size <= bytes
}

// pop takes the front of a lane that is not empty. Under mu.
func (m *Mailbox) pop(l backpressure.Lane) backpressure.Entry[any] {
	if m.sole.waits {
		e := m.sole.Entry
		m.sole = soleItem{}
		m.refund(int64(backpressure.EntryBytes + e.Size))
		m.queued--
		m.ready = 0
		return e
	}
	front := m.q.queue[l].Front()
	if front == nil {
		panic("mailbox: an empty lane is marked ready")
	}
	e := *front // deadlines are checked when it is handed out
	m.took(l, e.Size)
	return e
}

// took removes the front of a lane, of the given size, that was read in place.
// Under mu.
func (m *Mailbox) took(l backpressure.Lane, size int) {
	q := &m.q.queue[l]
	q.Drop()
	m.refund(int64(backpressure.EntryBytes + size))
	m.queued--
	if q.Len() == 0 {
		m.ready &^= 1 << l
	}
}

// unpop returns what was popped and not handed out to the front of its lane.
// Under mu.
func (m *Mailbox) unpop(l backpressure.Lane, e backpressure.Entry[any]) {
	if m.account != nil {
		m.account.Force(int64(backpressure.EntryBytes + e.Size))
	}
	m.queues().queue[l].PushFront(e)
	m.queued++
	m.ready = m.ready.With(l)
}

func (m *Mailbox) refund(n int64) {
	if m.account != nil {
		m.account.Release(n)
	}
}

// queues are the lanes, borrowed at need. Under mu.
func (m *Mailbox) queues() *lanes {
	if m.q != nil {
		return m.q
	}
	m.q = m.lend.get(int(m.items), int(m.bytes))
	if s := &m.sole; s.waits {
		m.q.queue[s.lane].PushReserved(s.Entry)
		m.sole = soleItem{}
	}
	return m.q
}

// giveBack returns borrowed lanes that are empty. Under mu, outside of a batch.
func (m *Mailbox) giveBack() {
	if m.q != nil && m.ready == 0 && m.lend != nil {
		m.lend.pool.Put(m.q)
		m.q = nil
	}
}

// Reserve grants n slots for messages that must not be refused later, such as
// the answer to a request that is being admitted. Who grants them bounds them.
// While any is outstanding the mailbox does not close itself. False: closed.
func (m *Mailbox) Reserve(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.has(closed) {
		return false
	}
	m.reserved += int32(n)
	return true
}

// Unreserve gives back n reservations that will not be used.
func (m *Mailbox) Unreserve(n int) {
	m.mu.Lock()
	m.release(n)
	m.mu.Unlock()
}

// release takes n reservations off. Under mu, which a broken invariant gives up:
// the panic is recovered further up, and the mailbox must stay usable.
func (m *Mailbox) release(n int) {
	if m.reserved < int32(n) {
		m.mu.Unlock()
		panic("mailbox: more reservations used than granted")
	}
	m.reserved -= int32(n)
}

// drop gives a message that nobody will handle to its owner. Not under mu.
func (m *Mailbox) drop(msg any, o backpressure.Outcome) {
	if m.removed != nil {
		m.removed(msg, o)
	}
}

// Pause makes the lanes wait; signals and system messages go on. Called by the
// actor, for instance while its handler waits for its restart. The message in
// hand is the batch's last.
func (m *Mailbox) Pause() {
	m.set(paused)
}

// Resume ends Pause. Callable from any goroutine.
func (m *Mailbox) Resume() {
	m.mu.Lock()
	m.state &^= paused
	run := m.rouse()
	m.mu.Unlock()
	if run {
		m.pool.Ready(&m.task, nil)
	}
}

// CloseIfIdle is called by the actor itself, which wants to end: when nothing
// is queued in any lane, no signal is raised and no reservation is outstanding
// it closes the mailbox for good, in the same step, so that no post can slip in
// between; later posts are told Closed. Otherwise it does nothing.
func (m *Mailbox) CloseIfIdle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.queued > 0 || m.batch.claims() || m.signals.waiting() || m.reserved > 0 {
		return m.state.has(closed)
	}
	m.add(closed)
	return true
}

// Depth is how many messages wait in the lane.
func (m *Mailbox) Depth(l backpressure.Lane) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.sole.waits && m.sole.lane == l:
		return 1
	case m.q == nil:
		return 0
	}
	return m.q.queue[l].Len()
}

// UserMessageCount is how many messages wait in all lanes.
func (m *Mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(m.queued)
}
