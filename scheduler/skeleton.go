package scheduler

import (
	"context"
	"time"
)

// Class tells apart what runs first in a tenant's turn.
type Class uint8

const (
	// Actor: rooms and tenants, run first in a tenant's turn.
	Actor Class = iota
	// Session: inbound work and drains of sessions, run after.
	Session
)

// Tenant is a flow of the first level. It must not be copied.
type Tenant struct{ weight int }

// NewTenant makes a tenant with a weight of at least 1.
func NewTenant(weight int) *Tenant { return &Tenant{weight: weight} }

// NewFlow makes a flow of the second level: a room, or a session's own.
func (t *Tenant) NewFlow() *Flow { f := new(Flow); f.Init(t); return f }

// Stuck is how many Runs of the tenant are held up now.
func (t *Tenant) Stuck() int { return 0 }

// Flow is a flow of the second level. It may be embedded by value and must not be copied after Init.
type Flow struct{ tenant *Tenant }

// Init makes f a flow of t.
func (f *Flow) Init(t *Tenant) { f.tenant = t }

// Tenant is the tenant that f belongs to.
func (f *Flow) Tenant() *Tenant { return f.tenant }

// Runner does at most one batch of work and reports whether it has more. It must not panic.
type Runner interface{ Run(t *Turn) (more bool) }

// Task is one schedulable: a mailbox embeds it by value.
type Task struct{ runner Runner }

// Init prepares the task; home is charged when a wake names no other flow.
func (t *Task) Init(r Runner, home *Flow, class Class) { t.runner = r }

// Turn is what a Run may use.
type Turn struct {
	// Control: do control-lane work only.
	Control bool
	// Buffer is the worker's scratch for writes, empty, with a capacity of WriteBytes at least.
	Buffer []byte
}

// Spend adds to the model's cost of what was done.
func (t *Turn) Spend(items, bytes int) {}

// Now is the monotonic time in nanoseconds at the start of the group, on the clock of Pool.Now.
func (t *Turn) Now() int64 { return 0 }

// Overdue reports that the group has run for BatchTime. It reads the clock: ask every few messages.
func (t *Turn) Overdue() bool { return false }

// Wake is Pool.Ready, gathered until the end of the Run.
func (t *Turn) Wake(task *Task, flow *Flow) {}

// Pool returns the pool that runs this turn.
func (t *Turn) Pool() *Pool { return nil }

// PoolConfig configures a Pool.
type PoolConfig struct {
	// Workers is the number of workers; 0: GOMAXPROCS.
	Workers int
	// BlockingWorkers bounds blocking work, and substitutes for stuck workers, in all.
	BlockingWorkers int
	// Stuck is called once for a Run that has taken StuckAfter. Optional.
	Stuck func(task *Task, tenant *Tenant, running time.Duration)
	// Now replaces the monotonic clock, in nanoseconds, for stepped tests. Optional.
	Now func() int64
}

// Pool runs tasks.
type Pool struct{}

// NewPool makes a pool that is not started.
func NewPool(cfg PoolConfig) *Pool { return &Pool{} }

// Start starts the workers.
func (p *Pool) Start() {}

// Stop ends the workers and waits for those that return.
func (p *Pool) Stop() {}

// Now is the pool's monotonic time in nanoseconds: the clock of Turn.Now and of expiries.
func (p *Pool) Now() int64 { return 0 }

// Ready says that task has work, charged to flow; nil: the task's home.
func (p *Pool) Ready(task *Task, flow *Flow) {}

// ReadyControl says that task has control-lane work.
func (p *Pool) ReadyControl(task *Task) {}

// Step runs one group on the caller's goroutine; false when there is nothing to run. Only on a pool that is not started.
func (p *Pool) Step() bool { return false }

// Decode runs work on the caller's goroutine when it is t's turn to decode.
func (p *Pool) Decode(t *Tenant, bytes int, work func()) { work() }

// Block runs work, which may block, on a goroutine of the blocking pool; false: refused.
func (p *Pool) Block(t *Tenant, work func()) bool { return false }

// Gate lets a bounded number through at once, round robin by key.
type Gate struct{}

// NewGate makes a gate for n at once.
func NewGate(n int) *Gate { return &Gate{} }

// Acquire waits for a place, fair by key.
func (g *Gate) Acquire(ctx context.Context, key string) error { return nil }

// Release gives the place back.
func (g *Gate) Release() {}

// Wheel is a timer wheel.
type Wheel struct{}

// NewWheel makes a wheel that is not started.
func NewWheel() *Wheel { return &Wheel{} }

// Start starts the wheel's goroutine.
func (w *Wheel) Start() {}

// Stop ends it; nothing fires afterwards.
func (w *Wheel) Stop() {}

// Timer is one expiry; embed it by value.
type Timer struct{ fire func() }

// Init sets what the expiry does: it runs under the wheel's lock, so it only flags, never blocks, and calls neither Set nor Clear.
func (t *Timer) Init(fire func()) { t.fire = fire }

// Set arms t to fire once, d from now, instead of any earlier arming.
func (w *Wheel) Set(t *Timer, d time.Duration) {}

// Clear disarms t; when it has returned, fire does not run.
func (w *Wheel) Clear(t *Timer) {}
