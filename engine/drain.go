package engine

import (
	"context"
	"sync"
	"time"
)

// drainTime is how long Drain takes at most if its context has no deadline.
const drainTime = 25 * time.Second

// Drain ends the Engine so that its clients notice little of it, by the deadline of
// ctx, or in 25 seconds. No connection, session or request over HTTP begins any
// more. Every client is told at once to go elsewhere, each at a time of its own,
// over four fifths of what there is; until it goes it is served as before, but for
// new commands. Who is left then is closed as by Close, with the same range. It
// returns early when nobody is left, and goes over to Close at once when ctx ends or
// Close is called.
func (e *Engine) Drain(ctx context.Context) error {
	within := drainTime
	if deadline, ok := ctx.Deadline(); ok {
		within = max(time.Until(deadline), time.Millisecond)
	}
	if !e.ending.Swap(true) {
		go e.shutdown(within)
	}
	err := e.ended(ctx)
	if err != nil {
		e.rush()
	}
	return err
}

// drain asks everybody to go, and waits until they have or the time is over.
func (e *Engine) drain(over time.Duration) {
	if over > 0 {
		e.leaving.Begin(over)
	}
	gone := e.guests.leave()
	e.leave()
	for _, n := range e.all() {
		n.Notice()
	}
	e.cfg.Logger.Info("draining", "sessions", e.sessions.Load(), "within_ms", over.Milliseconds())
	timer := time.NewTimer(over)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
	case <-e.patient.Done():
	}
}

// guests are who a drain waits for: connections, and requests over HTTP.
type guests struct {
	mu      sync.Mutex
	here    int
	leaving bool
	gone    chan struct{} // closed when they are leaving and none is here
}

// enter counts one more; false: the node is leaving.
func (g *guests) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving {
		return false
	}
	g.here++
	return true
}

// left counts one less.
func (g *guests) left() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.here--; g.here == 0 && g.leaving {
		close(g.gone)
	}
}

// leave lets nobody in any more. Once.
func (g *guests) leave() (gone <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leaving, g.gone = true, make(chan struct{})
	if g.here == 0 {
		close(g.gone)
	}
	return g.gone
}

func (g *guests) areLeaving() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leaving
}
