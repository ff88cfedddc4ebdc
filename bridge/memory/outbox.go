package memory

import (
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

const (
	maxDeliveries     = 1024 // waiting in one outbox
	maxDeliveryEvents = 4096 // in all of them together
)

// delivery is one call that a topic owes to its sinks: those that were
// subscribed when it was made.
type delivery struct {
	sinks []bridge.Sink
	kind  deliveryKind
	head  codec.Position // of subscribed and gap
	batch bridge.Batch   // of arrived
}

type deliveryKind uint8

const (
	arrived deliveryKind = iota
	subscribed
	gap
)

// hand makes the calls. No lock is held.
func (d *delivery) hand() {
	for _, s := range d.sinks {
		switch d.kind {
		case arrived:
			s.Arrived(d.batch)
		case subscribed:
			s.Subscribed(d.head, nil)
		case gap:
			s.Gap(d.head)
		}
	}
}

// outbox keeps a topic's deliveries in order while no lock is held: at most one
// goroutine hands out at a time. It is pure.
type outbox struct {
	busy    bool // a goroutine is handing out and will come for more
	lost    bool // arrivals did not fit: a Gap is owed once the rest is out
	waiting backpressure.Ring[delivery]
	events  int // in waiting
}

// offer takes d on. With mine the caller hands it out itself, after unlocking,
// and then whatever next gives. Not taken: there is no room for it.
func (o *outbox) offer(d delivery) (mine, taken bool) {
	if !o.busy {
		o.busy = true
		return true, true
	}
	if o.waiting.Len() >= maxDeliveries || o.events+len(d.batch.Events) > maxDeliveryEvents {
		return false, false
	}
	o.events += len(d.batch.Events)
	o.waiting.Push(d)
	return false, true
}

// next is what to hand out now; with none the caller is done handing out.
func (o *outbox) next(sinks []bridge.Sink, head codec.Position) (delivery, bool) {
	if d, ok := o.waiting.Pop(); ok {
		o.events -= len(d.batch.Events)
		return d, true
	}
	if o.lost {
		o.lost = false
		return delivery{sinks: sinks, kind: gap, head: head}, true
	}
	o.busy = false
	return delivery{}, false
}
