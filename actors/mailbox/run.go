package mailbox

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

var (
	_ actor.Mailbox    = (*Mailbox)(nil)
	_ scheduler.Runner = (*Mailbox)(nil)
)

// RegisterHandlers is protoactor's: from here on there is an actor to invoke.
// The dispatcher is not used, because the mailbox is scheduled by itself.
func (m *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.mu.Lock()
	m.invoker = invoker
	m.mu.Unlock()
}

// Start is protoactor's: what was posted so far, and all that follows, runs.
func (m *Mailbox) Start() {
	m.mu.Lock()
	m.mark(started | awake)
	m.mu.Unlock()
	m.cfg.Pool.Ready(&m.task, nil)
}

// PostSystemMessage never refuses. A Stop closes the mailbox at once: who posts
// after it is told so, instead of seeing the message vanish with the actor.
func (m *Mailbox) PostSystemMessage(msg any) {
	m.mu.Lock()
	if _, ok := msg.(*actor.Stop); ok {
		m.add(closed)
	}
	m.system.push(msg)
	m.flag(special)
	run := m.state&(started|awake) == started
	if run {
		m.state |= awake
	}
	m.mu.Unlock()
	if run {
		m.cfg.Pool.Ready(&m.task, nil)
	}
}

// PostUserMessage is the way of messages that come through the PID, from
// protoactor itself or from whoever only has a PID. They wait in the
// interactive lane and are handed to protoactor one by one, never in a batch
// and never taken apart, because it looks inside them (envelopes, automatic
// answers). A PoisonPill is no message but a state: no more posts, and a stop
// when the lanes are empty, however full they are now.
func (m *Mailbox) PostUserMessage(msg any) {
	if _, ok := msg.(*actor.PoisonPill); ok {
		m.mu.Lock()
		m.mark(poisoned)
		run := m.rouse()
		m.mu.Unlock()
		if run {
			m.cfg.Pool.Ready(&m.task, nil)
		}
		return
	}
	if o := m.Post(foreignLane, Item{Msg: &foreign{msg}}); !o.Took() {
		m.drop(msg, o)
	}
}

// Run is the scheduler's: the waiting system messages, one batch, the sink. It
// takes the lock as rarely as it can, because with thousands of idle members
// most of what a message costs is its wake.
func (m *Mailbox) Run(t *scheduler.Turn) (more bool) {
	b := batchOf(t)
	b.m, b.turn = m, t
	more = m.run(b)
	*b = Batch{}
	return more
}

func (m *Mailbox) run(b *Batch) (more bool) {
	look := m.look.Load()
	batch, drain := look&filled != 0, m.sink != nil
	if look&special != 0 {
		var runs bool
		if batch, drain, runs = m.prepare(b); !runs {
			return false
		}
	}
	ok := !batch || b.run()
	if ok && drain {
		ok = m.guard(b, func() { more = m.sink.Drain(b.turn) })
	}
	if !ok {
		// The actor failed, and protoactor has suspended it by a message that
		// waits now.
		m.serveSystem(b)
	} else if look&(special|filled) == 0 || b.asleep && look&special == 0 {
		return more
	}
	// Whether the task sleeps is decided under the lock that posts take, so a
	// post either is seen here or wakes the task again.
	m.mu.Lock()
	if more = more || m.pending(); !more {
		m.sleep()
	}
	if m.state&^(awake|paused) == started && m.system.empty() {
		m.unflag(special)
	}
	control := more && m.runnable() && (m.urgent > 0 || !m.state.has(paused) && m.ready.Has(backpressure.Control))
	m.mu.Unlock()
	if control {
		m.cfg.Pool.ReadyControl(&m.task)
	}
	return more
}

// prepare serves the system messages, and tells whether a batch and the sink come
// next. Nothing runs before Start.
func (m *Mailbox) prepare(b *Batch) (batch, drain, runs bool) {
	m.mu.Lock()
	state, waiting := m.state, !m.system.empty()
	batch = !waiting && m.pending()
	m.mu.Unlock()
	if !state.has(started) {
		return false, false, false
	}
	if waiting {
		m.serveSystem(b)
		m.mu.Lock()
		state, batch = m.state, m.runnable() && m.pending()
		m.mu.Unlock()
	}
	return batch, m.sink != nil && !state.has(suspended|closed), true
}

// sleep notes that a run has found nothing more to do: the next post tells the
// pool. Under mu.
func (m *Mailbox) sleep() {
	m.state &^= awake
	m.giveBack()
	if m.sink != nil && m.ready == 0 && m.signals.last == nil {
		m.unflag(filled)
	}
}

