package scheduler

import (
	"sync"
	"time"
)

// Block runs work, which may block, on a goroutine of the blocking pool. At most PoolConfig.BlockingWorkers run at once, half of them for
// one tenant; up to BlockLine more of a tenant wait, round robin by tenant. False: that is full too, or the pool has stopped. Goroutines
// start on demand and end when nothing waits. work recovers its own panics; one that ends its goroutine leaves its place to the next.
func (p *Pool) Block(t *Tenant, work func()) bool { return p.blocking.run(t, work) }

type blocking struct {
	mu sync.Mutex

	// guarded by mu
	stile   turnstile[*Tenant, func()]
	running int
	stopped bool
	idle    chan struct{} // closed when stopped and nothing runs
}

func newBlocking(n int) *blocking {
	return &blocking{
		stile: newTurnstile[*Tenant, func()](n, max(n/2, 1), BlockLine),
		idle:  make(chan struct{}),
	}
}

func (b *blocking) run(t *Tenant, work func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	in, waiting := b.stile.enter(t, work)
	if in {
		b.running++
		go b.loop(t, work)
	}
	return in || waiting != nil
}

func (b *blocking) loop(t *Tenant, work func()) {
	ok := true
	defer func() {
		if ok { // work has ended the goroutine
			if t, work, ok = b.next(t); ok {
				go b.loop(t, work)
			}
		}
	}()
	for ok {
		work()
		t, work, ok = b.next(t)
	}
}

// next ends a piece of work and takes the following one, or ends the goroutine.
func (b *blocking) next(t *Tenant) (*Tenant, func(), bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		if t, work, ok := b.stile.leave(t); ok {
			return t, work, true
		}
	}
	b.running--
	if b.stopped && b.running == 0 {
		close(b.idle)
	}
	return nil, nil, false
}

// stop refuses new work, drops what waits, and waits for what runs, no longer than d.
func (b *blocking) stop(d time.Duration) {
	b.mu.Lock()
	if !b.stopped {
		b.stopped = true
		b.stile = turnstile[*Tenant, func()]{}
		if b.running == 0 {
			close(b.idle)
		}
	}
	b.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-b.idle:
	case <-timer.C:
	}
}
