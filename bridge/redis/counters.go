package redis

import "sync/atomic"

// Counters are what a Bridge has counted since it began.
type Counters struct {
	Published, Refused   atomic.Uint64 // publications, by outcome
	Received             atomic.Uint64 // messages of rooms
	BufferWrites         atomic.Uint64 // events kept
	ReadHits, ReadMisses atomic.Uint64 // pages with events and without
	ConnectionLost       atomic.Uint64 // outages, however many connections fell
	Gaps                 atomic.Uint64 // told to sinks
	Resubscribed         atomic.Uint64 // channels, after a link was lost
	ProbesMissed         atomic.Uint64
	Unreadable           atomic.Uint64 // messages and members that were no event
}
