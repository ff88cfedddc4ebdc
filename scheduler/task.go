package scheduler

import "sync/atomic"

// Class tells apart what runs first in a tenant's turn.
type Class uint8

const (
	// Actor: rooms and tenants, whose batches run before the drains that wait.
	Actor Class = iota
	// Session: inbound work and drains of sessions.
	Session
)

// Runner does at most one batch of work and reports whether it has more. It recovers its own panics. A Run that leaves control work
// behind says so by ReadyControl.
type Runner interface{ Run(t *Turn) (more bool) }

// The automaton of a task: idle -> ready -> running -> (idle | ready). A wake-up while it runs makes it "again", which comes back to ready
// whatever the Run returned; so no wake-up is lost, and as only the worker that made it running may end that, no task runs twice at once.
const (
	idle uint32 = iota
	ready
	running
	again

	phaseMask uint32 = 3
	// wantsControl beside the phase: control work is waiting. Never set on an idle task; cleared when a worker takes the task.
	wantsControl uint32 = 4
)

// Task is one schedulable; a mailbox embeds it by value. It must not be copied after Init.
type Task struct {
	// immutable after Init
	runner Runner
	home   *Flow

	// guarded by Pool.mu
	flow        *Flow // charged for what it does: linked there, or taken from there; nil while idle
	woken       *Flow // who woke it while it ran: charged next
	nextTask    *Task
	nextControl *Task

	// atomic
	state atomic.Uint32

	class Class // immutable after Init

	// guarded by Pool.mu
	linked    bool // in a list of flow. A task that a control turn took keeps its place, so the linked may be running, or idle by now.
	inControl bool // in its tenant's control list, perhaps for nothing: what counts is wantsControl
	busy      bool // a worker has it
}

// Init prepares the task. home is charged when a wake-up names no other flow.
func (t *Task) Init(r Runner, home *Flow, class Class) {
	t.runner, t.home, t.class = r, home, class
}

// wake notes that there is work, and with wantsControl that some of it is control work. It reports whether the pool must be told: once for
// each step that the automaton makes.
func (t *Task) wake(control uint32) bool {
	for {
		s := t.state.Load()
		n := s | control
		switch s & phaseMask {
		case idle:
			n |= ready
		case running:
			n |= again
		}
		if n == s {
			return false
		}
		if t.state.CompareAndSwap(s, n) {
			return true
		}
	}
}

// take makes a ready task running. It reports whether the task was ready, and whether it had control work.
func (t *Task) take() (ok, control bool) {
	for {
		s := t.state.Load()
		if s&phaseMask != ready {
			return false, false
		}
		if t.state.CompareAndSwap(s, running) {
			return true, s&wantsControl != 0
		}
	}
}

// release ends running: to ready if there is more or a wake-up came meanwhile, else to idle. It reports whether it is ready, and whether
// control work came meanwhile.
func (t *Task) release(more bool) (isReady, control bool) {
	for {
		s := t.state.Load()
		n := s&wantsControl | ready
		if s&phaseMask == running && !more {
			n = idle
		}
		if t.state.CompareAndSwap(s, n) {
			return n != idle, n&wantsControl != 0
		}
	}
}

type (
	turnLink    struct{}
	controlLink struct{}
)

func (turnLink) next(t *Task) **Task    { return &t.nextTask }
func (controlLink) next(t *Task) **Task { return &t.nextControl }

type taskList = fifo[Task, turnLink]
