package client

import (
	"math/rand/v2"
	"time"
)

// Hurry keeps a client's waits between attempts short.
func Hurry(c *Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life.backoff.random = func(n int64) int64 { return rand.Int64N(min(n, int64(5*time.Millisecond))) }
}
