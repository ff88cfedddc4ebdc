package bridgetest

import (
	"sync"
	"time"
)

// Clock is the time that the suite's windows and ages are counted in. A broker
// that can take its time from elsewhere takes it from Now, and the suite steps
// it; for another the factory calls Real, and the suite really waits.
type Clock struct {
	mu sync.Mutex
	// guarded by mu
	now    time.Time
	second time.Duration // of the suite; 0: stepped
}

func newClock() *Clock {
	return &Clock{now: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// Now is the stepped time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.second > 0 {
		return time.Now()
	}
	return c.now
}

// Real says that the broker lives in real time, in which what the suite calls a
// second takes as long as given: short, but long beside what a call takes.
func (c *Clock) Real(second time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.second = second
}

// seconds is a duration to hand to the broker.
func (c *Clock) seconds(n int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.second > 0 {
		return time.Duration(n) * c.second
	}
	return time.Duration(n) * time.Second
}

// near is how many seconds from the end of a window its rule is still tried: one where
// time is stepped, and as many as a call takes on a busy machine where it is real.
func (c *Clock) near() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.second > 0 {
		return 20
	}
	return 1
}

// until lets time pass up to an instant.
func (c *Clock) until(at time.Time) {
	c.mu.Lock()
	if c.second == 0 {
		c.now = at
	}
	d := time.Until(at)
	stepped := c.second == 0
	c.mu.Unlock()
	if !stepped {
		<-time.After(d)
	}
}

func (c *Clock) pass(seconds int) { c.until(c.Now().Add(c.seconds(seconds))) }
