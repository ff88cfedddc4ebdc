package mailbox

import (
	"sync/atomic"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// OutboundCounts count what slow readers cost, over all sessions that share them.
// They are atomics, touched only where a delivery does not go through as it is.
type OutboundCounts struct {
	// Dropped events are lost to one member, by lane and policy: one that did not
	// fit, or under drop_oldest the older one that made place.
	Dropped [backpressure.Lanes][backpressure.Policies]atomic.Uint64
	// Coalesced events were replaced by a newer one while they waited.
	Coalesced [backpressure.Lanes]atomic.Uint64
	// Shed events gave way to one that is kept, or that somebody waits for.
	Shed [backpressure.Lanes]atomic.Uint64
	// Expired events waited for longer than their ttl.
	Expired [backpressure.Lanes]atomic.Uint64
	// Behind memberships were left behind by a full queue, Unacked ones by a full
	// window of unacknowledged events; each time counts.
	Behind, Unacked atomic.Uint64
	// Resets were told to memberships, in a frame or in the reply to a join.
	Resets [codec.ResetOverflow + 1]atomic.Uint64
	// Fed events came from the buffer, to a membership that was behind.
	Fed atomic.Uint64
}

// CountReset counts that a membership of the session is told of a reset.
func (o *Outbound) CountReset(reason codec.ResetReason) { o.cfg.Counts.Resets[reason].Add(1) }
