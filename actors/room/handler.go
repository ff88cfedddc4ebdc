package room

import (
	"github.com/yaza-dev/pulse/codec"
)

// Handler is a room's own code. One instance serves one room on one node, its
// methods run one at a time, inside the room's actor, and must not block: what
// blocks goes through Context.Go. A Handler that panics costs the request that made
// it panic, and what it had under way: timers, work, answers left for later. A new
// instance then takes its place.
//
// Publish decides about an event that a client wants to publish: it returns nil
// to accept it as it is, changes it and returns nil, or returns an error to
// refuse it. What the client is told then: a *codec.Error as it is (see Refuse),
// any other error as forbidden without its text. Publish runs on the node of
// the publisher only; state that all nodes share is changed in Apply.
//
// What else a handler wants to do it says by implementing Joiner, Leaver,
// Commander, Ticker, Applier or Snapshotter.
type Handler interface {
	Publish(ctx *Context, e *Event) error
}

// Joiner decides about who wants to join: nil allows it, an error denies it as
// for Publish. It may change the member's Data.
type Joiner interface {
	Join(ctx *Context, m *Member) error
}

// Leaver hears of a member that has left, for whatever reason. What the member
// published shortly before may come after it.
type Leaver interface {
	Leave(ctx *Context, m *Member)
}

// Applier follows the room's buffered events: Apply gets each of them once, in
// order of offset, on every node that has the room, and must do the same with
// the same events everywhere. It can refuse nothing: the event has happened. A timer
// or work that it asks for is asked for on each node, and again by a handler that is
// made anew and applies what its snapshot does not have.
type Applier interface {
	Apply(ctx *Context, e *Applied)
}

// Snapshotter tells and takes the state that its Apply calls have led to. The
// engine keeps a snapshot every Kind.SnapshotEvery events for as long as the room
// lives. A room that has ended, since nobody was in it, leaves its history alone:
// the next one applies what is kept of it, and where that is not all it begins
// without state and tells none.
type Snapshotter interface {
	Applier
	// Snapshot returns the state, as a value that encoding/json can encode. Who
	// joins, or is reset, is given it as data.
	Snapshot() (any, error)
	// Restore takes the state that an earlier instance told after the event at
	// the position; Apply goes on from there.
	Restore(state codec.Data, at codec.Position) error
}

// Event is what somebody wants to publish.
type Event struct {
	Name string     // declared by the kind; not to be changed
	Data codec.Data // may be replaced, see SetData
	// From and Session say who publishes; both are empty when it is the
	// embedder.
	From, Session string
}

// SetData replaces the event's data by a Go value.
func (e *Event) SetData(v any) error {
	data, err := codec.NewData(v)
	if err != nil {
		return err
	}
	e.Data = data
	return nil
}

// Applied is a buffered event that has happened. It is shared and immutable.
type Applied = codec.Event

// Member is one session in the room.
type Member struct {
	Subject string
	Session string
	// Data is what it joined with, or what a Joiner made of it.
	Data codec.Data
}

// Refuse makes an error that a client gets as it is: one of the protocol's
// codes, and a fixed text.
func Refuse(code codec.Code, message string) error { return codec.NewError(code, message) }
