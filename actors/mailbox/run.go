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
	m.pool.Ready(&m.task, nil)
}

// PostSystemMessage never refuses. A Stop closes the mailbox at once: who posts
// after it is told so, instead of seeing the message vanish with the actor.
func (m *Mailbox) PostSystemMessage(msg any) {
	m.mu.Lock()
	if _, ok := msg.(*actor.Stop); ok {
		m.add(closed)
	}
	m.system.push(msg)
	run := m.state&(started|awake) == started
	if run {
		m.mark(awake)
	}
	m.mu.Unlock()
	if run {
		m.pool.Ready(&m.task, nil)
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
			m.pool.Ready(&m.task, nil)
		}
		return
	}
	if o := m.Post(backpressure.Interactive, Item{Msg: &foreign{msg}}); !o.Took() {
		m.drop(msg, o)
	}
}

// Run is the scheduler's: the waiting system messages, one batch, the sink. It
// takes the lock as rarely as it can, because with thousands of idle members
// most of what a message costs is its wake.
func (m *Mailbox) Run(t *scheduler.Turn) (more bool) {
	if m.sink != nil && m.calm.Load() {
		if !m.guard(func() { more = m.sink.Drain(t) }) {
			m.serveSystem()
		}
		return more
	}
	m.mu.Lock()
	state, waiting := m.state, m.system.head != nil
	batch := !waiting && m.pending()
	m.mu.Unlock()
	if !state.has(started) {
		return false
	}
	if waiting {
		m.serveSystem()
		m.mu.Lock()
		state, batch = m.state, m.runnable() && m.pending()
		m.mu.Unlock()
	}
	ok := !batch || m.batch.run(t)
	if ok && m.sink != nil && !state.has(suspended|closed) {
		ok = m.guard(func() { more = m.sink.Drain(t) })
	}
	if !ok {
		// The actor failed, and protoactor has suspended it by a message that
		// waits now.
		m.serveSystem()
	}
	// Whether the task sleeps is decided under the lock that posts take, so a
	// post either is seen here or wakes the task again.
	m.mu.Lock()
	if more = more || m.pending(); !more {
		m.state &^= awake
		m.giveBack()
		m.calm.Store(m.state == started)
	}
	control := more && m.runnable() && (m.signals.urgent > 0 || !m.state.has(paused) && m.ready.Has(backpressure.Control))
	m.mu.Unlock()
	if control {
		m.pool.ReadyControl(&m.task)
	}
	return more
}

// rouse reports whether the caller has to tell the pool, for the lanes. Under mu.
func (m *Mailbox) rouse() bool {
	if m.state&(started|suspended|closed|awake) != started {
		return false
	}
	m.mark(awake)
	return true
}

// runnable reports whether a post has to wake the task. Under mu.
func (m *Mailbox) runnable() bool {
	return m.state&(started|suspended|closed) == started
}

// pending reports whether a run would find something to do. Under mu.
func (m *Mailbox) pending() bool {
	if m.system.head != nil {
		return true
	}
	if !m.runnable() {
		return false
	}
	if m.signals.waiting() {
		return true
	}
	if m.state.has(paused) {
		return false
	}
	return m.queued > 0 || m.state.has(poisoned)
}

// serveSystem handles every system message that waits, those included that
// handling them posts.
func (m *Mailbox) serveSystem() {
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
			for !m.guard(m.discard) {
			}
		}
		m.batch.current = msg
		m.guard(func() { m.invoker.InvokeSystemMessage(msg) })
	}
}

// guard runs f, code of the actor, and turns a panic in it into a failure of
// the actor, to be judged by its supervisor. True: no panic.
func (m *Mailbox) guard(f func()) (ok bool) {
	defer func() {
		if !ok {
			m.fail(recover())
		}
	}()
	f()
	return true
}

// fail reports a panic of the actor to its supervisor. protoactor's guardian
// panics in turn when its strategy escalates; an actor that nobody can judge is
// stopped, because it would stay suspended for ever.
func (m *Mailbox) fail(r any) {
	guilty := m.batch.current
	m.batch.current = nil
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
	if msg := m.batch.single; msg != nil {
		m.batch.single = nil
		m.queued--
		return msg, true
	}
	if m.q != nil {
		if c := m.q.next(); c != nil {
			msg, c.msg = c.msg, nil
			return msg, true
		}
	}
	if s := m.signals.pop(); s != nil {
		return &s.raised, true
	}
	for l := range backpressure.Lane(backpressure.Lanes) {
		if m.ready.Has(l) {
			return bare(m.pop(l).Item), true
		}
	}
	return nil, false
}

// bare is the message as it was posted.
func bare(msg any) any {
	if f, ok := msg.(*foreign); ok {
		return f.msg
	}
	return msg
}

// mark adds to the state. Under mu.
func (m *Mailbox) mark(s state) {
	m.state |= s
	if m.calm.Load() {
		m.calm.Store(false)
	}
}

// add adds to the state, and interrupts the batch that may be running. Under mu.
func (m *Mailbox) add(s state) {
	m.mark(s)
	m.batch.halted.Store(true)
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
