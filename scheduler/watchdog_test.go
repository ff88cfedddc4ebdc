package scheduler

import (
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// runFunc is a task made of a function.
type runFunc struct {
	task Task
	run  func(*Turn) bool
}

func (r *runFunc) Run(t *Turn) bool { return r.run(t) }

func task(f *Flow, c Class, run func(*Turn) bool) *Task {
	r := &runFunc{run: run}
	r.task.Init(r, f, c)
	return &r.task
}

func once(run func()) func(*Turn) bool {
	return func(*Turn) bool { run(); return false }
}

type reports struct {
	mu  sync.Mutex
	all []report
}

func (r *reports) add(task *Task, tenant *Tenant, running time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, report{task, tenant, running})
}

func (r *reports) take() []report {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// counts counts by name.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) add(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[name]++
	return c.of[name]
}

func (c *counts) expect(t *testing.T, when string, want map[string]int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(c.of, want) {
		t.Errorf("%s: %v, want %v", when, c.of, want)
	}
}

// expectPool checks the number of workers, those that are not stuck, and of tasks left.
func expectPool(t *testing.T, when string, p *Pool, workers, alive, ready int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.workers) != workers || p.alive != alive || p.core.ready != ready {
		t.Errorf("%s: %d workers, %d alive, %d tasks ready; want %d, %d, %d", when, len(p.workers), p.alive, p.core.ready, workers, alive, ready)
	}
}

// A Run that does not return is named after a second, once, and costs no worker; when it returns the extra worker ends.
func TestStuckRunIsReportedAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		pool := NewPool(PoolConfig{Workers: 1, Stuck: seen.add})
		pool.Start()
		tenant := NewTenant(1)
		free := make(chan struct{})
		stuck := task(tenant.NewFlow(), Actor, once(func() { <-free }))
		var served atomic.Int32
		other := task(NewTenant(1).NewFlow(), Actor, once(func() { served.Add(1) }))
		pool.Ready(stuck, nil)
		synctest.Wait()
		pool.Ready(other, nil)
		time.Sleep(StuckAfter - watchPeriod)
		synctest.Wait()
		if served.Load() != 0 || len(seen.take()) != 0 {
			t.Fatal("served or reported before its time")
		}
		time.Sleep(3 * watchPeriod)
		synctest.Wait()
		if served.Load() != 1 {
			t.Error("no substitute: the other tenant was not served")
		}
		got := seen.take()
		if len(got) != 1 || got[0].task != stuck || got[0].tenant != tenant || got[0].running < StuckAfter {
			t.Errorf("reports: %v", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := seen.take(); len(got) != 0 || tenant.Stuck() != 1 {
			t.Errorf("reported again: %v; stuck: %d", got, tenant.Stuck())
		}
		pool.Ready(stuck, nil) // a wake-up meanwhile is kept
		close(free)
		synctest.Wait()
		expectPool(t, "after its return", pool, 1, 1, 0)
		if tenant.Stuck() != 0 {
			t.Errorf("after its return: %d stuck", tenant.Stuck())
		}
		if !stuck.rests() {
			t.Error("the wake-up during the stuck Run was lost")
		}
		pool.Stop()
	})
}

// What a stuck Run had with it does not wait for it: tasks of its group that ran, that did not run yet, and those that it woke.
func TestStuckRunHoldsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(PoolConfig{Workers: 1})
		flow := NewTenant(1).NewFlow()
		var ran counts
		count := func(name string) func(*Turn) bool { return once(func() { ran.add(name) }) }
		free := make(chan struct{})
		woken, wokenLate := task(flow, Session, count("woken")), task(flow, Session, count("woken late"))
		before := task(flow, Session, func(*Turn) bool { return ran.add("before") < 3 })
		stuck := task(flow, Session, func(turn *Turn) bool {
			turn.Wake(woken, nil)
			<-free
			turn.Wake(wokenLate, nil)
			return ran.add("stuck") < 2
		})
		after := task(flow, Session, count("after"))
		for _, task := range []*Task{before, stuck, after} {
			pool.Ready(task, nil)
		}
		pool.Start()
		time.Sleep(StuckAfter + watchPeriod)
		synctest.Wait()
		ran.expect(t, "while it is stuck", map[string]int{"before": 3, "after": 1, "woken": 1})
		pool.Ready(before, nil)
		synctest.Wait()
		ran.expect(t, "when what ran before it is woken", map[string]int{"before": 4, "after": 1, "woken": 1})
		close(free)
		synctest.Wait()
		ran.expect(t, "after its return", map[string]int{"before": 4, "after": 1, "stuck": 2, "woken": 2, "woken late": 2})
		pool.Stop()
	})
}

