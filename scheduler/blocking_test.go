package scheduler

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Work that ends its goroutine, as FailNow of a test does, takes no place with it:
// what waits behind it is begun, and Stop does not wait for it.
func TestBlockingWorkThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(PoolConfig{Workers: 1, BlockingWorkers: 2})
		pool.Start()
		tenant := NewTenant(1) // has one place of the two
		begun := 0
		for range 3 {
			if !pool.Block(tenant, runtime.Goexit) || !pool.Block(tenant, func() { begun++ }) {
				t.Fatal("no place in the line")
			}
		}
		synctest.Wait()
		if begun != 3 {
			t.Errorf("%d of 3 pieces of work were begun", begun)
		}
		pool.Stop()
		if running := pool.Stats().Blocks; running != 0 {
			t.Errorf("%d are still counted", running)
		}
	})
}
