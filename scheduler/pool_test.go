package scheduler

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is a queue of messages without content: what a mailbox is to the pool.
type counter struct {
	task    Task
	posted  atomic.Int64
	handled int64 // owned by the Run: a second Run at the same time is a race that the detector sees
	inside  atomic.Int32
	twice   *atomic.Int32
}

func (c *counter) post(p *Pool) {
	c.posted.Add(1)
	p.Ready(&c.task, nil)
}

func (c *counter) Run(t *Turn) bool {
	if c.inside.Add(1) != 1 {
		c.twice.Add(1)
	}
	defer c.inside.Add(-1)
	for range 4 {
		if c.handled == c.posted.Load() {
			return false
		}
		c.handled++
		t.Spend(1, 0)
	}
	return true
}

// A wake-up that is lost leaves messages unhandled for ever; the test then does not end. A double Run is counted, and is a data race.
func TestNoLostWakeUpNoDoubleRun(t *testing.T) {
	const producers, posts, targets = 64, 4000, 40
	pool := NewPool(PoolConfig{Workers: 4})
	pool.Start()
	var twice atomic.Int32
	counters := make([]*counter, targets)
	for i := range counters {
		tenant := NewTenant(1 + i%3)
		c := &counter{twice: &twice}
		c.task.Init(c, tenant.NewFlow(), Class(i%2))
		counters[i] = c
	}
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() {
			for j := range posts {
				c := counters[(i*7+j)%targets]
				if j%5 == 0 {
					c.posted.Add(1)
					pool.ReadyControl(&c.task)
				} else {
					c.post(pool)
				}
			}
		})
	}
	wg.Wait()
	done := make(chan struct{})
	// One after the other behind everything else: each target is empty when its own last message has been handled.
	for _, c := range counters {
		f := &flag{done: done}
		f.task.Init(f, c.task.home, Session)
		f.until = func() bool {
			pool.mu.Lock()
			defer pool.mu.Unlock()
			return c.task.rests()
		}
		pool.Ready(&f.task, nil)
		<-done
	}
	pool.Stop()
	var sum int64
	for i, c := range counters {
		if c.handled != c.posted.Load() {
			t.Errorf("target %d: %d of %d handled", i, c.handled, c.posted.Load())
		}
		sum += c.handled
	}
	if sum != producers*posts || twice.Load() != 0 {
		t.Errorf("%d handled of %d, %d double runs", sum, producers*posts, twice.Load())
	}
}

// flag runs until a condition holds, then reports.
type flag struct {
	task  Task
	until func() bool
	done  chan struct{}
}

func (f *flag) Run(*Turn) bool {
	if f.until() {
		f.done <- struct{}{}
		return false
	}
	return true
}

// A sole busy tenant has all workers: it passes only when four run at once.
func TestSoleTenantUsesAllWorkers(t *testing.T) {
	pool := NewPool(PoolConfig{Workers: 4})
	pool.Start()
	tenant := NewTenant(1)
	for _, flows := range []func(int) *Flow{
		func(int) *Flow { return tenant.NewFlow() },
		func() func(int) *Flow { one := tenant.NewFlow(); return func(int) *Flow { return one } }(),
	} {
		var all sync.WaitGroup
		all.Add(4)
		for i := range 4 {
			pool.Ready(task(flows(i), Actor, once(func() { all.Done(); all.Wait() })), nil)
		}
		all.Wait()
	}
	pool.Stop()
}

// Who takes a group wakes the next worker if there is more. The tasks come from a turn in one piece, which wakes one sleeper; it passes only
// when three run at once, before the watchdog would help.
func TestOneWakeUpRousesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(PoolConfig{Workers: 4})
		pool.Start()
		synctest.Wait() // all asleep
		var all sync.WaitGroup
		all.Add(3)
		tenant := NewTenant(1)
		var three []*Task
		for range 3 {
			three = append(three, task(tenant.NewFlow(), Actor, once(func() { all.Done(); all.Wait() })))
		}
		pool.Ready(task(tenant.NewFlow(), Actor, func(turn *Turn) bool {
			for _, each := range three {
				turn.Wake(each, nil)
			}
			return false
		}), nil)
		start := time.Now()
		all.Wait()
		if took := time.Since(start); took > 0 {
			t.Errorf("a worker slept for %v beside work", took)
		}
		pool.Stop()
	})
}

