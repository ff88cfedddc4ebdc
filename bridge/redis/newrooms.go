package redis

import (
	"sync"
	"time"
)

// newRooms bounds how fast a tenant makes rooms: so many a second, in bursts of ten
// seconds' worth. Whether a room has a history is known when the server has answered:
// so each that this node does not know takes its place, and one that has a history
// gives it back.
type newRooms struct {
	rate func(tenant string) int // a second; 0: no limit. Immutable; nil: none for anybody

	mu   sync.Mutex
	left map[string]*allowance // of those that have used some; guarded by mu
}

// allowance is what a tenant has left at an instant.
type allowance struct {
	left float64
	at   time.Time
}

const burstOfRooms = 10 // seconds

func newNewRooms(rate func(string) int) *newRooms {
	return &newRooms{rate: rate, left: make(map[string]*allowance)}
}

// take reports whether a tenant may have one more; then it has.
func (n *newRooms) take(tenant string, now time.Time) bool {
	if n.rate == nil {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	rate := float64(n.rate(tenant))
	if rate <= 0 {
		return true
	}
	a := n.left[tenant]
	if a == nil {
		a = &allowance{left: burstOfRooms * rate, at: now}
		n.left[tenant] = a
	}
	a.fill(rate, now)
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

// giveBack: what was taken was no new room.
func (n *newRooms) giveBack(tenant string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.left[tenant]; a != nil {
		a.left++
	}
}

// look forgets who has everything.
func (n *newRooms) look(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for tenant, a := range n.left {
		rate := float64(n.rate(tenant))
		if a.fill(rate, now); a.left >= burstOfRooms*rate {
			delete(n.left, tenant)
		}
	}
}

func (a *allowance) fill(rate float64, now time.Time) {
	a.left = min(burstOfRooms*rate, a.left+rate*now.Sub(a.at).Seconds())
	a.at = now
}
