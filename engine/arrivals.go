package engine

import (
	"net/netip"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
)

const (
	// pacedFor is how long a source is remembered after it came last: by then it has
	// its whole burst again, as one that never came.
	pacedFor = 4 * time.Second
	// maxPaced is how many sources are remembered at most, twice: so many different
	// ones at once are the node's rate's business.
	maxPaced = 1 << 15
)

// arrivals judges how fast connections come: all together, and those of one source.
type arrivals struct {
	perSource backpressure.Rate   // immutable
	all       *backpressure.Meter // has its own lock; nil: no limit

	// guarded by mu
	mu       sync.Mutex
	now, old map[netip.Addr]*backpressure.Meter // by source; what is in neither has come long ago
	turned   int64                              // when now began
}

// newArrivals makes one for so many connections a second; below 0: no limit.
func newArrivals(all, perSource int) *arrivals {
	return &arrivals{
		all:       backpressure.NewMeter(backpressure.Rate{Messages: max(0, all)}),
		perSource: backpressure.Rate{Messages: max(0, perSource)},
		now:       make(map[netip.Addr]*backpressure.Meter),
	}
}

// take lets one more connection of a source come, or says how long it should wait,
// and whether that is the source's own limit. now is of a clock that does not go
// back, in nanoseconds.
func (a *arrivals) take(now int64, source netip.Addr) (wait time.Duration, own bool) {
	if wait := a.of(now, source).Take(now, 0); wait > 0 {
		return wait, true
	}
	return a.all.Take(now, 0), false
}

// of is the meter of a source; nil: there is no limit.
func (a *arrivals) of(now int64, source netip.Addr) *backpressure.Meter {
	if a.perSource.Messages == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now-a.turned > int64(pacedFor) || len(a.now) >= maxPaced {
		a.old, a.now, a.turned = a.now, make(map[netip.Addr]*backpressure.Meter), now
	}
	m := a.now[source]
	if m == nil {
		if m = a.old[source]; m == nil {
			m = backpressure.NewMeter(a.perSource)
		}
		a.now[source] = m
	}
	return m
}

// source is who an address counts as: in IPv6 a network of 64 bits is one host's to
// choose from.
func source(a netip.Addr) netip.Addr {
	if a = a.Unmap(); !a.Is6() {
		return a
	}
	p, _ := a.WithZone("").Prefix(64) // fails for other lengths only
	return p.Addr()
}
