package redis

import (
	"sync/atomic"

	"github.com/yaza-dev/pulse/bridge"
)

// Counters are what a Bridge has counted since it began, beside what whoever calls it
// can count.
type Counters struct {
	ConnectionLost atomic.Uint64 // outages, however many connections fell
	Gaps           atomic.Uint64 // told to sinks
	Resubscribed   atomic.Uint64 // channels, after a link was lost
	ProbesMissed   atomic.Uint64
	Unreadable     atomic.Uint64 // messages and members that were no event
}

var _ bridge.Counted = (*Bridge)(nil)

// Counts implements bridge.Counted.
func (b *Bridge) Counts() bridge.Counts {
	c := &b.counters
	return bridge.Counts{
		Outages: c.ConnectionLost.Load(), Resubscribed: c.Resubscribed.Load(),
		ProbesMissed: c.ProbesMissed.Load(), Unreadable: c.Unreadable.Load(),
		Waiting: b.caller.waiting(),
	}
}
