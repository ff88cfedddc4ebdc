package memory

import (
	"sync"

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
func (d delivery) hand() {
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

func (d delivery) weight() int { return len(d.batch.Events) }

func (delivery) bounds() (calls, weight int) { return maxDeliveries, maxDeliveryEvents }

// call is one that a topic owes to somebody.
type call interface {
	hand() // makes it; no lock is held
	weight() int
	bounds() (calls, weight int) // of what waits in one outbox
}

// outbox keeps a topic's calls in order while no lock is held: at most one goroutine
// hands out at a time. It is pure, but for deliver.
type outbox[C call] struct {
	busy    bool // a goroutine is handing out and will come for more
	lost    bool // a call did not fit: another that makes up for it is owed once the rest is out
	waiting backpressure.Ring[C]
	weight  int // of waiting
}

// offer takes c on. With mine the caller hands it out itself, by deliver, after
// unlocking. Not taken: there is no place for it.
func (o *outbox[C]) offer(c C) (mine, taken bool) {
	if !o.busy {
		o.busy = true
		return true, true
	}
	calls, weight := c.bounds()
	if o.waiting.Len() >= calls || o.weight+c.weight() > weight {
		return false, false
	}
	o.weight += c.weight()
	o.waiting.Push(c)
	return false, true
}

// next is what to hand out now; with none the caller is done handing out.
func (o *outbox[C]) next(makeUp func() C) (c C, ok bool) {
	if c, ok = o.waiting.Pop(); ok {
		o.weight -= c.weight()
		return c, true
	}
	if o.lost {
		o.lost = false
		return makeUp(), true
	}
	o.busy, o.waiting = false, backpressure.Ring[C]{}
	return c, false
}

// deliver hands out c and whatever waits behind it. The caller was told to by offer,
// and does not hold mu, which guards the outbox.
func (o *outbox[C]) deliver(mu *sync.Mutex, c C, makeUp func() C) {
	idle := false
	defer func() {
		if !idle { // somebody panicked: let the next caller hand out the rest
			mu.Lock()
			o.busy = false
			mu.Unlock()
		}
	}()
	for !idle {
		c.hand()
		var more bool
		mu.Lock()
		c, more = o.next(makeUp)
		mu.Unlock()
		idle = !more
	}
}
