package memory

import "time"

// bucket limits how fast a tenant makes rooms: rate a second, bursts of ten
// seconds' worth. It is pure.
type bucket struct {
	rate float64 // 0: no limit
	left float64
	last int64
}

func newBucket(rate int, now int64) bucket {
	return bucket{rate: float64(rate), left: 10 * float64(rate), last: now}
}

func (b *bucket) take(now int64) bool {
	if b.rate == 0 {
		return true
	}
	b.left = min(10*b.rate, b.left+b.rate*time.Duration(now-b.last).Seconds())
	b.last = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
