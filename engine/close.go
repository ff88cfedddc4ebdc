package engine

import (
	"context"
	"time"
)

// stuckGrace is how long Close waits for actors to end when a handler is known
// not to return: the rest end at once, and that one never does.
const stuckGrace = 2 * time.Second

// Close ends the Engine in order: no more connections; every session is closed
// with 1012 behind what was queued for it, within the write timeout; then rooms
// and tenants end, then what carries them. It is idempotent, may be called from
// anywhere, a handler included, and returns when all is done or ctx ends; what is
// still under way then goes on.
func (e *Engine) Close(ctx context.Context) error {
	if !e.closing.Swap(true) {
		go e.shutdown()
	}
	select {
	case <-e.closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shutdown is the one goroutine that ends everything. Every step has its bound.
func (e *Engine) shutdown() {
	defer close(e.closed)

	e.leave()
	sessions, cancel := context.WithTimeout(context.Background(), e.cfg.Limits.WriteTimeout+time.Second)
	defer cancel()
	tenants := e.all()
	for _, n := range tenants {
		n.Close()
	}
	for _, n := range tenants {
		select {
		case <-n.Ending():
		case <-sessions.Done():
			n.Cut()
		}
	}
	// The reader goroutines end with their connections; who has not gone by the
	// deadline is cut.
	if err := e.sockets.Shutdown(sessions); err != nil {
		e.cfg.Logger.Info("connections were cut at the deadline", "err", err)
	}

	e.rest()
	e.awaitActors()
	e.unwatch()
	if e.unmeasure != nil {
		e.unmeasure()
	}
	e.leases.close()
	if e.ownLeases != nil {
		e.ownLeases.Close()
	}
	if e.ownBroker != nil {
		e.ownBroker.Close()
	}
	if e.cfg.Presence == nil {
		e.presence.Close()
	}
	e.wheel.Stop()
	e.pool.Stop()
}

// awaitActors waits until every actor's Stopped has returned.
func (e *Engine) awaitActors() {
	done := e.system.Close()
	for {
		select {
		case <-done:
			return
		case <-time.After(stuckGrace):
			if n := e.stuckActors.Load(); n > 0 {
				e.cfg.Logger.Error("closed without actors that did not return", "actors", n)
				return
			}
		}
	}
}
