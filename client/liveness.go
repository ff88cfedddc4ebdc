package client

import "time"

// liveness decides when a silent connection is given up. It is pure. When the
// check itself comes late, this process was not running, and what the server sent
// meanwhile may still wait to be read: such a connection gets another pong's time.
type liveness struct {
	ping, pong time.Duration
	due        time.Time // of the next check
	grace      bool      // the next check is the last one
}

// late is how far behind its time a check counts as late.
const late = time.Second

func newLiveness(now time.Time, ping, pong time.Duration) liveness {
	return liveness{ping: ping, pong: pong, due: now.Add(ping + pong)}
}

// check is called at due or later, with the time at which something was last
// heard. It sets the next due, or reports that the connection is dead.
func (l *liveness) check(now, heard time.Time) (dead bool) {
	switch silent := heard.Add(l.ping + l.pong); {
	case now.Before(silent):
		l.due, l.grace = silent, false
	case !l.grace && now.Sub(l.due) >= late:
		l.due, l.grace = now.Add(l.pong), true
	case l.grace && now.Before(l.due):
	default:
		return true
	}
	return false
}
