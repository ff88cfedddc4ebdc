package bridge

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Broker carries the events of topics and keeps their history. See the package
// for what holds for every call.
type Broker interface {
	// Publish sequences a batch in its order, keeps what is buffered, and hands
	// it to every sink of the topic, this node's included. done gets one
	// Published for each Publication, in order, before or after the sinks get
	// the events; the slice is its own. The batch may be reused once Publish has
	// returned, the events in it may not.
	//
	// Each publication is judged by itself: one that is refused leaves the rest
	// of the batch untouched and takes no offset.
	Publish(topic codec.Topic, r Retention, batch []Publication, done func([]Published))

	// Read reads a page of the topic's history. The answer is one instant's:
	// whether the position holds, the head and the events belong together.
	Read(topic codec.Topic, req ReadRequest, done func(Page, *codec.Error))

	// Subscribe begins to bring the topic's events to s, which must be
	// comparable. One that already has the topic begins anew: it gets Subscribed
	// again, and each event still once.
	Subscribe(topic codec.Topic, s Sink)

	// Unsubscribe ends it. What was sequenced before Unsubscribe returned may
	// still be under way and arrive afterwards; nothing later does. Without a
	// subscription it does nothing.
	Unsubscribe(topic codec.Topic, s Sink)

	// Attempt makes sure that of the commands with one name one is done: the first
	// is told so, and calls Settle when it has been; those that come meanwhile wait
	// for what that says, later ones get the first result within its window.
	Attempt(topic codec.Topic, a Attempt, done func(Attempted))

	// Settle ends an attempt, by whatever the command came to. One whose time was
	// over means nothing any more.
	Settle(topic codec.Topic, s Settlement)

	// Health tells how well events reach other nodes. It never waits.
	Health() Health

	// Watch calls changed with the present Health, before it returns, and then
	// with each later one until stop is called: one call at a time, the latest
	// last; one that another has overtaken may be left out. One call may still be
	// under way when stop returns.
	Watch(changed func(Health)) (stop func())

	// Close ends the broker, and returns when its goroutines have ended: so it
	// is not called from a callback. It is idempotent.
	Close()
}

// Retention is the history of a room's kind. It comes with every publish, so
// that a broker knows nothing of kinds; that of the last buffered event which was
// accepted is in force.
type Retention struct {
	Events      int           // newest events kept; below 1 the topic has no history, and a buffered publication is refused
	Age         time.Duration // how long an event is kept, from when the broker took it, whatever the event says of its time; 0: no bound
	Bytes       int64         // sum of Event.Size over what is kept; 0: no bound but the tenant's budget
	DedupWindow time.Duration // how long a DedupKey is remembered, from its first acceptance on; 0: keys are ignored
}

// Publication is one event on its way into a topic.
type Publication struct {
	// Event has no position yet.
	Event *codec.Event

	// Buffered events get the topic's next offset and are kept. Others move
	// nothing: they are handed to the other nodes, and this node's room has them
	// already, so that a broker never brings them back to it.
	Buffered bool

	// DedupKey, together with Event.From and the topic, names this publication:
	// another with the same name within the window is answered with the first
	// one's result, whatever its event. Empty: none. Only what was accepted is
	// remembered. Whoever publishes an event that is not buffered with a key
	// waits for done before it delivers it.
	DedupKey string

	// Expires is the instant from which on the event is refused (CodeExpired)
	// rather than sequenced. Zero: never. A repeat of an accepted event still
	// gets its result. Instants from time.Now are compared by the monotonic clock.
	Expires time.Time
}

// Published is what became of one Publication.
//
// Err is nil if it was accepted. Otherwise its code is
//   - CodeExpired: too late;
//   - CodeTooLarge: larger than the topic's history, or than the whole budget, can hold;
//   - CodeUnsupported: buffered, where the topic has no history;
//   - CodeQuotaExceeded: for want of budget, or new rooms of the tenant come too fast;
//   - CodeUnavailable: not known to be published; repeat it with its DedupKey;
//   - CodeInternal: the topic's offsets are used up (codec.MaxOffset).
type Published struct {
	EID       string         // of the event that was accepted, the first one's for a repeat
	Position  codec.Position // zero for an event that is not buffered
	Duplicate bool           // answered from memory; this Publication's event goes nowhere
	Err       *codec.Error
}

// ReadRequest asks for a page of history.
type ReadRequest struct {
	// Since is the position to read from: forward the events after it, in
	// reverse those before it. Without HasSince: from the oldest kept, in
	// reverse from the newest.
	Since    codec.Position
	HasSince bool

	Limit   int  // events at most; below 1: none, which asks for head and validity alone
	Bytes   int  // sum of Event.Size at most, but always one event when there is one; below 1: no bound
	Reverse bool // newest first
}

// Page is a part of a topic's history at one instant.
type Page struct {
	// Head is the newest position of the topic; its epoch is never empty.
	Head codec.Position

	// Events are consecutive, each with its position.
	Events []*codec.Event

	// More tells that history goes on beyond Events, in the direction of the read.
	More bool

	// Reset tells why Since cannot be served; Events is then empty.
	// ResetEpoch: it is no position of this history: another epoch, or an offset
	// that this epoch has not reached. ResetExpired: forward, not everything
	// after it is still kept. A position at the head is whole even when nothing
	// is kept. Reverse reads do not expire: they end where the history ends.
	Reset codec.ResetReason
}
