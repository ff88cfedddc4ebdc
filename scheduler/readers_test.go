package scheduler

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A pool that is not started and never steps would keep a reader in debt for ever if there were anybody to owe it to.
func TestReaderInDebtIsForgivenByAnIdlePool(t *testing.T) {
	s := newSim()
	tenant := NewTenant(1)
	n := 0
	for range 1000 {
		s.pool.Decode(tenant, 100<<10, func() { n++ })
	}
	if n != 1000 {
		t.Errorf("%d of 1000 decoded", n)
	}
}

// A tenant more than two quanta in debt has its readers wait; the rotation pays a quantum a visit, at the pace of the others' turns.
func TestReadersInDebtWaitForTheRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const visits = 100
		s := newSim()
		other := NewTenant(1).NewFlow()
		for range 2 { // one of them is ready while the other runs, or a debt would be forgiven then
			s.job(other, Actor).add(-1)
		}
		s.pool.Step()
		tenant := NewTenant(1)
		var decoded atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 2 + visits {
				s.pool.Decode(tenant, (4*Quantum-1)<<10, func() { decoded.Add(1) }) // four quanta each
			}
		}()
		synctest.Wait()
		first := decoded.Load()
		if first != 1 {
			t.Errorf("%d decoded on credit, want 1", first)
		}
		start := s.spent
		for more := true; more; {
			select {
			case <-done:
				more = false
			default:
				s.pool.Step()
				synctest.Wait()
			}
		}
		perFrame := float64(s.spent-start) / float64(decoded.Load()-first)
		within(t, "units of the other tenant per four quanta of decoding", perFrame, 4*Quantum, 0.05)
	})
}

// What readers spend is spent for the tenant's tasks too.
func TestDecodingIsChargedToTheTenant(t *testing.T) {
	s := newSim()
	greedy, other := NewTenant(1), NewTenant(1)
	a, b := s.job(greedy.NewFlow(), Session), s.job(other.NewFlow(), Session)
	a.add(-1)
	b.add(-1)
	decoded := int64(0)
	for s.spent < 500_000/scale {
		s.pool.Step()
		if decoded < s.spent/4 { // a quarter of all there is
			s.pool.Decode(greedy, 7<<10, func() {})
			decoded += 8
		}
	}
	within(t, "decoding and tasks of one", float64(a.spent+decoded), float64(b.spent), 0.02)
}

// Measured time corrects the model here too.
func TestSlowDecodingCostsMore(t *testing.T) {
	s := newSim()
	tenant := NewTenant(1)
	s.pool.Decode(tenant, 0, func() { s.pass(3 * UnitTime) })
	if got := tenant.decoded.Load(); got != 3 {
		t.Errorf("charged %d, want 3", got)
	}
}

// A barred tenant has nobody who pays its debts: its readers are let in.
func TestReadersOfABarredTenantAreNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim()
		busy := s.job(NewTenant(1).NewFlow(), Session)
		busy.add(-1)
		tenant := NewTenant(1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 10 {
				s.pool.Decode(tenant, 1<<20, func() {})
			}
		}()
		synctest.Wait()
		s.pool.mu.Lock()
		waiting := len(tenant.readers)
		s.pool.mu.Unlock()
		if waiting != 1 {
			t.Fatal("no reader waits")
		}
		s.pool.mu.Lock()
		s.pool.core.bar(tenant, true)
		s.pool.mu.Unlock()
		<-done
	})
}

func TestStopLetsReadersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim()
		s.job(NewTenant(1).NewFlow(), Session).add(-1)
		tenant := NewTenant(1)
		go func() {
			for range 10 {
				s.pool.Decode(tenant, 1<<20, func() {})
			}
		}()
		synctest.Wait()
		s.pool.Stop() // the bubble ends only if the reader does
	})
}
