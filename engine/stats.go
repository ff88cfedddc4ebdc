package engine

import (
	"sync/atomic"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/actors/tenant"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// Stats are what an Engine holds at a moment, and what it has counted since it was
// started. Nothing in it is about one tenant, room or client.
type Stats struct {
	Sessions    int   // connections whose hello was accepted, that have not ended
	Tenants     int   // that are used
	QueueBytes  int64 // what the ledger has booked for queues
	ReplayBytes int64 // and for what rooms hold for replay

	// Closes are connections that have ended, by codec.Cause.
	Closes [codec.CauseAbrupt + 1]uint64
	// UnknownTypes are frames of a type that this build does not know.
	UnknownTypes uint64

	// What follows is what slow readers cost, in the order in which it is taken from
	// them.

	// Coalesced events were replaced by a newer one of their key while they waited
	// for a client, by backpressure.Lane.
	Coalesced [backpressure.Lanes]uint64
	// Expired events waited for a client beyond their ttl.
	Expired [backpressure.Lanes]uint64
	// Shed events of the lossy and the bulk lane gave way in a full queue to one that
	// is kept, or that somebody waits for.
	Shed [backpressure.Lanes]uint64
	// Dropped events did not fit a client's queue, by lane and backpressure.Policy;
	// under drop_oldest the older ones that made place for them.
	Dropped [backpressure.Lanes][backpressure.Policies]uint64
	// Behind is how often a member was left behind by a full queue, Unacked by a
	// full window of events that it has not acknowledged.
	Behind, Unacked uint64
	// Fed events came from the history, to members that were behind or resumed.
	Fed uint64
	// Resets were told to members, by codec.ResetReason.
	Resets [codec.ResetOverflow + 1]uint64
}

// counts are what the engine's own code counts; atomics.
type counts struct {
	closes             [codec.CauseAbrupt + 1]atomic.Uint64
	faults             message.Refusals // frames of sessions
	messages, received atomic.Uint64    // of clients after their hello, and their bytes; while measured
	outages            atomic.Uint64    // of the broker, as watch is told
	restarts           [len(restartKinds)]atomic.Uint64
}

// restartKinds are the kinds of actors that go on after a fault.
var restartKinds = [...]string{room.ActorKind.Name, tenant.ActorKind.Name}

// Stats tells what there is and what was counted; it never waits. The numbers are
// read one after the other, so that sums over them may be off by what happens
// meanwhile.
func (e *Engine) Stats() Stats {
	h, c := e.Health(), &e.out.Counts
	s := Stats{
		Sessions: h.Sessions, Tenants: h.Tenants, QueueBytes: e.queue.Used(), ReplayBytes: e.replay.Used(),
		UnknownTypes: e.counts.faults[codec.CodeUnknownType].Load(),
		Behind:       c.Behind.Load(), Unacked: c.Unacked.Load(), Fed: c.Fed.Load(),
	}
	load(s.Closes[:], e.counts.closes[:])
	load(s.Coalesced[:], c.Coalesced[:])
	load(s.Expired[:], c.Expired[:])
	load(s.Shed[:], c.Shed[:])
	load(s.Resets[:], c.Resets[:])
	for l := range s.Dropped {
		load(s.Dropped[l][:], c.Dropped[l][:])
	}
	return s
}

func load(dst []uint64, from []atomic.Uint64) {
	for i := range dst {
		dst[i] = from[i].Load()
	}
}
