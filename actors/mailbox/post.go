package mailbox

import (
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

// Post queues it in the lane and wakes the actor. It never blocks; what became
// of the message is the outcome. Callable from any goroutine.
func (m *Mailbox) Post(l backpressure.Lane, it Item) backpressure.Outcome {
	return m.post(nil, l, &it)
}

// PostFrom is Post for an actor that is running: the wake is gathered in the
// worker's turn, which hands many to the pool under one lock.
func (m *Mailbox) PostFrom(t *scheduler.Turn, l backpressure.Lane, it Item) backpressure.Outcome {
	return m.post(t, l, &it)
}

func (m *Mailbox) post(t *scheduler.Turn, l backpressure.Lane, it *Item) backpressure.Outcome {
	m.mu.Lock()
	if m.state.has(closed | poisoned) {
		m.mu.Unlock()
		return backpressure.Closed
	}
	if a := m.cfg.Account; a != nil && !a.Charge(int64(backpressure.EntryBytes+it.Size)) {
		m.mu.Unlock()
		return backpressure.Backpressured
	}
	if it.Policy != backpressure.CoalesceLatest {
		it.Key = 0
	}
	m.stamp(l, it)
	switch {
	case m.alone(l, it.Size):
		// By field: a literal is made elsewhere and copied in wider words than it was
		// written in, for which the processor waits.
		s := &m.sole
		s.msg, s.key, s.expires, s.size, s.lane = it.Msg, it.Key, it.Expires, int32(it.Size), l
	case it.Policy == backpressure.CoalesceLatest || it.Policy == backpressure.DropOldest:
		return m.replace(t, l, it)
	default:
		e, o := m.queues().queue[l].Offer(it.Size)
		if e == nil {
			m.refund(1, it.Size)
			m.mu.Unlock()
			return o
		}
		e.Item, e.Expires = it.Msg, it.Expires
	}
	m.announce(t, l)
	return backpressure.Accepted
}

// replace is post for a message that others may have to make place for. It has
// been booked. Under mu, which it gives up.
func (m *Mailbox) replace(t *scheduler.Turn, l backpressure.Lane, it *Item) backpressure.Outcome {
	var few [2]backpressure.Entry[any]
	o, removed := m.queues().queue[l].Push(it.entry(), it.Policy, few[:0])
	if !o.Took() {
		m.refund(1, it.Size)
		m.mu.Unlock()
		return o
	}
	for i := range removed {
		m.refund(1, removed[i].Size)
	}
	why := backpressure.Backpressured
	if o == backpressure.Coalesced {
		why = o
		if r, ok := bare(it.Msg).(Replacer); ok {
			r.Replaces()
		}
	}
	m.announce(t, l)
	for i := range removed {
		m.drop(removed[i].Item, why)
	}
	return o
}

// Replacer is a message that wants to know that it took the place of another one
// that waited. It is told before its actor can see it, under the mailbox's lock.
type Replacer interface{ Replaces() }

// announce is the end of a post: the lane is ready, and the pool hears of it. Under
// mu, which it gives up.
func (m *Mailbox) announce(t *scheduler.Turn, l backpressure.Lane) {
	m.ready = m.ready.With(l)
	m.flag(filled)
	run := !m.state.has(paused) && m.rouse()
	control := l == backpressure.Control && m.runnable()
	m.mu.Unlock()
	switch {
	case control:
		m.cfg.Pool.ReadyControl(&m.task)
	case run && t != nil:
		t.Wake(&m.task, nil)
	case run:
		m.cfg.Pool.Ready(&m.task, nil)
	}
}

func (it *Item) entry() backpressure.Entry[any] {
	return backpressure.Entry[any]{Item: it.Msg, Size: it.Size, Key: it.Key, Expires: it.Expires}
}

// soleItem is a message that waits alone, which is the rule: it needs no queues,
// and with thousands of actors the memory that a message touches is its cost.
type soleItem struct {
	msg     any
	key     uint64
	expires int64
	size    int32
	lane    backpressure.Lane
}

func (s *soleItem) entry() backpressure.Entry[any] {
	return backpressure.Entry[any]{Item: s.msg, Size: int(s.size), Key: s.key, Expires: s.expires}
}

// alone reports that a message of that size may wait as the sole one: nothing else
// does, and its lane would take it. Under mu.
func (m *Mailbox) alone(l backpressure.Lane, size int) bool {
	if m.q != nil || m.ready != 0 {
		return false
	}
	items, bytes := m.cfg.Items, m.cfg.Bytes
	if l == backpressure.Control {
		items, bytes = ControlItems, ControlBytes
	}
	return items > 0 && size <= bytes
}

// front is the message that comes next in a lane; nil: none. Under mu.
func (m *Mailbox) front(l backpressure.Lane) any {
	switch {
	case !m.ready.Has(l):
		return nil
	case m.q == nil:
		return m.sole.msg
	}
	return m.q.queue[l].Front().Item
}

// pop takes the front of a lane that is not empty. Deadlines are looked at when it
// is handed out. Under mu.
func (m *Mailbox) pop(l backpressure.Lane) (msg any, size int32, expires int64) {
	if m.q == nil {
		s := &m.sole
		msg, size, expires = s.msg, s.size, s.expires
		s.msg = nil
		m.refund(1, int(size))
		m.ready = 0
		return msg, size, expires
	}
	e := m.q.queue[l].Front()
	msg, size, expires = e.Item, int32(e.Size), e.Expires
	m.took(l)
	m.refund(1, int(size))
	return msg, size, expires
}

// took removes the front of a lane, which was read in place. Under mu.
func (m *Mailbox) took(l backpressure.Lane) {
	q := &m.q.queue[l]
	q.Drop()
	if q.Len() == 0 {
		m.ready &^= 1 << l
	}
}

// unpop returns a claim that was not handed out to the front of its lane. Under mu.
func (m *Mailbox) unpop(c *claim) {
	if a := m.cfg.Account; a != nil {
		a.Force(int64(backpressure.EntryBytes + c.size))
	}
	m.q.queue[c.lane].PushFront(backpressure.Entry[any]{Item: c.msg, Size: int(c.size), Expires: c.expires})
	m.ready = m.ready.With(c.lane)
}

// refund gives the ledger back what n messages of that size in all were charged.
func (m *Mailbox) refund(n, size int) {
	if a := m.cfg.Account; a != nil {
		a.Release(int64(n*backpressure.EntryBytes + size))
	}
}

// queues are the lanes, borrowed at need. Under mu.
func (m *Mailbox) queues() *lanes {
	if m.q == nil {
		q := m.cfg.Lanes.get(m.cfg.Items, m.cfg.Bytes)
		if m.ready != 0 {
			q.queue[m.sole.lane].PushReserved(m.sole.entry())
			m.sole.msg = nil
		}
		m.q = q
	}
	return m.q
}

// giveBack returns borrowed lanes that are empty. Under mu, when nothing is
// claimed.
func (m *Mailbox) giveBack() {
	if m.q != nil && m.ready == 0 && m.cfg.Lanes != nil {
		m.cfg.Lanes.pool.Put(m.q)
		m.q = nil
	}
}

// drop gives a message that nobody will handle to its owner. Not under mu.
func (m *Mailbox) drop(msg any, o backpressure.Outcome) {
	if m.cfg.Removed != nil {
		m.cfg.Removed(bare(msg), o)
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
	run := false
	if m.state.has(paused) {
		m.state &^= paused
		run = m.pending() && m.rouse()
	}
	m.mu.Unlock()
	if run {
		m.cfg.Pool.Ready(&m.task, nil)
	}
}

// CloseIfIdle is called by the actor itself, which wants to end: when nothing
// is queued in any lane and no signal is raised it closes the mailbox for good, in
// the same step, so that no post can slip in between; later posts are told Closed.
// Otherwise it does nothing.
func (m *Mailbox) CloseIfIdle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready != 0 || m.q != nil && m.q.claims() || m.signals.last != nil {
		return m.state.has(closed)
	}
	m.add(closed)
	return true
}

// Depth is how many messages wait in the lane.
func (m *Mailbox) Depth(l backpressure.Lane) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.depth(l)
}

// UserMessageCount is how many messages wait in all lanes.
func (m *Mailbox) UserMessageCount() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for l := range backpressure.Lane(backpressure.Lanes) {
		n += m.depth(l)
	}
	return n
}

func (m *Mailbox) depth(l backpressure.Lane) int {
	switch {
	case !m.ready.Has(l):
		return 0
	case m.q == nil:
		return 1
	}
	return m.q.queue[l].Len()
}
