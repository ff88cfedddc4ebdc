package room

import "time"

// Ticker is called every Kind.Tick for as long as the room has members; a room
// without members does not tick. A tick that comes late, because the room or its
// node has other work or the handler takes long, is not made up for.
type Ticker interface {
	Tick(ctx *Context)
}

// LeastTick is the shortest Kind.Tick.
const LeastTick = 10 * time.Millisecond

// heavyTicks is how many ticks in a row must take more than half of their interval
// for that to be logged.
const heavyTicks = 8

// ticks of the handler in place.
type ticks struct {
	next  int64 // when one is due, by the pool's clock; 0: not until somebody joins
	heavy int   // how many in a row took long
}

// plan begins or ends ticking.
func (ts *ticks) plan(r *Room) {
	switch {
	case r.handler.ticker == nil || r.cfg.Kind.Tick == 0 || r.members.count == 0:
		ts.next = 0
	case ts.next == 0:
		ts.next = r.cfg.Pool.Now() + int64(r.cfg.Kind.Tick)
	}
}

func (ts *ticks) due(r *Room) bool { return ts.next != 0 && ts.next <= r.cfg.Pool.Now() }

// run does one tick, and sets the next to the first of its row that is still to
// come.
func (ts *ticks) run(r *Room) {
	began, every := r.cfg.Pool.Now(), int64(r.cfg.Kind.Tick)
	h := r.handler.ticker
	if !r.handler.serve(r, "tick", func() { r.handler.with(r, false, h.Tick) }) {
		return // the next handler begins its own
	}
	now := r.cfg.Pool.Now()
	ts.next += (1 + (now-ts.next)/every) * every
	if now-began <= every/2 {
		ts.heavy = 0
		return
	}
	if ts.heavy++; ts.heavy == heavyTicks && !r.handler.warned {
		r.handler.warned = true
		r.cfg.Logger.Warn("ticks take more than half of their interval", "tenant", r.cfg.Topic.Tenant,
			"room_kind", r.cfg.Policy.Name, "interval", r.cfg.Kind.Tick, "last", time.Duration(now-began))
	}
}
