package message

import (
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
)

// Delivery is what an event's kind promises.
type Delivery uint8

const (
	// AtLeastOnce events are buffered: they have an offset and are replayed.
	AtLeastOnce Delivery = iota
	// AtMostOnce events reach live members in order and are never replayed.
	AtMostOnce
	// Transient events may be dropped on the way.
	Transient
)

var deliveries = [...]string{"at_least_once", "at_most_once", "transient"}

func (d Delivery) String() string { return deliveries[d] }

// Publishers says who may publish to rooms of a kind.
type Publishers uint8

const (
	// Members only: whoever has joined the room and has the right.
	Members Publishers = iota
	// Grant: whoever has the right, joined or not.
	Grant
	// Server: nobody but the embedder.
	Server
)

var publishers = [...]string{"members", "grant", "server"}

func (p Publishers) String() string { return publishers[p] }

// EventPolicy is what is declared of one event of a kind.
type EventPolicy struct {
	Delivery Delivery
	Lane     backpressure.Lane
	Overflow backpressure.Policy
	// CoalesceBy names what makes two events the same for CoalesceLatest:
	// "session", "from", "event", or "data.FIELD".
	CoalesceBy string
	// Secret events are never compressed.
	Secret bool
}

// Buffered says whether the event has an offset and is kept for replay.
func (p *EventPolicy) Buffered() bool { return p.Delivery == AtLeastOnce }

// History bounds what is kept of a room for replay.
type History struct {
	Events int           // 0: none
	Age    time.Duration // of an event, from its acceptance
	Bytes  int64
}

// Any is the name that stands for every kind, or every event, not listed.
const Any = "*"

// Policy is what sessions and rooms need to know of a kind, as data. It is
// immutable, and shared by all rooms of the kind.
type Policy struct {
	Name string
	// Kind is what was declared, a *room.Kind, for its rooms alone: so none of them gets
	// the code of one policy and the bounds of another, whenever kinds are declared anew.
	Kind        any
	History     History
	DedupWindow time.Duration
	Publish     Publishers
	Events      map[string]*EventPolicy
	// Lane of the kind's buffered events, and so of everything that keeps
	// order with them: replies to join and leave, reset, left.
	Lane backpressure.Lane
	// MailboxItems and MailboxBytes bound each lane of a room's mailbox.
	MailboxItems int
	MailboxBytes int
	// Linger is how long a room's actor outlives its last member.
	Linger time.Duration
	// Presence: members may see each other, as a list of at most PresenceLimit.
	Presence      bool
	PresenceLimit int
	// Acks: some event of the kind is declared require_ack.
	Acks bool
	// Meter counts, with atomics of its own. Nil: nothing is counted.
	Meter *Meter
}

// Event finds the policy of an event; nil: the kind has no such event.
func (p *Policy) Event(name string) *EventPolicy {
	if e, ok := p.Events[name]; ok {
		return e
	}
	return p.Events[Any]
}

// Declared are an engine's kinds, which may be declared anew while it runs. Set them
// before the first use.
type Declared struct{ now atomic.Pointer[Kinds] }

// Set declares the kinds, for whoever asks from now on.
func (d *Declared) Set(k Kinds) { d.now.Store(&k) }

// All kinds as they are declared now.
func (d *Declared) All() Kinds { return *d.now.Load() }

// Of finds the policy of a kind; nil: rooms of that kind do not exist.
func (d *Declared) Of(kind string) *Policy { return d.All().Of(kind) }

// Kinds are declared kinds by name; immutable.
type Kinds map[string]*Policy

// Of finds the policy of a kind; nil: rooms of that kind do not exist.
func (k Kinds) Of(kind string) *Policy {
	if p, ok := k[kind]; ok {
		return p
	}
	return k[Any]
}
