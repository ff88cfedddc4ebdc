package engine

import (
	"sync"
	"time"
)

// throttleEvery is the least time between two lines of a throttle.
const throttleEvery = 10 * time.Second

// throttle bounds what is logged about something that strangers may cause as often as
// they like: at once, and then now and then.
type throttle struct {
	// guarded by mu
	mu    sync.Mutex
	last  time.Time // of the last line
	times int       // since then
}

// due counts one more; above 0: a line is due that says so many.
func (s *throttle) due(now time.Time) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times++
	if !s.last.IsZero() && now.Sub(s.last) < throttleEvery {
		return 0
	}
	times, s.times, s.last = s.times, 0, now
	return times
}
