package client

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Hurry keeps a client's waits between attempts short.
func Hurry(c *Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life.backoff.random = func(n int64) int64 { return rand.Int64N(min(n, int64(5*time.Millisecond))) }
}

// Bounds tells up to how long each wait between attempts may be. The client itself
// hardly waits. The first hundred are kept.
func Bounds(c *Client) <-chan time.Duration {
	bounds := make(chan time.Duration, 100)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life.backoff.random = func(n int64) int64 {
		select {
		case bounds <- time.Duration(n - 1):
		default:
		}
		return int64(time.Millisecond)
	}
	return bounds
}

// Waits waits until n requests wait for a connection.
func Waits(t testing.TB, c *Client, n int) {
	t.Helper()
	until(t, c, func() bool { return c.out.count == n })
}

// Behind waits until something did not fit the subscription's queue.
func Behind(t testing.TB, s *Subscription) {
	t.Helper()
	until(t, s.c, func() bool { return s.feed.state == behind })
}

// until waits until something holds, with Client.mu held.
func until(t testing.TB, c *Client, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.mu.Lock()
		ok := holds()
		c.mu.Unlock()
		if ok {
			return
		}
	}
	t.Fatal("it does not come to hold")
}
