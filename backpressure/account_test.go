package backpressure

import (
	"math/rand/v2"
	"sync"
	"testing"
)

func TestAccountIsAllOrNothing(t *testing.T) {
	node := NewAccount(nil, 100)
	tenant := NewAccount(node, 60)
	a, b := NewAccount(tenant, 50), NewAccount(tenant, 0)
	for _, tt := range []struct {
		name               string
		do                 func() bool
		ok                 bool
		a, b, tenant, node int64
	}{
		{"fits", func() bool { return a.Charge(40) }, true, 40, 0, 40, 40},
		{"over its own limit", func() bool { return a.Charge(11) }, false, 40, 0, 40, 40},
		{"over its parent's", func() bool { return b.Charge(21) }, false, 40, 0, 40, 40},
		{"no limit of its own", func() bool { return b.Charge(20) }, true, 40, 20, 60, 60},
		{"forced past all", func() bool { a.Force(50); return true }, true, 90, 20, 110, 110},
		{"nothing fits now", func() bool { return b.Charge(1) }, false, 90, 20, 110, 110},
		{"released", func() bool { a.Release(90); b.Release(20); return true }, true, 0, 0, 0, 0},
	} {
		if ok := tt.do(); ok != tt.ok {
			t.Errorf("%s: %v", tt.name, ok)
		}
		if a.Used() != tt.a || b.Used() != tt.b || tenant.Used() != tt.tenant || node.Used() != tt.node {
			t.Errorf("%s: %d %d %d %d", tt.name, a.Used(), b.Used(), tenant.Used(), node.Used())
		}
	}
}

// Whatever happens at once, no account is ever above its limit by what was granted, and in the end all are at zero.
func TestAccountUnderConcurrency(t *testing.T) {
	const limit = 1000
	node := NewAccount(nil, limit)
	var granted, most int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 16 {
		tenant := NewAccount(node, 500)
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 9))
			session := NewAccount(tenant, 300)
			for range 2000 {
				n := int64(1 + rnd.IntN(200))
				if !session.Charge(n) {
					continue
				}
				mu.Lock()
				granted += n
				most = max(most, granted)
				granted -= n
				mu.Unlock()
				session.Release(n)
			}
		})
	}
	wg.Wait()
	if node.Used() != 0 || node.Faults() != 0 || most > limit {
		t.Errorf("at the end %d used, %d faults; at most %d granted", node.Used(), node.Faults(), most)
	}
}

func TestReleaseBelowZero(t *testing.T) {
	node := NewAccount(nil, 0)
	a := NewAccount(node, 0)
	a.Charge(10)
	defer func() {
		if r := recover(); (r != nil) != checked {
			t.Errorf("panic %v, checked build %v", r, checked)
		}
		if !checked && (a.Used() != 0 || node.Used() != 0 || a.Faults() != 5 || node.Faults() != 5) {
			t.Errorf("used %d and %d, faults %d and %d", a.Used(), node.Used(), a.Faults(), node.Faults())
		}
	}()
	a.Release(15)
}

func BenchmarkAccount(b *testing.B) {
	a := NewAccount(NewAccount(NewAccount(nil, 1<<40), 1<<40), 1<<40)
	b.ReportAllocs()
	for b.Loop() {
		a.Charge(100)
		a.Release(100)
	}
}

// BenchmarkAccountReference is one counter under a mutex.
func BenchmarkAccountReference(b *testing.B) {
	var mu sync.Mutex
	used := 0
	for b.Loop() {
		mu.Lock()
		used += 100
		mu.Unlock()
		mu.Lock()
		used -= 100
		mu.Unlock()
	}
}
