package client

import "time"

// The bounds of waiting between attempts.
const (
	backoffBase = 500 * time.Millisecond
	backoffCap  = 20 * time.Second
)

// backoff is exponential with full jitter: many clients that were lost at once
// come back spread out.
type backoff struct {
	n      int
	random func(n int64) int64 // in [0, n)
}

// spread is a range of time in which the server asks clients to come back. Without
// an end above 0 it is none.
type spread struct{ low, high time.Duration }

// next is any moment up to the bound, which doubles with each call.
func (b *backoff) next() time.Duration {
	bound := backoffCap
	if b.n < 6 { // 500 ms · 2^6 is beyond the cap
		bound = backoffBase << b.n
		b.n++
	}
	return time.Duration(b.random(int64(bound) + 1))
}

// within is any moment of a range.
func (b *backoff) within(s spread) time.Duration {
	return s.low + time.Duration(b.random(int64(max(0, s.high-s.low))+1))
}

func (b *backoff) reset() { b.n = 0 }
