package scheduler

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Against a naive one: a map of when each timer fires.
func TestWheelModel(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var w wheel
		timers := make([]Timer, 50)
		want := map[*Timer]uint64{}
		now := uint64(0)
		for range 5000 {
			timer := &timers[rnd.IntN(len(timers))]
			switch rnd.IntN(4) {
			case 0, 1:
				tick := now + uint64(rnd.Int64N(1<<rnd.IntN(36)))
				w.set(timer, tick)
				want[timer] = max(tick, w.elapsed+1)
			case 2:
				w.clear(timer)
				delete(want, timer)
			case 3:
				now += uint64(rnd.Int64N(1 << rnd.IntN(20)))
				if next, ok := w.next(); ok && rnd.IntN(2) == 0 {
					now = max(now, next) // often, as the wheel's goroutine does
				}
				for fired := w.pop(now); fired != nil; fired = w.pop(now) {
					if tick, ok := want[fired]; !ok || tick > now {
						t.Fatalf("seed %d: fired at %d, armed %v for %d", seed, now, ok, tick)
					}
					delete(want, fired)
				}
				for _, tick := range want {
					if tick <= now {
						t.Fatalf("seed %d: at %d one of tick %d did not fire", seed, now, tick)
					}
				}
			}
			next, ok := w.next()
			for _, tick := range want {
				if !ok || next > tick {
					t.Fatalf("seed %d: next is %d, %v; one is armed for %d", seed, next, ok, tick)
				}
			}
			if w.armed != len(want) {
				t.Fatalf("seed %d: %d armed, want %d", seed, w.armed, len(want))
			}
		}
	}
}

// In one pop, timers of earlier ticks come first.
func TestWheelFiresInOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	var w wheel
	timers := make([]Timer, 1000)
	for i := range timers {
		w.set(&timers[i], 1+uint64(rnd.Int64N(1<<18)))
	}
	var ticks []uint64
	for timer := w.pop(1 << 18); timer != nil; timer = w.pop(1 << 18) {
		ticks = append(ticks, timer.tick)
	}
	if len(ticks) != len(timers) || !slices.IsSorted(ticks) {
		t.Errorf("%d fired, in order: %v", len(ticks), slices.IsSorted(ticks))
	}
}

func TestWheelOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWheel()
		w.Start()
		defer w.Stop()
		for _, d := range []time.Duration{-1, 0, 1, 9 * time.Millisecond, Tick, 15 * time.Millisecond, 640 * time.Millisecond, time.Second, 41 * time.Second, time.Hour, 100 * time.Hour} {
			fired := make(chan struct{})
			var timer Timer
			timer.Init(func() { close(fired) })
			time.Sleep(3 * time.Millisecond)
			start := time.Now()
			w.Set(&timer, d)
			<-fired
			if took := time.Since(start); took < d || took > max(d, 0)+2*Tick || d > 0 && took > d+Tick {
				t.Errorf("%v: fired after %v", d, took)
			}
		}
		if w.Armed() != 0 {
			t.Errorf("%d armed after all have fired", w.Armed())
		}
	})
}

// An earlier timer wakes a goroutine that sleeps for a later one.
func TestWheelEarlierTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWheel()
		w.Start()
		defer w.Stop()
		var late, early Timer
		late.Init(func() { t.Error("the later one fired") })
		w.Set(&late, time.Hour)
		synctest.Wait()
		fired := make(chan struct{})
		early.Init(func() { close(fired) })
		start := time.Now()
		w.Set(&early, time.Second)
		<-fired
		if took := time.Since(start); took > time.Second+Tick {
			t.Errorf("fired after %v", took)
		}
	})
}

