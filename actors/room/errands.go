package room

import (
	"context"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// errand is something that the handler is to do and that did not come through the
// room's mailbox. It waits, as requests do, until the handler has applied
// everything.
type errand interface {
	run(r *Room)
	drop() // the room has ended
}

// errands are what the handler in place has under way beside its requests. They
// are done in every other batch of the room before its messages and else behind
// them, so that neither starves the other when the handler is slow.
type errands struct {
	// of the room
	list       []errand // in order; bounded by what is counted below
	attempting int      // commands that wait for the broker, and for their turn
	working    int      // of ctx.Go: at work, or waiting for their turn
	first      bool     // they come before the messages in the next batch
	clock      scheduler.Timer
	clockAt    int64 // for when the clock is set, by the pool's time; 0: it is not

	// of the handler in place
	replies replies
	timers  timers
	ticks   ticks
	life    context.Context // nil: nobody has asked for it
	end     context.CancelFunc
}

// alive is the context that ends with the handler in place.
func (es *errands) alive() context.Context {
	if es.life == nil {
		es.life, es.end = context.WithCancel(context.Background())
	}
	return es.life
}

// dismiss ends what the handler in place has under way. Nothing of it reaches the
// next one.
func (es *errands) dismiss(r *Room) {
	if es.life != nil {
		es.end()
		es.life, es.end = nil, nil
	}
	es.timers.clear()
	es.ticks = ticks{}
	for _, c := range es.replies.list {
		c.Answer(r.turn, codec.Data{}, errInstanceEnded)
	}
	es.replies = replies{}
}

// shut ends all of it: the room has ended.
func (es *errands) shut(r *Room) {
	es.dismiss(r)
	for _, e := range es.list {
		e.drop()
	}
	es.list = nil
	r.cfg.Wheel.Clear(&es.clock)
}

// busy: something is under way that the room must not end before.
func (es *errands) busy() bool {
	return es.attempting > 0 || es.working > 0 || es.replies.count(0) > 0
}

// crowded: as many commands as the room's mailbox may hold are under way.
func (es *errands) crowded(r *Room) bool {
	limit := r.cfg.Policy.MailboxItems
	return es.attempting+es.replies.count(limit) >= limit
}

// errandsMost is how many errands one batch of the room does at most.
const errandsMost = scheduler.BatchMessages

// errandsFirst tells whether errands come before the messages of this batch.
func (r *Room) errandsFirst() bool {
	if r.handler == nil {
		return false
	}
	r.handler.first = !r.handler.first
	return r.handler.first
}

// runErrands does what waits and what is due.
func (r *Room) runErrands() {
	if r.handler == nil {
		return
	}
	es := &r.handler.errands
	for range errandsMost {
		if !r.handlerFree() || r.slow() {
			return
		}
		switch {
		case len(es.list) > 0:
			e := es.list[0]
			es.list[0] = nil
			es.list = es.list[1:]
			e.run(r)
		case es.timers.due(r):
			es.timers.pop().run(r)
		case es.ticks.due(r):
			es.ticks.run(r)
		default:
			return
		}
		r.turn.Spend(1, 0)
	}
}

// handlerFree: the handler may be given something to do.
func (r *Room) handlerFree() bool {
	return r.phase == open && r.handler.ready(r.seq.pos) && !r.fanout.busy()
}

// planErrands makes sure that the room runs when something is to be done. What
// stands in the way now ends in a batch, which comes here again.
func (r *Room) planErrands() {
	if r.handler == nil || r.phase != open {
		return
	}
	es := &r.handler.errands
	es.ticks.plan(r)
	if !r.handlerFree() {
		return
	}
	at := es.timers.next()
	if t := es.ticks.next; t != 0 && (at == 0 || t < at) {
		at = t
	}
	if len(es.list) > 0 || at != 0 && at <= r.cfg.Pool.Now() {
		r.mb.Raise(&r.own, again)
		return
	}
	switch {
	case at == es.clockAt:
	case at == 0:
		r.cfg.Wheel.Clear(&es.clock)
		es.clockAt = 0
	default:
		r.cfg.Wheel.Set(&es.clock, time.Duration(at-r.cfg.Pool.Now()))
		es.clockAt = at
	}
}
