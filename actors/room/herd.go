package room

import (
	"sync"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// What a tenant's members, who were reset, may fetch at once elsewhere, and how many a
// second after that, as far as one node says when.
const (
	herdAtOnce = 100
	herdEach   = time.Millisecond
	herdMost   = 30 * time.Second
)

// Herd spreads what the members of one tenant do when many of them are reset at once,
// after their history was lost: each is told when its turn is. Nil: nobody waits.
type Herd struct {
	mu   sync.Mutex
	next time.Time // when whoever is reset next would have its turn; guarded by mu
}

// turn is how long one more has to wait before it fetches what it has to. Who is given
// the room's state has nothing to fetch.
func (h *Herd) turn(data codec.Data, now time.Time) time.Duration {
	if h == nil || !data.IsZero() {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if since := now.Add(-herdAtOnce * herdEach); h.next.Before(since) {
		h.next = since
	}
	if h.next = h.next.Add(herdEach); h.next.Sub(now) > herdMost {
		h.next = now.Add(herdMost)
	}
	return max(0, h.next.Sub(now))
}