// dapr/dapr#6517: arming a timer again leaked the old ones.
func TestB091ArmingAgainKeepsOne(t *testing.T) {
	w := NewWheel()
	var timer Timer
	timer.Init(func() {})
	i := 0
	allocs := testing.AllocsPerRun(1_000_000, func() {
		i++
		w.Set(&timer, time.Duration(i%1000)*time.Second)
	})
	if w.Armed() != 1 || allocs != 0 {
		t.Errorf("%d armed, %v allocations each", w.Armed(), allocs)
	}
	linked := 0
	for level := range w.wheel.levels {
		for _, list := range w.wheel.levels[level].slots {
			if list != nil {
				linked++
			}
		}
	}
	if linked != 1 || timer.next != &timer {
		t.Errorf("%d slots in use", linked)
	}
}

// lightninglabs/wavelength#394: an expiry that blocked on a full mailbox stopped all timers. Here an expiry only flags: A is full and its
// worker stuck, and still B's is on time and A's is not lost.
func TestB134StuckTargetStopsNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(PoolConfig{Workers: 2})
		pool.Start()
		wheel := NewWheel()
		wheel.Start()
		free := make(chan struct{})
		var expiredA atomic.Bool
		var seenA, runsA int
		a := task(NewTenant(1).NewFlow(), Actor, func(*Turn) bool {
			if runsA++; runsA == 1 {
				<-free
			} else if expiredA.Swap(false) {
				seenA++
			}
			return false
		})
		doneB := make(chan time.Time, 1)
		b := task(NewTenant(1).NewFlow(), Actor, once(func() { doneB <- time.Now() }))
		pool.Ready(a, nil)
		var timerA, timerB Timer
		timerA.Init(func() { expiredA.Store(true); pool.ReadyControl(a) })
		timerB.Init(func() { pool.ReadyControl(b) })
		start := time.Now()
		wheel.Set(&timerA, 50*time.Millisecond)
		wheel.Set(&timerB, 50*time.Millisecond)
		if late := (<-doneB).Sub(start) - 50*time.Millisecond; late > Tick {
			t.Errorf("B's timer was %v late", late)
		}
		close(free)
		synctest.Wait()
		if seenA != 1 {
			t.Errorf("A saw its expiry %d times", seenA)
		}
		wheel.Stop()
		pool.Stop()
	})
}

// After Clear has returned, or Set has armed the timer again, the old expiry does not come late.
func TestClearIsFinal(t *testing.T) {
	w := NewWheel()
	w.Start()
	defer w.Stop()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var timer Timer
			var allowed atomic.Bool
			timer.Init(func() {
				if !allowed.Load() {
					t.Error("fired after Clear or before its new time")
				}
			})
			for i := range 100 {
				allowed.Store(true)
				w.Set(&timer, 0)
				for range i * 300 { // up to some 10 ms, so that many expire right here
					allowed.Load()
				}
				if i%2 == 0 {
					w.Clear(&timer)
				} else {
					w.Set(&timer, time.Hour)
				}
				allowed.Store(false)
			}
			w.Clear(&timer)
		})
	}
	wg.Wait()
}

func TestStoppedWheelFiresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWheel()
		w.Start()
		var timer Timer
		timer.Init(func() { t.Error("fired") })
		w.Set(&timer, time.Second)
		w.Stop()
		w.Set(&timer, time.Second)
		w.Stop()
		time.Sleep(time.Minute)
	})
}

func BenchmarkWheelSet(b *testing.B) {
	w := NewWheel()
	timers := make([]Timer, 100_000)
	for i := range timers {
		w.Set(&timers[i], time.Duration(i)*time.Millisecond)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		w.Set(&timers[i%len(timers)], time.Duration(i%30_000)*time.Millisecond)
	}
}

// BenchmarkTimeAfterFunc is the reference: the runtime's own timers.
func BenchmarkTimeAfterFunc(b *testing.B) {
	timers := make([]*time.Timer, 100_000)
	for i := range timers {
		timers[i] = time.AfterFunc(time.Hour+time.Duration(i)*time.Millisecond, func() {})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		timers[i%len(timers)].Reset(time.Hour + time.Duration(i%30_000)*time.Millisecond)
	}
	for _, timer := range timers {
		timer.Stop()
	}
}
