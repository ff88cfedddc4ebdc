package scheduler

import "sync/atomic"

// Turn is what a Run may use. There is one per worker, and it is valid during the Run only.
type Turn struct {
	// Control: do control-lane work only.
	Control bool
	// Buffer is the worker's scratch for writes: empty, with a capacity of WriteBytes.
	Buffer []byte
	// Scratch is the tasks' own, kept by the worker from one Run to the next: memory that would otherwise be each task's.
	Scratch any

	pool *Pool // immutable

	// owned by the worker
	start int64 // when the group began
	runs  int64
	items int
	bytes int
	late  bool

	// owned by the worker, not yet in Pool.counted
	frames  int
	written int
	samples uint32 // calls of Sample

	// The wake-ups gathered so far. The worker alone adds, by a compare and swap of gathered; a watchdog that finds the worker stuck takes
	// them over, so that nobody waits for a Run that does not return.
	wakeups  [wakeBatch]wakeup
	gathered atomic.Uint32
}

type wakeup struct {
	task *Task
	flow *Flow
}

// takenOver as the number of gathered wake-ups: the watchdog has taken them, and later ones go to the pool at once.
const takenOver = wakeBatch + 1

// Spend adds items messages with bytes bytes in all to the cost of the Run. A Run costs at least one unit.
func (t *Turn) Spend(items, bytes int) {
	t.items += items
	t.bytes += bytes
}

// Now is the time at which the group began, on the clock of Pool.Now. It costs nothing.
func (t *Turn) Now() int64 { return t.start }

// Overdue reports that the group has run for BatchTime: the Run should return, and its group ends with it. It reads the clock, some 40 ns:
// ask every few messages.
func (t *Turn) Overdue() bool {
	if !t.late {
		t.late = t.pool.now()-t.start >= int64(BatchTime)
	}
	return t.late
}

// Pool is the pool that runs this turn.
func (t *Turn) Pool() *Pool { return t.pool }

// Wake is Pool.Ready, gathered: the pool is told at the end of the group, or of 64 tasks, under one lock.
func (t *Turn) Wake(task *Task, flow *Flow) {
	if flow == nil {
		flow = task.home
	}
	n := t.gathered.Load()
	if n == wakeBatch {
		t.pool.mu.Lock()
		t.flush()
		t.pool.mu.Unlock()
		n = t.gathered.Load()
	}
	if n < wakeBatch {
		t.wakeups[n] = wakeup{task, flow}
		if t.gathered.CompareAndSwap(n, n+1) {
			return
		}
	}
	t.pool.tell(task, flow)
}

// flush tells the pool what was gathered. Under Pool.mu, by the worker.
func (t *Turn) flush() {
	if n := t.gathered.Load(); n != takenOver {
		t.hand(n)
		t.gathered.Store(0)
	}
}

// takeOver does the same for a worker that is stuck. Under Pool.mu, by the watchdog.
func (t *Turn) takeOver() { t.hand(t.gathered.Swap(takenOver)) }

func (t *Turn) hand(n uint32) {
	if n == 0 {
		return
	}
	for i := range t.wakeups[:n] {
		w := &t.wakeups[i]
		t.pool.core.add(w.task, w.flow)
		*w = wakeup{}
	}
	t.pool.rouse()
}

// begin prepares for a group.
func (t *Turn) begin(control bool) {
	t.Control = control
	t.runs, t.items, t.bytes, t.late = 0, 0, 0, false
}

// spent is the model's cost so far.
func (t *Turn) spent() int64 { return max(t.runs, modelCost(t.items, t.bytes)) }
