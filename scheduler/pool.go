package scheduler

import (
	"runtime"
	"sync"
	"time"
)

// PoolConfig configures a Pool.
type PoolConfig struct {
	// Workers is the number of goroutines that run tasks. 0: GOMAXPROCS.
	Workers int
	// BlockingWorkers bounds the goroutines of Block in all, and, apart from them, the substitutes for stuck workers. 0: 64.
	BlockingWorkers int
	// Stuck is told, once, of a Run that has taken StuckAfter; it is called on the watchdog's goroutine, which
	// looks again when it returns; it must not call Stop. Optional.
	Stuck func(task *Task, tenant *Tenant, running time.Duration)
	// Now replaces the monotonic clock, in nanoseconds, for stepped tests. Optional.
	Now func() int64
}

// Pool is a fixed number of workers over a core.
type Pool struct {
	// immutable
	cfg      PoolConfig
	now      func() int64
	decoders *fairGate[*Tenant]
	blocking *blocking
	stopping chan struct{} // closed when Stop begins
	quit     chan struct{} // closed when the workers have ended
	watched  chan struct{} // closed when the watchdog has ended

	mu sync.Mutex

	// guarded by mu
	core        core
	work        sync.Cond // for workers that sleep
	ended       sync.Cond // for Stop
	sleepers    int       // workers that sleep and have not been signalled
	workers     map[*worker]struct{}
	alive       int // workers that are not stuck
	substitutes int // beyond cfg.Workers
	stepper     *worker
	started     bool
	stopped     bool
	counted     Stats // what has been done; the rest of it is unused
}

// NewPool makes a pool that is not started.
func NewPool(cfg PoolConfig) *Pool {
	if cfg.Workers <= 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	if cfg.BlockingWorkers <= 0 {
		cfg.BlockingWorkers = 64
	}
	p := &Pool{
		cfg:      cfg,
		now:      cfg.Now,
		decoders: newFairGate[*Tenant](runtime.GOMAXPROCS(0)),
		blocking: newBlocking(cfg.BlockingWorkers),
		stopping: make(chan struct{}),
		quit:     make(chan struct{}),
		watched:  make(chan struct{}),
		workers:  make(map[*worker]struct{}),
	}
	if p.now == nil {
		// Never 0, which means "never" for an expiry.
		base := time.Now().Add(-time.Nanosecond)
		p.now = func() int64 { return int64(time.Since(base)) }
	}
	p.work.L, p.ended.L = &p.mu, &p.mu
	return p
}

// Now is the pool's monotonic time in nanoseconds, above 0: the clock of Turn.Now and of expiries.
func (p *Pool) Now() int64 { return p.now() }

// Start starts the workers and the watchdog. Once.
func (p *Pool) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started || p.stopped {
		return
	}
	p.started = true
	for range p.cfg.Workers {
		p.hire()
	}
	go p.watch()
}

// Stop ends the workers after the Runs that go on, and waits for those that return; one that is stuck is reported as ever and abandoned.
// Blocking work that has not begun is dropped; what goes on is waited for no longer than StuckAfter. Tasks that are ready stay so, and
// readers that wait decode at once. Stop may be called again, and before Start; in a Run it waits for itself until that counts as stuck.
func (p *Pool) Stop() {
	p.mu.Lock()
	first := !p.stopped
	p.stopped = true
	p.sleepers = 0
	p.work.Broadcast()
	if first {
		close(p.stopping)
	}
	for p.alive > 0 {
		p.ended.Wait()
	}
	started := p.started
	p.mu.Unlock()
	if first {
		close(p.quit)
	}
	if started {
		<-p.watched
	}
	p.blocking.stop(StuckAfter)
}

// Ready says that task has work, which flow is charged for; nil: the task's home. From any goroutine; it never waits for a Run.
// It takes the pool's lock, so who has told the pool of work and has not run since should not tell it again.
func (p *Pool) Ready(task *Task, flow *Flow) {
	if flow == nil {
		flow = task.home
	}
	p.tell(task, flow)
}

// ReadyControl says that task has control-lane work. Beside its place in its flow it gets one in the control rotation, tenant by tenant,
// which one group in ControlEvery serves even where flow or tenant are deep in debt.
func (p *Pool) ReadyControl(task *Task) {
	if task.hurry() {
		p.tell(task, task.home)
	}
}

func (p *Pool) tell(task *Task, flow *Flow) {
	p.mu.Lock()
	p.core.add(task, flow)
	p.rouse()
	p.mu.Unlock()
}

// rouse wakes one sleeper if there is work; who takes a group wakes the next. Under mu.
func (p *Pool) rouse() {
	if p.sleepers > 0 && p.core.ready > 0 {
		p.sleepers--
		p.work.Signal()
	}
}

// hire starts a worker. Under mu.
func (p *Pool) hire() {
	w := newWorker(p)
	p.workers[w] = struct{}{}
	p.alive++
	go w.loop()
}

// forget ends a worker. Under mu.
func (p *Pool) forget(w *worker) {
	delete(p.workers, w)
	if !w.replaced {
		p.alive--
	}
	p.ended.Broadcast()
}

// Step runs one group on the caller's goroutine; false when there is nothing to run. It is the deterministic driver of a pool that is not
// started, from one goroutine at a time.
func (p *Pool) Step() bool {
	p.mu.Lock()
	if p.started {
		p.mu.Unlock()
		panic("scheduler: Step on a pool that was started")
	}
	if p.stepper == nil {
		p.stepper = newWorker(p)
	}
	w := p.stepper
	some := p.core.next(&w.group)
	p.mu.Unlock()
	if some {
		w.turn.start = 0
		took := w.run()
		p.mu.Lock()
		w.settle(took)
		p.mu.Unlock()
	}
	return some
}
