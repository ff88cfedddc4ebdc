package bridge

import "github.com/yaza-dev/pulse/codec"

// Sink gets what a subscription brings. Its methods are called one after
// another for one topic, in the topic's order, but on any goroutine; they only
// post, never block, and where they cannot post they remember that the head is
// at least what they were told.
type Sink interface {
	// Subscribed comes once for each Subscribe, before any of its arrivals.
	// Every event above head will arrive or be covered by a Gap. With an err
	// nothing will come: the subscription was not made.
	Subscribed(head codec.Position, err *codec.Error)

	// Arrived brings events. They may have come before.
	Arrived(b Batch)

	// Gap tells that something may have been lost on the way: the head is at
	// least this. What lies between is to be read.
	Gap(head codec.Position)
}

// Batch is a run of events of one topic. It is shared by all sinks: nobody
// changes it.
type Batch struct {
	// Previous is set when the epoch changed with this batch: the epoch before
	// and the offset at which it ended. Offsets go on across the change. A
	// follower of that epoch whose offset is not beyond its end has lost nothing
	// and goes on in the new one; any other asks by Read whether its position
	// still holds.
	Previous codec.Position

	// Events are either all buffered, with consecutive ascending offsets of one
	// epoch, or all without a position: events of other nodes that were not
	// buffered, in their publishers' order.
	Events []*codec.Event
}
