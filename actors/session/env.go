package session

import (
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// inboundItems is how many messages of a client may wait for its session.
const inboundItems = 64

// Rooms finds the rooms of a tenant.
type Rooms interface {
	// Room is the mailbox of the room, which is made if it does not exist.
	Room(name string, kind *message.Policy) (*mailbox.Mailbox, *codec.Error)
	// Forget drops a room whose mailbox said Closed, so that the next Room makes
	// it anew.
	Forget(name string, closed *mailbox.Mailbox)
}

// Limits are an engine's numbers for all sessions.
type Limits struct {
	Ping, Pong      time.Duration
	WriteTimeout    time.Duration
	ResumeTTL       time.Duration
	MaxRooms        int
	MaxMessageBytes int
	MaxFrameBytes   int
}

// Env is what the sessions of one tenant share. Immutable; NewEnv makes it.
type Env struct {
	Node   string
	Limits Limits

	// what runs them, and what they are charged to
	Pool   *scheduler.Pool
	Wheel  *scheduler.Wheel
	Tenant *scheduler.Tenant
	Queue  *backpressure.Account // of the tenant's queues
	Frames *backpressure.Account // what of it frames to clients may fill
	Rates  *Rates                // of what the tenant's clients ask for
	Out    *mailbox.OutboundConfig
	Lanes  *mailbox.LanePool

	// what they ask
	Kinds    *message.Declared
	Coalesce *message.Coalescer
	Rooms    Rooms
	Broker   bridge.Broker
	Presence bridge.Presence
	Commands func(*message.Command) *codec.Error // the tenant's own; nil: it has none
	// Authorize is asked beside the grants; nil: they alone say what is allowed.
	Authorize Authorize
	Sealer    *auth.Sealer // of resume tokens

	// what the engine says of itself
	Reach   *Reach
	Leaving *Leaving

	// what is measured
	Faults *message.Refusals // counts frames that are refused for what they are
	Timing mailbox.Timing    // is told how long sessions' messages wait; nil: nobody asks
	// Trace begins to follow a publish, or not (nil). Nil: none is followed.
	Trace func(*message.Publish) message.Trace

	mailbox *mailbox.Config // of each of them
}

// NewEnv is e, completed.
func NewEnv(e Env) *Env {
	e.mailbox = &mailbox.Config{
		Pool: e.Pool, Class: scheduler.Session, Tenant: e.Tenant, Removed: removed,
		Items: inboundItems, Bytes: 2 * e.Limits.MaxMessageBytes, Lanes: e.Lanes, Account: e.Queue, Frames: e.Frames,
		Timing: e.Timing,
	}
	return &e
}
