package backpressure

import (
	"sync"
	"time"
)

// Rate is how much may pass in a second. 0: as much as wants to.
type Rate struct {
	Messages int
	Bytes    int64
}

// burst is what may pass at once after a pause, in time.
const burst = int64(2 * time.Second)

// Meter holds what passes to a Rate. It is safe for concurrent use, and allocates
// nothing.
type Meter struct {
	mu              sync.Mutex
	messages, bytes bucket // guarded by mu
}

// NewMeter makes a Meter that is full; nil, which lets everything pass, if r sets
// no limit.
func NewMeter(r Rate) *Meter {
	if r == (Rate{}) {
		return nil
	}
	return &Meter{messages: bucket{rate: int64(r.Messages)}, bytes: bucket{rate: r.Bytes}}
}

// Take lets a message of n bytes pass, or says how long it has to wait; then
// nothing was taken. A message larger than a burst passes when the meter is full.
// now is of a clock that does not go back, in nanoseconds.
func (m *Meter) Take(now int64, n int) (wait time.Duration) {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	message, bytes := m.messages.after(now, 1), m.bytes.after(now, int64(n))
	if wait := max(message, bytes) - now - burst; wait > 0 {
		return time.Duration(wait)
	}
	m.messages.full, m.bytes.full = message, bytes
	return 0
}

// bucket is a token bucket, kept as the instant at which it will be full: what is
// taken puts that off by the time in which so much may pass, never beyond a burst
// from now.
type bucket struct {
	rate int64 // a second; 0: no limit
	full int64
}

// after is when it would be full if n were taken now.
func (b *bucket) after(now, n int64) int64 {
	if b.rate == 0 {
		return now
	}
	takes := burst
	if n/2 < b.rate {
		takes = n * int64(time.Second) / b.rate // overflows beyond 8 GiB, which no message has
	}
	return max(b.full, now) + takes
}
