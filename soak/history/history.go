package history

import (
	"fmt"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Run is all that is known of one run.
type Run struct {
	Rooms  []Room
	Faults []Fault
}

// Room is what its publishers and members heard.
type Room struct {
	Name    string
	Kept    int // how many events its buffer keeps
	Sent    []Publication
	Members []Member
}

// Key names a publication: the publisher, and its own count from 1.
type Key struct{ Source, Number int }

// Publication is one event that was offered until it was accepted, or given up.
type Publication struct {
	Key
	Accepted bool           // its publisher heard so, else nothing is known of it
	Position codec.Position // if Accepted
	At       time.Duration  // when it was heard
}

// Member is the history of one member.
type Member struct {
	Name    string
	Entries []Entry
}

// Kind says what an Entry is.
type Kind uint8

const (
	Joined Kind = iota + 1 // the answer to a join: begins, recovered or reset
	Event
	Reset
	Left // by the server's word: nothing follows before the next Joined
	Lost // the connection: likewise
)

// Entry is one thing that a member was told.
type Entry struct {
	At        time.Duration // since the run began
	Kind      Kind
	Recovered bool              // of Joined: Position is the member's own, and what follows it comes
	Reason    codec.ResetReason // of Reset, and of a Joined that resets
	Position  codec.Position    // of the event, or where delivery begins
	Key                         // of Event
}

// String tells it in one line.
func (e Entry) String() string {
	switch {
	case e.Kind == Joined && e.Recovered:
		return fmt.Sprintf("recovered at %v", e.Position)
	case e.Kind == Joined && e.Reason == codec.ResetNone:
		return fmt.Sprintf("joined at %v", e.Position)
	case e.Kind == Joined || e.Kind == Reset:
		return fmt.Sprintf("reset (%v) to %v", e.Reason, e.Position)
	case e.Kind == Event:
		return fmt.Sprintf("publication %v at %v", e.Key, e.Position)
	case e.Kind == Left:
		return "left"
	}
	return "connection lost"
}

// Fault is what was done to the deployment, until it was whole again.
type Fault struct {
	Name     string
	Loses    bool // history may have gone with it
	From, To time.Duration
}

// Rule is what a Finding breaks.
type Rule string

const (
	Loss     Rule = "loss"     // something between two events, or before the end, is missing
	Repeat   Rule = "repeat"   // something came twice
	Disorder Rule = "disorder" // a publisher's events came in another order, or outside a membership
	Split    Rule = "split"    // two have different events at one position
	Needless Rule = "reset"    // a reset though nothing was lost
	Unknown  Rule = "unknown"  // an event that nobody offered
)

// Finding is one fault of the deployment.
type Finding struct {
	Rule         Rule
	Room, Member string
	At           time.Duration
	Text         string
}
