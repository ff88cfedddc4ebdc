package client

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Item is what a Subscription hands out: *Event, *Reset, *Presence or *Gap.
// Later versions may add others; pass over what you do not know.
type Item interface{ item() }

// Event is one event of a room.
type Event struct {
	Room, Name string
	Data       codec.Data
	ID         string         // unique per event
	Position   codec.Position // zero: not buffered
	From       string         // subject; empty when the server published
	Session    string         // likewise
	Time       time.Time
}

// Reset says that what was known of the room does not hold any more: what follows
// begins at Position, with Data for its state if the room's handler has one. The
// first item of a subscription that began without a position is one too, without
// a Reason.
type Reset struct {
	Reason   codec.ResetReason
	Position codec.Position
	Data     codec.Data
	// After, if above 0, is how long to wait before fetching state elsewhere, so
	// that not all members do it at once.
	After time.Duration
}

// Presence tells who is in the room, of a subscription that asked for it. With Full
// it replaces everything known; else Join and Update are put in and Leave is taken
// out, by subject. A room too large for lists tells its Count alone.
type Presence struct {
	Full         bool
	Members      []codec.Member // with Full
	Join, Update []codec.Member
	Leave        []string
	Count        int // with Full, or alone
}

// Gap says that the consumer was too slow for the subscription's bound. Missed
// events that are not buffered are lost. Buffered ones are not: those after
// Position follow, or a Reset where the server has them no longer.
type Gap struct {
	Position codec.Position
	Missed   int
}

func (*Event) item()    {}
func (*Reset) item()    {}
func (*Presence) item() {}
func (*Gap) item()      {}

func eventOf(e *codec.Event) *Event {
	return &Event{
		Room: e.Topic.Room, Name: e.Name, Data: e.Data, ID: e.EID, Position: e.Position,
		From: e.From, Session: e.Session, Time: time.UnixMilli(e.TS),
	}
}
