package scheduler

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// sim drives a pool by steps. Its clock moves by what jobs spend, so that measured time agrees with the model unless a test says otherwise.
type sim struct {
	pool  *Pool
	now   atomic.Int64 // ns; readers look at it while the simulation runs
	spent int64        // units, by all
}

func newSim() *sim {
	s := &sim{}
	s.now.Store(1)
	s.pool = NewPool(PoolConfig{Now: s.now.Load})
	return s
}

// run steps until the jobs have spent so many units more, or nothing is ready.
func (s *sim) run(units int64) {
	for end := s.spent + units; s.spent < end && s.pool.Step(); {
	}
}

// job is a task with a queue of items that each cost something.
type job struct {
	s    *sim
	task Task

	cost func() int // of one item; nil: 1
	each func(*Turn)

	left  int // items; below 0: endless
	runs  int
	spent int64

	mark    int64 // what all had spent when it began to wait
	fresh   bool  // it began to wait by becoming ready
	longest [2]int64
	onRun   func(waited int64, fresh bool)
}

func (s *sim) job(f *Flow, c Class) *job {
	j := &job{s: s}
	j.task.Init(j, f, c)
	return j
}

func fixed(n int) func() int { return func() int { return n } }

// add queues items.
func (j *job) add(n int) {
	if j.left == 0 {
		j.mark, j.fresh = j.s.spent, true
	}
	j.left += n
	j.s.pool.Ready(&j.task, nil)
}

func (j *job) Run(t *Turn) bool {
	waited := j.s.spent - j.mark
	if j.onRun != nil {
		j.onRun(waited, j.fresh)
	}
	i := 0
	if j.fresh {
		i = 1
	}
	j.longest[i] = max(j.longest[i], waited)
	j.runs++
	if j.left != 0 {
		c := 1
		if j.cost != nil {
			c = j.cost()
		}
		j.s.spend(t, c)
		j.spent += int64(c)
		j.left--
	}
	if j.each != nil {
		j.each(t)
	}
	j.mark, j.fresh = j.s.spent, false
	return j.left != 0
}

func (s *sim) spend(t *Turn, c int) {
	t.Spend(c, 0)
	s.spent += int64(c)
	s.pass(time.Duration(c) * UnitTime)
}

// pass lets time pass.
func (s *sim) pass(d time.Duration) { s.now.Add(int64(d)) }

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if got < want*(1-tolerance) || got > want*(1+tolerance) {
		t.Errorf("%s: %.1f, want %.1f within %.0f %%", what, got, want, 100*tolerance)
	}
}

func atMost(t *testing.T, what string, got, limit int64) {
	t.Helper()
	if got > limit {
		t.Errorf("%s: %d, at most %d", what, got, limit)
	}
}

func sizeOf[T any]() uintptr { return unsafe.Sizeof(*new(T)) }
