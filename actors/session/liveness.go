package session

import "time"

// liveness decides when a quiet connection is pinged and when it is given up.
// Pure: instants are nanoseconds of one monotonic clock.
type liveness struct {
	ping, pong int64
	pinged     int64 // when the ping that waits for an answer went out; 0: none does
}

type due uint8

const (
	nothing due = iota
	sendPing
	giveUp
)

func newLiveness(ping, pong time.Duration) liveness {
	return liveness{ping: int64(ping), pong: int64(pong)}
}

// check says what is due at now, and when to look again. in and out are when
// something was last received and sent.
func (l *liveness) check(now, in, out int64) (due, time.Duration) {
	if l.pinged != 0 {
		if in < l.pinged {
			if now-l.pinged >= l.pong {
				return giveUp, 0
			}
			return nothing, time.Duration(l.pinged + l.pong - now)
		}
		l.pinged = 0
	}
	quiet := min(in, out)
	if now-quiet >= l.ping {
		l.pinged = now
		return sendPing, time.Duration(l.pong)
	}
	return nothing, time.Duration(quiet + l.ping - now)
}