// A tenant with four stuck Runs gets nothing more started, so that others keep their workers; one that returns lets it go on.
func TestTenantWithManyStuckRunsIsBarred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		pool := NewPool(PoolConfig{Workers: 2, BlockingWorkers: 64, Stuck: seen.add})
		pool.Start()
		tenant := NewTenant(1)
		free := make(chan struct{})
		for range 10 {
			pool.Ready(task(tenant.NewFlow(), Actor, once(func() { <-free })), nil)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(seen.take()); n != StuckPerTenant || tenant.Stuck() != StuckPerTenant {
			t.Errorf("%d reported, %d stuck, want %d", n, tenant.Stuck(), StuckPerTenant)
		}
		var both sync.WaitGroup // passes only when two run at once
		both.Add(2)
		for range 2 {
			pool.Ready(task(NewTenant(1).NewFlow(), Actor, once(func() { both.Done(); both.Wait() })), nil)
		}
		both.Wait()
		close(free)
		synctest.Wait()
		expectPool(t, "after their return", pool, 2, 2, 0)
		if tenant.Stuck() != 0 {
			t.Errorf("after their return: %d stuck", tenant.Stuck())
		}
		pool.Stop()
	})
}

// Substitutes are bounded in all; a worker that was not replaced goes on when its Run returns.
func TestSubstitutesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(PoolConfig{Workers: 2, BlockingWorkers: 3})
		pool.Start()
		free := make(chan struct{})
		for range 20 {
			pool.Ready(task(NewTenant(1).NewFlow(), Actor, once(func() { <-free })), nil)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		expectPool(t, "while they are stuck", pool, 5, 0, 15)
		close(free)
		synctest.Wait()
		expectPool(t, "after their return", pool, 2, 2, 0)
		pool.Stop()
	})
}

func TestStopAbandonsWhatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		pool := NewPool(PoolConfig{Workers: 2, Stuck: seen.add})
		pool.Start()
		free := make(chan struct{})
		pool.Ready(task(NewTenant(1).NewFlow(), Actor, once(func() { <-free })), nil)
		pool.Block(NewTenant(1), func() { <-free })
		synctest.Wait()
		start := time.Now()
		pool.Stop()
		if took := time.Since(start); took > 3*StuckAfter {
			t.Errorf("Stop took %v", took)
		}
		if len(seen.take()) != 1 {
			t.Error("the stuck Run was not reported")
		}
		pool.Stop() // again, at once
		close(free)
	})
}

func TestStopWaitsForWhatReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(PoolConfig{Workers: 2})
		pool.Start()
		var done, blocked atomic.Bool
		pool.Ready(task(NewTenant(1).NewFlow(), Actor, once(func() { time.Sleep(StuckAfter / 2); done.Store(true) })), nil)
		pool.Block(NewTenant(1), func() { time.Sleep(StuckAfter / 2); blocked.Store(true) })
		synctest.Wait()
		pool.Stop()
		if !done.Load() || !blocked.Load() {
			t.Errorf("Stop did not wait: run %v, blocking work %v", done.Load(), blocked.Load())
		}
		if pool.Block(NewTenant(1), func() {}) {
			t.Error("blocking work taken after Stop")
		}
		pool.Ready(task(NewTenant(1).NewFlow(), Actor, once(func() { t.Error("ran after Stop") })), nil)
		synctest.Wait()
	})
}