// rouse reports whether the caller has to tell the pool, for the lanes. Under mu.
func (m *Mailbox) rouse() bool {
	if m.state&(started|suspended|closed|awake) != started {
		return false
	}
	m.state |= awake
	return true
}

// runnable reports whether a post has to wake the task. Under mu.
func (m *Mailbox) runnable() bool {
	return m.state&(started|suspended|closed) == started
}

// pending reports whether a run would find something to do. Under mu.
func (m *Mailbox) pending() bool {
	if !m.system.empty() {
		return true
	}
	if !m.runnable() {
		return false
	}
	if m.signals.last != nil {
		return true
	}
	if m.state.has(paused) {
		return false
	}
	return m.ready != 0 || m.state.has(poisoned)
}

// serveSystem handles every system message that waits, those included that
// handling them posts.
func (m *Mailbox) serveSystem(b *Batch) {
	for {
		m.mu.Lock()
		msg := m.system.pop()
		m.mu.Unlock()
		if msg == nil {
			return
		}
		switch msg.(type) {
		case *actor.SuspendMailbox:
			m.set(suspended)
			continue
		case *actor.ResumeMailbox:
			m.clear(suspended)
			continue
		case *actor.Restart:
			// A restart would bring an actor back that is stopping. Otherwise it
			// must not serve messages with the old instance while its children
			// stop; protoactor resumes it when the new instance is there.
			if m.has(closed) {
				continue
			}
			m.set(suspended)
		case *actor.Stop:
			for !m.guard(b, m.discard) {
			}
		}
		b.current = msg
		m.guard(b, func() { m.invoker.InvokeSystemMessage(msg) })
	}
}

// guard runs f, code of the actor, and turns a panic in it into a failure of
// the actor, to be judged by its supervisor. True: no panic.
func (m *Mailbox) guard(b *Batch, f func()) (ok bool) {
	defer func() {
		if !ok {
			m.fail(b, recover())
		}
	}()
	f()
	return true
}

// fail reports a panic of the actor to its supervisor. protoactor's guardian
// panics in turn when its strategy escalates; an actor that nobody can judge is
// stopped, because it would stay suspended for ever.
func (m *Mailbox) fail(b *Batch, r any) {
	guilty := b.current
	b.current = nil
	defer func() {
		if recover() != nil {
			m.PostSystemMessage(&actor.Stop{})
		}
	}()
	var failed actor.Actor
	if ctx, ok := m.invoker.(actor.Context); ok {
		failed = ctx.Actor()
	}
	m.invoker.EscalateFailure(NewPanic(r, failed), guilty)
}

// discard empties a closed mailbox into Removed.
func (m *Mailbox) discard() {
	for {
		m.mu.Lock()
		msg, ok := m.leftover()
		m.mu.Unlock()
		if !ok {
			return
		}
		m.drop(msg, backpressure.Closed)
	}
}

// leftover takes one message of a closed mailbox, wherever it waits. Under mu.
func (m *Mailbox) leftover() (msg any, ok bool) {
	if m.q != nil {
		if c := m.q.next(); c != nil {
			msg, c.msg = c.msg, nil
			return msg, true
		}
	}
	if s := m.signal(); s != nil {
		return &s.raised, true
	}
	for l := range backpressure.Lane(backpressure.Lanes) {
		if m.ready.Has(l) {
			msg, _, _ := m.pop(l)
			return bare(msg), true
		}
	}
	return nil, false
}

// bare is the message as it was posted.
func bare(msg any) any {
	switch m := msg.(type) {
	case *foreign:
		return m.msg
	case *stamped:
		return m.msg
	}
	return msg
}

// mark adds to the state what the next run has to see. Under mu.
func (m *Mailbox) mark(s state) {
	m.state |= s
	m.flag(special)
}

// add adds to the state, and interrupts the batch that may be running. Under mu.
func (m *Mailbox) add(s state) {
	m.mark(s)
	m.flag(halted)
}

// flag and unflag change look where it has to be changed.
func (m *Mailbox) flag(bit uint32) {
	if m.look.Load()&bit == 0 {
		m.look.Or(bit)
	}
}

func (m *Mailbox) unflag(bit uint32) {
	if m.look.Load()&bit != 0 {
		m.look.And(^bit)
	}
}

func (m *Mailbox) set(s state) {
	m.mu.Lock()
	m.add(s)
	m.mu.Unlock()
}

func (m *Mailbox) clear(s state) {
	m.mu.Lock()
	m.state &^= s
	m.mu.Unlock()
}

func (m *Mailbox) has(any state) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.has(any)
}
