package scheduler

import (
	"math"
	"sync"
	"time"
)

// Timer is one expiry; embed it by value. It must not be copied after Init.
type Timer struct {
	fire func() // immutable after Init

	// guarded by Wheel.mu
	next, prev  *Timer
	at          **Timer // head of the list that it is in; nil: not armed
	tick        uint64
	level, slot uint8
}

// Init sets what the expiry does. It runs on the wheel's goroutine and under the wheel's lock: it only flags something, never blocks, and
// calls neither Set nor Clear of that wheel. Whoever handles the flag arms the timer again.
func (t *Timer) Init(fire func()) { t.fire = fire }

// link puts t into the circular list at head.
func (t *Timer) link(head **Timer) {
	t.at = head
	if *head == nil {
		*head, t.next, t.prev = t, t, t
		return
	}
	first := *head
	t.next, t.prev = first, first.prev
	t.prev.next, first.prev = t, t
}

func (t *Timer) unlink() {
	if t.next == t {
		*t.at = nil
	} else {
		t.next.prev, t.prev.next = t.prev, t.next
		if *t.at == t {
			*t.at = t.next
		}
	}
	t.next, t.prev, t.at = nil, nil, nil
}

// Wheel is the timer wheel of a node: ticks of 10 ms, monotonic. A timer fires at its time or up to one tick later, never earlier. Setting
// and clearing are O(1) and allocate nothing. One goroutine fires, asleep until the next occupied slot; it ends with Stop.
type Wheel struct {
	// immutable
	base  time.Time
	nudge chan struct{} // of 1: something is due before planned
	quit  chan struct{}
	ended chan struct{}

	mu sync.Mutex

	// guarded by mu
	wheel   wheel
	planned uint64 // the tick until which the goroutine sleeps
	started bool
	stopped bool
}

const never = math.MaxUint64

// NewWheel makes a wheel that is not started. Timers can be set at once.
func NewWheel() *Wheel {
	return &Wheel{
		base:    time.Now(),
		nudge:   make(chan struct{}, 1),
		quit:    make(chan struct{}),
		ended:   make(chan struct{}),
		planned: never,
	}
}

// Start starts the goroutine. Once.
func (w *Wheel) Start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.started && !w.stopped {
		w.started = true
		go w.loop()
	}
}

// Stop ends the goroutine and waits for it; nothing fires afterwards. It may be called again.
func (w *Wheel) Stop() {
	w.mu.Lock()
	if !w.stopped {
		w.stopped = true
		close(w.quit)
	}
	started := w.started
	w.mu.Unlock()
	if started {
		<-w.ended
	}
}

// Set arms t to fire once, d from now, in place of an earlier arming, which does not fire any more. Nothing on a wheel that has stopped.
func (w *Wheel) Set(t *Timer, d time.Duration) {
	due := time.Since(w.base) + max(d, 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.wheel.set(t, uint64((due+Tick-1)/Tick))
	if t.tick < w.planned {
		w.planned = t.tick
		select {
		case w.nudge <- struct{}{}:
		default: // it has one already
		}
	}
}

// Clear disarms t. When it has returned, t does not fire, and is not in the middle of it.
func (w *Wheel) Clear(t *Timer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wheel.clear(t)
}

// Armed is how many timers are set.
func (w *Wheel) Armed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wheel.armed
}

func (w *Wheel) loop() {
	defer close(w.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		for w.fireOne() {
		}
		if d, ok := w.plan(); ok {
			timer.Reset(d)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-w.nudge:
		case <-w.quit:
			return
		}
	}
}

// fireOne fires one timer that has expired. The lock is held over fire, so that Clear can promise what it does, and for one timer only.
func (w *Wheel) fireOne() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	t := w.wheel.pop(uint64(time.Since(w.base) / Tick))
	if t == nil {
		return false
	}
	t.fire()
	return true
}

// plan says how long to sleep; false: until nudged.
func (w *Wheel) plan() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tick, ok := w.wheel.next()
	if !ok {
		w.planned = never
		return 0, false
	}
	w.planned = tick
	return time.Duration(tick)*Tick - time.Since(w.base), true
}
