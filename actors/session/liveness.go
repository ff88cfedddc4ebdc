package session

import "time"

// liveness decides when a quiet connection is pinged and when it is given up.
// Pure: instants are nanoseconds of one monotonic clock.
type liveness struct {
	pinged int64 // when the ping that waits for an answer went out; 0: none does
}

type due uint8

const (
	nothing due = iota
	sendPing
	giveUp
)

// check says what is due at now, and when to look again. in and out are when
// something was last received and sent.
func (l *liveness) check(limits *Limits, now, in, out int64) (due, time.Duration) {
	ping, pong := int64(limits.Ping), int64(limits.Pong)
	if l.pinged != 0 {
		if in < l.pinged {
			if now-l.pinged >= pong {
				return giveUp, 0
			}
			return nothing, time.Duration(l.pinged + pong - now)
		}
		l.pinged = 0
	}
	quiet := min(in, out)
	if now-quiet >= ping {
		l.pinged = now
		return sendPing, time.Duration(pong)
	}
	return nothing, time.Duration(quiet + ping - now)
}
