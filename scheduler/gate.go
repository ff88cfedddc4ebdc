package scheduler

import (
	"context"
	"sync"
)

// Gate lets a bounded number of handshakes through at once, and those who wait round robin by key, an address: a thousand connections from
// one address delay another address by one handshake. Who waits is a goroutine of the caller; the caller bounds their number.
type Gate struct{ fair *fairGate[string] }

// NewGate makes a gate for n at once, at least 1.
func NewGate(n int) *Gate { return &Gate{newFairGate[string](max(n, 1))} }

// Acquire waits for a place until ctx ends; its error is ctx's.
func (g *Gate) Acquire(ctx context.Context, key string) error { return g.fair.acquire(ctx, key) }

// Release gives the place back. Once for each Acquire without an error.
func (g *Gate) Release() { g.fair.release() }

// fairGate is a semaphore over a turnstile.
type fairGate[K comparable] struct {
	mu    sync.Mutex
	stile turnstile[K, chan struct{}] // guarded by mu
}

func newFairGate[K comparable](n int) *fairGate[K] {
	return &fairGate[K]{stile: newTurnstile[K, chan struct{}](n, 0, 0)}
}

func (g *fairGate[K]) acquire(ctx context.Context, key K) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.stile.free > 0 {
		g.stile.enter(key, nil)
		g.mu.Unlock()
		return nil
	}
	in := make(chan struct{})
	_, waiting := g.stile.enter(key, in)
	g.mu.Unlock()
	select {
	case <-in:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	canceled := g.stile.cancel(key, waiting)
	g.mu.Unlock()
	if !canceled {
		g.release() // let in at the same moment
	}
	return ctx.Err()
}

func (g *fairGate[K]) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	var any K
	if _, in, ok := g.stile.leave(any); ok {
		close(in)
	}
}
