package scheduler

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Against a naive one: lists of who waits and who is in, and the keys in the order in which they came up for a turn.
func TestTurnstileModel(t *testing.T) {
	type waiter struct {
		key, id int
		place   *list.Element
	}
	for _, tt := range []struct{ places, perKey, line int }{{1, 0, 0}, {3, 0, 0}, {4, 2, 3}, {1, 1, 1}} {
		for seed := range uint64(50) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			stile := newTurnstile[int, int](tt.places, tt.perKey, tt.line)
			var waiting []waiter
			var in []waiter
			held := map[int]int{}
			inLine := map[int]int{}
			passed := map[int]int{} // key: others let in while it might have been
			mayEnter := func(k int) bool { return tt.perKey == 0 || held[k] < tt.perKey }
			for id := range 3000 {
				switch op := rnd.IntN(5); {
				case op < 2:
					k := rnd.IntN(6)
					ok, place := stile.enter(k, id)
					wantIn := len(in) < tt.places && mayEnter(k)
					wantLine := !wantIn && (tt.line == 0 || inLine[k] < tt.line)
					if ok != wantIn || (place != nil) != wantLine {
						t.Fatalf("%v seed %d: enter %d: in %v, waits %v; want %v, %v", tt, seed, k, ok, place != nil, wantIn, wantLine)
					}
					if ok {
						in = append(in, waiter{k, id, nil})
						held[k]++
					} else if place != nil {
						waiting = append(waiting, waiter{k, id, place})
						inLine[k]++
					}
				case op < 4 && len(in) > 0:
					i := rnd.IntN(len(in))
					w := in[i]
					in = slices.Delete(in, i, i+1)
					held[w.key]--
					key, id, ok := stile.leave(w.key)
					want := slices.ContainsFunc(waiting, func(w waiter) bool { return mayEnter(w.key) })
					if ok != want {
						t.Fatalf("%v seed %d: next %v, want %v", tt, seed, ok, want)
					}
					if !ok {
						continue
					}
					first := slices.IndexFunc(waiting, func(w waiter) bool { return w.key == key })
					if first < 0 || waiting[first].id != id || !mayEnter(key) {
						t.Fatalf("%v seed %d: let in %d of key %d out of order", tt, seed, id, key)
					}
					in = append(in, waiting[first])
					waiting = slices.Delete(waiting, first, first+1)
					held[key]++
					inLine[key]--
					for k := range 6 {
						if passed[k]++; k == key || inLine[k] == 0 || !mayEnter(k) {
							passed[k] = 0
						}
						if passed[k] > 6 {
							t.Fatalf("%v seed %d: key %d was passed over", tt, seed, k)
						}
					}
				case len(waiting) > 0:
					i := rnd.IntN(len(waiting))
					w := waiting[i]
					waiting = slices.Delete(waiting, i, i+1)
					if inLine[w.key]--; inLine[w.key] == 0 {
						passed[w.key] = 0
					}
					if !stile.cancel(w.key, w.place) || stile.cancel(w.key, w.place) {
						t.Fatalf("%v seed %d: cancel", tt, seed)
					}
				}
			}
			for _, w := range waiting {
				stile.cancel(w.key, w.place)
			}
			for _, w := range in {
				stile.leave(w.key)
			}
			if len(stile.keys) != 0 || stile.order.Len() != 0 || stile.free != tt.places {
				t.Fatalf("%v seed %d: at rest %d keys, %d in order, %d free", tt, seed, len(stile.keys), stile.order.Len(), stile.free)
			}
		}
	}
}

// A thousand connections of one address delay another one by at most a handshake.
func TestGateIsFairByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(1)
		ctx := t.Context()
		if err := gate.Acquire(ctx, "flood"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		enter := func(key string) {
			if err := gate.Acquire(ctx, key); err != nil {
				t.Error(err)
			}
			mu.Lock()
			order = append(order, key)
			mu.Unlock()
			gate.Release()
		}
		for range 1000 {
			go enter("flood")
		}
		synctest.Wait()
		go enter("other")
		synctest.Wait()
		gate.Release()
		synctest.Wait()
		if i := slices.Index(order, "other"); i > 1 || len(order) != 1001 {
			t.Errorf("the other address was number %d of %d", i, len(order))
		}
	})
}

func TestGateCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(1)
		ctx, cancel := context.WithCancel(t.Context())
		if err := gate.Acquire(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() { failed <- gate.Acquire(ctx, "b") }()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if err := gate.Acquire(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v with a context that has ended", err)
		}
		gate.Release()
		if err := gate.Acquire(t.Context(), "c"); err != nil { // the place of b was not lost
			t.Error(err)
		}
	})
}

// Cancelled and let in at the same moment: the place comes back, whoever wins.
func TestGateLosesNoPlace(t *testing.T) {
	gate := NewGate(2)
	var inside, most atomic.Int32
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				go cancel()
				if gate.Acquire(ctx, string(rune('a'+i%5))) == nil {
					most.Store(max(most.Load(), inside.Add(1)))
					inside.Add(-1)
					gate.Release()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if gate.fair.stile.free != 2 || most.Load() > 2 {
		t.Errorf("%d places free at the end, %d inside at once", gate.fair.stile.free, most.Load())
	}
}

func TestDecodersAreBoundedAndFairByTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(PoolConfig{})
		places := runtime.GOMAXPROCS(0)
		free := make(chan struct{})
		flood, other := NewTenant(1), NewTenant(1)
		var inside, most atomic.Int32
		var mu sync.Mutex
		var order []*Tenant
		decode := func(t *Tenant) {
			pool.Decode(t, 0, func() {
				most.Store(max(most.Load(), inside.Add(1)))
				mu.Lock()
				order = append(order, t)
				mu.Unlock()
				<-free
				inside.Add(-1)
			})
		}
		for range 100 + places {
			go decode(flood)
		}
		synctest.Wait()
		go decode(other)
		synctest.Wait()
		for range 2 * places {
			free <- struct{}{}
			synctest.Wait()
		}
		mu.Lock()
		if i := slices.Index(order, other); i < 0 {
			t.Errorf("the other tenant is not among the first %d", len(order))
		}
		mu.Unlock()
		close(free)
		synctest.Wait()
		if int(most.Load()) != places {
			t.Errorf("%d decoded at once, want %d", most.Load(), places)
		}
	})
}

func TestBlockingWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 4
		pool := NewPool(PoolConfig{BlockingWorkers: workers})
		flood, other := NewTenant(1), NewTenant(1)
		free := make(chan struct{})
		var running, most atomic.Int32
		var done [2]atomic.Int32
		block := func(t *Tenant, i int) bool {
			return pool.Block(t, func() {
				most.Store(max(most.Load(), running.Add(1)))
				<-free
				running.Add(-1)
				done[i].Add(1)
			})
		}
		taken := 0
		for range 1000 {
			if block(flood, 0) {
				taken++
			}
		}
		synctest.Wait()
		if taken != workers/2+BlockLine || running.Load() != workers/2 {
			t.Errorf("of one tenant %d taken, %d running; want %d and %d", taken, running.Load(), workers/2+BlockLine, workers/2)
		}
		if !block(other, 1) {
			t.Error("the other tenant was refused")
		}
		synctest.Wait()
		if running.Load() != workers/2+1 {
			t.Error("the other tenant waits behind the flood")
		}
		close(free)
		synctest.Wait()
		if int(done[0].Load()) != taken || done[1].Load() != 1 || most.Load() > workers {
			t.Errorf("done %d and %d, at most %d at once", done[0].Load(), done[1].Load(), most.Load())
		}
		if pool.blocking.running != 0 || len(pool.blocking.stile.keys) != 0 {
			t.Error("goroutines or keys left when idle")
		}
	})
}
