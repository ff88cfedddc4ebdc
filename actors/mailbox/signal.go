package mailbox

// Signal is a reserved slot in one mailbox: whoever may have to tell the actor
// something that must not be refused owns a Signal, and raises it. However
// often it is raised before the actor gets to it, it is queued once, with the
// bits of all raises; so the list of raised signals is bounded by the number of
// nodes, and raising allocates nothing.
//
// A Signal belongs to one mailbox at a time and must not be copied or moved
// while it is raised.
type Signal struct {
	// guarded by the mailbox's mu
	next   *Signal
	bits   uint32
	queued bool

	work bool // immutable after InitWork

	// Owner is immutable; Bits is owned by the worker that hands it out.
	raised Raised
}

// Raised is what the actor receives for a signal, as *Raised. It is the
// signal's own memory: valid until the actor asks for the next message.
type Raised struct {
	Owner any
	Bits  uint32
}

// Init says what the actor gets as Raised.Owner. Call it once, before Raise.
func (s *Signal) Init(owner any) { s.raised.Owner = owner }

// InitWork is Init for a signal that brings the actor's ordinary work, such as
// events that arrived: it takes its turn with the lanes, while others count as
// control work.
func (s *Signal) InitWork(owner any) { s.raised.Owner, s.work = owner, true }

// Raise adds bits to s and queues it ahead of the lanes. It never fails while
// the mailbox is open; false means that the mailbox is closed for good.
// Callable from any goroutine. Raising no bits does nothing.
func (m *Mailbox) Raise(s *Signal, bits uint32) bool {
	m.mu.Lock()
	if m.state.has(closed) {
		m.mu.Unlock()
		return false
	}
	s.bits |= bits
	if s.queued || s.bits == 0 {
		m.mu.Unlock()
		return true
	}
	s.queued = true
	m.signals.push(s)
	if !s.work {
		m.urgent++
	}
	m.flag(filled)
	run := m.runnable()
	if s.work {
		run = m.rouse()
	} else if run {
		m.state |= awake
	}
	m.mu.Unlock()
	switch {
	case !run:
	case s.work:
		m.cfg.Pool.Ready(&m.task, nil)
	default:
		m.cfg.Pool.ReadyControl(&m.task)
	}
	return true
}

// signal takes the oldest one that is raised; nil: there is none. Under mu.
func (m *Mailbox) signal() *Signal {
	s := m.signals.pop()
	if s != nil && !s.work {
		m.urgent--
	}
	return s
}

// signalList is the FIFO of raised signals, linked through the nodes to a circle
// that is known by its end.
type signalList struct{ last *Signal }

func (l *signalList) push(s *Signal) {
	if s.next = s; l.last != nil {
		s.next, l.last.next = l.last.next, s
	}
	l.last = s
}

// pop takes the oldest signal and moves its bits into its Raised; nil: there is none.
func (l *signalList) pop() *Signal {
	if l.last == nil {
		return nil
	}
	s := l.last.next
	if s == l.last {
		l.last = nil
	} else {
		l.last.next = s.next
	}
	s.next, s.queued = nil, false
	s.raised.Bits, s.bits = s.bits, 0
	return s
}
