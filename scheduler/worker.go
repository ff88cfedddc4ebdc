package scheduler

import (
	"sync/atomic"
	"time"
)

// worker runs groups, one after the other.
type worker struct {
	turn Turn
	pool *Pool // immutable

	// owned by the worker while it runs a group, else guarded by Pool.mu
	group group
	count uint64 // groups so far

	// returnedMore is what a stuck Run returned in the end. Owned by the worker.
	returnedMore bool

	// at names the Run that goes on, by the group's count and the task's index+1, 0 between groups, and has the results of those before
	// it. The worker advances it by compare and swap, the watchdog sets atStuck; whoever is first has the group. A worker that fails
	// touches nothing of the group until it holds Pool.mu, and finds all but its own task settled.
	at atomic.Uint64

	// guarded by Pool.mu
	seen     uint64 // what the watchdog found in at
	since    int64  // when it found it first
	stuck    bool
	stuckAt  int  // index of the task whose Run it is
	replaced bool // by a substitute: ends when its Run returns
}

// The layout of worker.at: index+1, a bit per task that has more to do, the group's count.
const (
	atIndex = 1<<atMore - 1
	atStuck = atIndex
	atMore  = 8
	atCount = atMore + groupTasks
)

func newWorker(p *Pool) *worker {
	w := &worker{pool: p}
	w.turn.pool = p
	w.turn.Buffer = make([]byte, 0, WriteBytes)
	return w
}

// loop is the worker's goroutine. It ends with the pool, or after a Run for which it was replaced.
func (w *worker) loop() {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for w.await() {
		p.mu.Unlock()
		took := w.run()
		p.mu.Lock()
		w.settle(took)
		if w.replaced {
			p.rouse() // this one does not take what it has left
			break
		}
	}
	p.forget(w)
}

// await takes the next group, asleep while there is none; false when the pool has stopped. Under Pool.mu.
func (w *worker) await() bool {
	p := w.pool
	for !p.stopped {
		if p.core.next(&w.group) {
			p.rouse()
			return true
		}
		p.sleepers++
		p.work.Wait() // who signals counts the sleeper off
		w.turn.start = 0
	}
	return false
}

// run runs the group and returns how long it took. Its end is the start of the next one: one reading of the clock a group.
func (w *worker) run() time.Duration {
	t, g := &w.turn, &w.group
	if t.start == 0 {
		t.start = w.pool.now()
	}
	t.begin(g.control)
	w.count++
	n, budget, ran := g.n, g.budget, int64(0)
	at := w.count<<atCount | 1
	w.at.Store(at)
	for i := 0; ; i++ {
		more := g.tasks[i].runner.Run(t)
		t.runs++
		next := at + 1
		if more {
			next |= 1 << (atMore + i)
		}
		spent := t.spent()
		last := i+1 == n || t.late || spent >= budget
		if last {
			next &^= atIndex
		}
		if !w.at.CompareAndSwap(at, next) {
			w.returnedMore = more
			break
		}
		ran = max(ran+1, spent)
		g.ran[i] = ran
		if last {
			g.done, g.more = i+1, moreOf(next)
			break
		}
		at = next
	}
	return time.Duration(w.pool.now() - t.start)
}

func moreOf(at uint64) uint32 { return uint32(at >> atMore & (1<<groupTasks - 1)) }

// settle gives the pool what the group has done and spent. Under Pool.mu.
func (w *worker) settle(took time.Duration) {
	p, g, t := w.pool, &w.group, &w.turn
	if w.stuck {
		p.returned(w)
	}
	p.counted.count(t, took)
	p.core.settle(g)
	t.flush()
	p.core.charge(g, realCost(t.spent(), took))
	p.core.resume(g)
	t.start += int64(took)
	g.reset()
}
