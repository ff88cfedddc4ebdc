package room

import (
	"container/heap"
	"errors"
	"time"
)

// MaxTimers is how many timers a room may have.
const MaxTimers = 1024

// ErrTooManyTimers: the room has MaxTimers already.
var ErrTooManyTimers = errors.New("room: too many timers")

// Timer is a call that a handler has asked for, see Context.After.
type Timer struct {
	f    func(*Context)
	at   int64 // by the pool's clock
	seq  uint64
	rank int // in timers; -1: not there
	room *Room
}

// After calls f in the room, once, d from now or a little later: alone, as all of
// the handler's methods are. The timer ends with the handler: one that was made
// anew, or ends with its room, which does not stay for a timer, is called by none.
// Calls that are due at once come in the order of their times.
func (c *Context) After(d time.Duration, f func(*Context)) (*Timer, error) {
	r, leave := c.enter()
	defer leave()
	ts := &r.handler.timers
	if len(ts.heap) >= MaxTimers {
		return nil, ErrTooManyTimers
	}
	ts.made++
	// Saturated at about 146 years, so that the sum stays positive.
	t := &Timer{f: f, at: r.cfg.Pool.Now() + int64(min(max(d, 0), 1<<62)), seq: ts.made, room: r}
	heap.Push(&ts.heap, t)
	return t, nil
}

// Stop takes the call back. False: it was made, or its handler has ended. It is for
// the handler's own callbacks, and does nothing elsewhere.
func (t *Timer) Stop() bool {
	in := t.room.handler
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.inside != inHandler || t.rank < 0 {
		return false
	}
	heap.Remove(&in.timers.heap, t.rank)
	return true
}

// timers of the handler in place, the earliest first.
type timers struct {
	heap timerHeap
	made uint64
}

// next is when the earliest is due; 0: there is none.
func (ts *timers) next() int64 {
	if len(ts.heap) == 0 {
		return 0
	}
	return ts.heap[0].at
}

func (ts *timers) due(r *Room) bool {
	return len(ts.heap) > 0 && ts.heap[0].at <= r.cfg.Pool.Now()
}

func (ts *timers) pop() *Timer { return heap.Pop(&ts.heap).(*Timer) }

func (ts *timers) clear() {
	for _, t := range ts.heap {
		t.rank = -1
	}
	ts.heap = nil
}

func (t *Timer) run(r *Room) {
	r.handler.serve(r, "timer", func() { r.handler.with(r, false, t.f) })
}

// timerHeap is for container/heap alone.
type timerHeap []*Timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].rank, h[j].rank = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
	t.rank = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.rank = -1
	return t
}
