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

// Waits waits until n requests wait for a connection.
func Waits(t testing.TB, c *Client, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.mu.Lock()
		count := c.out.count
		c.mu.Unlock()
		if count == n {
			return
		}
	}
	t.Fatalf("not %d requests wait", n)
}