// One turn wakes more tasks than it can gather at once.
func TestTurnWakesMany(t *testing.T) {
	s := newSim()
	tenant := NewTenant(1)
	var members []*job
	for range 5*wakeBatch + 3 {
		members = append(members, s.job(tenant.NewFlow(), Session))
	}
	room := s.job(tenant.NewFlow(), Actor)
	room.each = func(turn *Turn) {
		for range 2 { // the second time they are ready
			for _, m := range members {
				m.left = 1
				turn.Wake(&m.task, room.task.home)
			}
		}
	}
	room.add(1)
	s.run(1 << 20)
	for i, m := range members {
		if m.runs != 1 {
			t.Fatalf("member %d ran %d times", i, m.runs)
		}
	}
}

func TestStepOnAStartedPoolPanics(t *testing.T) {
	pool := NewPool(PoolConfig{})
	pool.Start()
	defer pool.Stop()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	pool.Step()
}

func TestStopBeforeStart(t *testing.T) {
	pool := NewPool(PoolConfig{})
	pool.Stop()
	pool.Start()
	pool.Stop()
}

// An idle flow is nobody's memory: ended sessions must not be held by the tenant's rotation.
func TestIdleTenantHoldsNoFlow(t *testing.T) {
	s := newSim()
	tenant := NewTenant(1)
	for range 100 {
		s.job(tenant.NewFlow(), Session).add(1)
		s.job(tenant.NewFlow(), Actor).add(1)
	}
	s.run(1 << 20)
	if !tenant.fresh.empty() || !tenant.old.empty() || !tenant.firsts.empty() || tenant.current != nil || tenant.listed {
		t.Error("flows are still listed")
	}
}

func TestReadyRunIdleAllocatesNothing(t *testing.T) {
	s := newSim()
	tenant := NewTenant(1)
	wake := fanOut(s.pool, tenant, 64)
	if n := testing.AllocsPerRun(100, func() {
		wake()
		for s.pool.Step() {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// fanOut makes an actor that wakes n sessions, and returns what starts it.
func fanOut(p *Pool, tenant *Tenant, n int) (wake func()) {
	sessions := make([]*Task, n)
	for i := range sessions {
		sessions[i] = task(tenant.NewFlow(), Session, func(*Turn) bool { return false })
	}
	room := tenant.NewFlow()
	actor := task(room, Actor, func(turn *Turn) bool {
		for _, s := range sessions {
			turn.Wake(s, room)
		}
		return false
	})
	return func() { p.Ready(actor, nil) }
}

// One task ready -> run -> idle: woken one by one, from outside.
func BenchmarkTask1PerWake(b *testing.B) {
	pool := NewPool(PoolConfig{})
	one := task(NewTenant(1).NewFlow(), Session, func(*Turn) bool { return false })
	b.ReportAllocs()
	for b.Loop() {
		pool.Ready(one, nil)
		pool.Step()
	}
}

// The same woken 64 at a time by a room; ns/op is for 64 and the room.
func BenchmarkTask64PerWake(b *testing.B) {
	pool := NewPool(PoolConfig{})
	wake := fanOut(pool, NewTenant(1), 64)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		wake()
		for pool.Step() {
		}
		n += 64
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/task")
}

// 10,000 ready tasks of 100 tenants.
func BenchmarkTaskManyTenants(b *testing.B) {
	pool := NewPool(PoolConfig{})
	for range 100 {
		tenant := NewTenant(1)
		for range 100 {
			pool.Ready(task(tenant.NewFlow(), Session, func(*Turn) bool { return true }), nil)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		pool.Step()
	}
}

// BenchmarkChannel is the reference: a goroutine woken through a channel, and back.
func BenchmarkChannel(b *testing.B) {
	ping, pong := make(chan struct{}), make(chan struct{})
	go func() {
		for range ping {
			pong <- struct{}{}
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		ping <- struct{}{}
		<-pong
	}
	close(ping)
}

// BenchmarkDecode is admission of one small frame.
func BenchmarkDecode(b *testing.B) {
	pool := NewPool(PoolConfig{})
	tenant := NewTenant(1)
	b.ReportAllocs()
	for b.Loop() {
		pool.Decode(tenant, 128, func() {})
	}
}
