package scheduler

import (
	"sync"
	"sync/atomic"
	"testing"

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
		f.until = func() bool { return c.task.state.Load() == idle }
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
