package room

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// The declared policies of a kind, with names of their own so that an embedder
// needs this package only.
type (
	Delivery    = message.Delivery
	Publishers  = message.Publishers
	EventPolicy = message.EventPolicy
	History     = message.History
)

const (
	AtLeastOnce = message.AtLeastOnce
	AtMostOnce  = message.AtMostOnce
	Transient   = message.Transient

	Members = message.Members
	Grant   = message.Grant
	Server  = message.Server

	Any = message.Any
)

// Defaults of what a Kind leaves at zero.
const (
	DefaultHistoryEvents = 256
	DefaultHistoryAge    = 5 * time.Minute
	DefaultHistoryBytes  = 1 << 20
	DefaultMailboxItems  = 1024
	DefaultMailboxBytes  = 4 << 20
	DefaultDedupWindow   = 2 * time.Minute
	DefaultLinger        = 30 * time.Second
	DefaultPresenceLimit = 1000
	DefaultSnapshotEvery = 64
)

// Kind declares the rooms whose name is Name, or begins with Name and a colon.
// The zero value of every field but Name is a default.
type Kind struct {
	// Name of the kind, or Any for the kinds that are not listed.
	Name string
	// New makes the handler of one room; it must have no side effects. Nil:
	// every event is accepted as it is.
	New func() Handler
	// History of buffered events: zero fields mean 256 events, 5 minutes,
	// 1 MiB. NoHistory keeps none; then no event may be buffered.
	History   History
	NoHistory bool
	// DedupWindow is how long a dedup key is remembered; 0: 2 minutes,
	// negative: not at all.
	DedupWindow time.Duration
	// Publish says who may publish; zero: members.
	Publish Publishers
	// Events by name, Any for those not listed. Nil: every event is
	// at_least_once, interactive, reject.
	Events map[string]EventPolicy
	// MailboxItems and MailboxBytes bound each lane of a room's mailbox; zero:
	// 1,024 and 4 MiB.
	MailboxItems, MailboxBytes int
	// Linger is how long a room without members keeps its handler; zero: 30 s.
	Linger time.Duration
	// Presence lets members see who else is in the room. PresenceLimit is how
	// many are listed, beyond only their number is told; zero: 1,000.
	Presence      bool
	PresenceLimit int
	// SnapshotEvery is after how many applied events the engine takes a snapshot
	// of a Snapshotter, for the handler's successor; zero: 64.
	SnapshotEvery int
	// Tick is how often a Ticker is called while the room has members; at least
	// LeastTick, 10 ms; zero: never.
	Tick time.Duration
}

// Fault is one thing that is wrong with a declared kind.
type Fault struct {
	Kind    string
	Event   string // that declares it so; empty: the kind itself
	Problem string
}

func (f *Fault) Error() string {
	if f.Event == "" {
		return fmt.Sprintf("room: kind %q: %s", f.Kind, f.Problem)
	}
	return fmt.Sprintf("room: kind %q: event %q: %s", f.Kind, f.Event, f.Problem)
}

// Policy fills the defaults in and reports every fault of the declaration: its
// error joins a *Fault for each.
func (k Kind) Policy() (*message.Policy, error) {
	p := &message.Policy{
		Name:         k.Name,
		Kind:         &k,
		History:      k.History,
		DedupWindow:  cmp.Or(k.DedupWindow, DefaultDedupWindow),
		Publish:      k.Publish,
		Lane:         backpressure.Interactive,
		MailboxItems: cmp.Or(k.MailboxItems, DefaultMailboxItems),
		MailboxBytes: cmp.Or(k.MailboxBytes, DefaultMailboxBytes),
		Linger:       cmp.Or(k.Linger, DefaultLinger),
		Presence:     k.Presence, PresenceLimit: cmp.Or(k.PresenceLimit, DefaultPresenceLimit),
		Events: make(map[string]*EventPolicy, len(k.Events)),
	}
	if k.NoHistory {
		p.History = History{}
	} else {
		p.History.Events = cmp.Or(k.History.Events, DefaultHistoryEvents)
		p.History.Age = cmp.Or(k.History.Age, DefaultHistoryAge)
		p.History.Bytes = cmp.Or(k.History.Bytes, DefaultHistoryBytes)
	}
	var faults []error
	fault := func(event, problem string) { faults = append(faults, &Fault{k.Name, event, problem}) }
	if k.Name != Any && !codec.ValidKind(k.Name) {
		fault("", "no valid name of a kind")
	}
	if p.History.Events < 0 || p.History.Age < 0 || p.History.Bytes < 0 {
		fault("", "a history cannot be negative")
	}
	if k.SnapshotEvery < 0 {
		fault("", "SnapshotEvery cannot be negative")
	}
	if k.Tick != 0 && k.Tick < LeastTick {
		fault("", fmt.Sprintf("a tick is at least %v", LeastTick))
	}
	if p.MailboxItems < 0 || p.MailboxBytes < 0 || p.Linger < 0 || p.PresenceLimit < 0 {
		fault("", "bounds of mailbox and presence, and linger, cannot be negative")
	}
	events := k.Events
	if events == nil {
		events = map[string]EventPolicy{Any: {Delivery: AtLeastOnce, Lane: backpressure.Interactive, Overflow: backpressure.Reject}}
	}
	buffered := ""
	for _, name := range slices.Sorted(maps.Keys(events)) {
		e := events[name]
		if name != Any && !codec.ValidEvent(name) {
			fault(name, "no valid name of an event")
		}
		for _, problem := range faultsOfEvent(e, k.NoHistory) {
			fault(name, problem)
		}
		if e.Delivery == AtLeastOnce {
			switch {
			case buffered == "":
				buffered, p.Lane = name, e.Lane
			case p.Lane != e.Lane:
				fault(name, fmt.Sprintf("buffered in another lane than %q", buffered))
			}
		}
		p.Acks = p.Acks || e.Overflow == backpressure.RequireAck
		p.Events[name] = &e
	}
	return p, errors.Join(faults...)
}

func faultsOfEvent(e EventPolicy, noHistory bool) (faults []string) {
	add := func(problem string) { faults = append(faults, problem) }
	buffered := e.Delivery == AtLeastOnce
	switch {
	case e.Lane == backpressure.Control:
		add("the control lane is the engine's own")
	case buffered && noHistory:
		add("at_least_once needs a history")
	}
	switch e.Overflow {
	case backpressure.DropOldest, backpressure.CoalesceLatest:
		if buffered {
			add("a buffered event cannot be dropped or coalesced")
		}
	case backpressure.RequireAck:
		if !buffered {
			add("require_ack is for buffered events only")
		}
	}
	if by, coalesces := e.CoalesceBy, e.Overflow == backpressure.CoalesceLatest; coalesces || by != "" {
		if err := message.CheckCoalesceBy(by); err != nil {
			add(err.Error())
		}
		if !coalesces {
			add("coalesce_by goes with coalesce_latest")
		}
	}
	return faults
}
