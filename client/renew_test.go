package client

import (
	"testing"
	"time"
)

func TestRenewAfter(t *testing.T) {
	for name, c := range map[string]struct{ age, in, want time.Duration }{
		"an hour, told half a minute before":    {time.Hour - 30*time.Second, 30 * time.Second, 0},
		"ended":                                 {0, 0, 0},
		"a minute, told in its middle":          {30 * time.Second, 30 * time.Second, 0},
		"of 20 seconds, as soon as it is given": {10 * time.Millisecond, 20 * time.Second, 10 * time.Second},
		"the same again, with 30 seconds left":  {0, 30 * time.Second, 15 * time.Second},
		"the same again, with a second left":    {0, time.Second, renewPause},
	} {
		if got := renewAfter(c.age, c.in); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
