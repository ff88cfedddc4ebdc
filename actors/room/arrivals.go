package room

import (
	"sync"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// What may wait between the broker and the room.
const (
	arrivalsItems = 256
	arrivalsBytes = 1 << 20
)

// arrivals is the room's sink: the broker fills it from any goroutine, the room
// empties it. What it has no place for it forgets, all but how far the topic
// has got, and the room reads it from the broker.
type arrivals struct {
	room   *mailbox.Mailbox // immutable
	signal mailbox.Signal

	// guarded by mu
	mu    sync.Mutex
	queue arrived
	items int
	bytes int
}

// arrived is what came since the room looked last, in order of its fields.
type arrived struct {
	subscribed bool
	err        *codec.Error // of the subscription
	start      codec.Position
	batches    []bridge.Batch
	head       codec.Position // something up to here was forgotten; zero: of more than one epoch
	gap        bool
}

// beyond notes that the topic has got as far as p.
func (a *arrived) beyond(p codec.Position) {
	switch {
	case !a.gap:
		a.gap, a.head = true, p
	case a.head.Epoch != p.Epoch:
		a.head = codec.Position{} // which of them holds is for the broker to say
	default:
		a.head.Offset = max(a.head.Offset, p.Offset)
	}
}

var _ bridge.Sink = (*arrivals)(nil)

// Subscribed is the broker's. It begins anew: what came before belongs to an
// earlier subscription.
func (a *arrivals) Subscribed(head codec.Position, err *codec.Error) {
	a.mu.Lock()
	a.queue = arrived{subscribed: true, start: head, err: err}
	a.items, a.bytes = 0, 0
	a.mu.Unlock()
	a.room.Raise(&a.signal, 1)
}

// Arrived is the broker's.
func (a *arrivals) Arrived(b bridge.Batch) {
	size := 0
	for _, e := range b.Events {
		size += e.Size()
	}
	a.mu.Lock()
	switch last := b.Events[len(b.Events)-1].Position; {
	case !a.queue.gap && a.items+len(b.Events) <= arrivalsItems && (a.bytes+size <= arrivalsBytes || a.items == 0):
		a.queue.batches = append(a.queue.batches, b)
		a.items += len(b.Events)
		a.bytes += size
	case !last.IsZero():
		a.queue.beyond(last)
	}
	a.mu.Unlock()
	a.room.Raise(&a.signal, 1)
}

// Gap is the broker's.
func (a *arrivals) Gap(head codec.Position) {
	a.mu.Lock()
	a.queue.beyond(head)
	a.mu.Unlock()
	a.room.Raise(&a.signal, 1)
}

// take is the room's.
func (a *arrivals) take() arrived {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.queue
	a.queue = arrived{}
	a.items, a.bytes = 0, 0
	return q
}
