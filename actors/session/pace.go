package session

import (
	"time"

	"github.com/yaza-dev/pulse/backpressure"
)

const (
	// heedlessAfter is how long a client may go on at more than its rate.
	heedlessAfter = 10 * time.Second
	// pausedAfter is how long a client that was refused must not be refused again for
	// that to count as a pause.
	pausedAfter = time.Second
)

// pace is how fast a client goes: whether within its rate, and, when it was
// refused for that, whether it heeds it. Instants are the pool's. Pure.
type pace struct {
	session, tenant *backpressure.Meter
	since, last     int64 // first and latest refusal without a pause between; 0: none
}

// take lets a request of n bytes pass, or says how long it has to wait, and
// whether that is the session's own limit.
func (p *pace) take(now int64, n int) (wait time.Duration, own bool) {
	at := time.Unix(0, now)
	if wait = p.session.Take(at, n); wait > 0 {
		own = true
	} else {
		wait = p.tenant.Take(at, n)
	}
	if wait > 0 {
		if now-p.last >= int64(pausedAfter) {
			p.since = now
		}
		p.last = now
	}
	return wait, own
}

// heedless: the client has been refused for long, and did not pause.
func (p *pace) heedless() bool { return p.last-p.since >= int64(heedlessAfter) }
