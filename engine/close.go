package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// stuckGrace is how long Close waits for actors to end when a handler is known
// not to return: the rest end at once, and that one never does.
const stuckGrace = 2 * time.Second

// lifetimes are how far an Engine is on its way out, and what ends on it.
type lifetimes struct {
	// atomic
	ending  atomic.Bool // Drain or Close was called
	closing atomic.Bool // no tenant begins any more

	// immutable; each context ends as its comment says
	staying context.Context // until Drain or Close begins: what handshakes wait under
	leave   context.CancelFunc
	working context.Context // until all sessions have ended: what commands of tenants work under
	rest    context.CancelFunc
	patient context.Context // until Close is called: how long a Drain may take
	rush    context.CancelFunc
	closed  chan struct{} // closed when Close has done everything
}

func (e *lifetimes) init() {
	e.staying, e.leave = context.WithCancel(context.Background())
	e.working, e.rest = context.WithCancel(context.Background())
	e.patient, e.rush = context.WithCancel(context.Background())
	e.closed = make(chan struct{})
}

// Close ends the Engine in order: no more connections; every session is closed
// with 1012 behind what was queued for it, within the write timeout; then rooms
// and tenants end, then what carries them. It is idempotent, may be called from
// anywhere, a handler included, and returns when all is done or ctx ends; what is
// still under way then goes on. A Drain under way becomes a Close.
func (e *Engine) Close(ctx context.Context) error {
	e.rush()
	if !e.ending.Swap(true) {
		go e.shutdown(0)
	}
	return e.ended(ctx)
}

func (e *Engine) ended(ctx context.Context) error {
	select {
	case <-e.closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shutdown is the one goroutine that ends everything. Every step has its bound:
// those of a Close, or what is left of the time of a Drain. Of that four fifths are
// the clients', half of the rest is for closing who is left, and half of what then
// remains for actors.
func (e *Engine) shutdown(drain time.Duration) {
	defer close(e.closed)

	last := time.Now().Add(drain)
	e.drain(drain / 5 * 4)
	patience := func(usual time.Duration) time.Duration {
		if drain == 0 {
			return usual
		}
		return min(usual, max(0, time.Until(last)/2))
	}
	e.closing.Store(true)
	sessions, cancel := context.WithTimeout(context.Background(), patience(e.cfg.Limits.WriteTimeout+time.Second))
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
	e.awaitActors(patience(stuckGrace), drain > 0)
	e.unwatch()
	if e.unmeasure != nil {
		e.unmeasure()
	}
	e.leases.close(patience(partingTime))
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

// awaitActors waits until every actor's Stopped has returned. Once some are known
// not to return it waits for grace only; in a hurry in any case.
func (e *Engine) awaitActors(grace time.Duration, hurry bool) {
	done := e.system.Close()
	for {
		select {
		case <-done:
			return
		case <-time.After(grace):
			if n := e.stuckActors.Load(); n > 0 || hurry {
				e.cfg.Logger.Error("closed without actors that did not return", "actors", n)
				return
			}
		}
	}
}
