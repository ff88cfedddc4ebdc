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

// phase goes idle -> ready -> running -> (idle | ready). A wake-up while it runs is noted in woken, and makes the task ready in the end
// whatever the Run returned; so no wake-up is lost, and as only a ready task is taken, none runs twice at once.
type phase uint8

const (
	idle phase = iota
	ready
	running
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

	// urgent: control work is waiting. Atomic: set by who wakes, which tells the pool once, and cleared under Pool.mu by who takes the task.
	urgent atomic.Bool

	class Class // immutable after Init

	// guarded by Pool.mu
	phase     phase
	linked    bool // in a list of flow. A task that a control turn took keeps its place, so the linked need not be ready.
	inControl bool // in its tenant's control list, perhaps for nothing: what counts is urgent
}

// Init prepares the task. home is charged when a wake-up names no other flow.
func (t *Task) Init(r Runner, home *Flow, class Class) {
	t.runner, t.home, t.class = r, home, class
}

// hurry notes that there is control work, and reports whether the pool must be told of it.
func (t *Task) hurry() bool { return !t.urgent.Load() && !t.urgent.Swap(true) }

// take makes a ready task running. It reports whether it was ready, and whether it had control work. Under Pool.mu.
func (t *Task) take() (ok, wanted bool) {
	if t.phase != ready {
		return false, false
	}
	t.phase = running
	return true, t.urgent.Load() && t.urgent.Swap(false)
}

type controlLink struct{}

func (controlLink) next(t *Task) **Task { return &t.nextControl }

// taskList is the fifo of ready tasks, written out: each wake-up passes through it.
type taskList struct{ tail *Task }

func (q *taskList) empty() bool { return q.tail == nil }

func (q *taskList) one() bool { return q.tail != nil && q.tail.nextTask == q.tail }

func (q *taskList) push(t *Task) {
	q.pushFront(t)
	q.tail = t
}

func (q *taskList) pushFront(t *Task) {
	if q.tail == nil {
		t.nextTask, q.tail = t, t
		return
	}
	t.nextTask, q.tail.nextTask = q.tail.nextTask, t
}

func (q *taskList) pop() *Task {
	if q.tail == nil {
		return nil
	}
	t := q.tail.nextTask
	if t == q.tail {
		q.tail = nil
	} else {
		q.tail.nextTask = t.nextTask
	}
	t.nextTask = nil
	return t
}
