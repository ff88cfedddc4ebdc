package backpressure

import (
	"time"

	"golang.org/x/time/rate"
)

// Rate is how much may pass in a second. 0: as much as wants to.
type Rate struct {
	Messages int
	Bytes    int64
}

// burst is how many seconds' worth may pass at once after a pause.
const burst = 2

// Meter holds what passes to a Rate. It is safe for concurrent use.
type Meter struct {
	messages, bytes *rate.Limiter // nil: no limit
}

// NewMeter makes a Meter that is full; nil, which lets everything pass, if r sets
// no limit.
func NewMeter(r Rate) *Meter {
	if r == (Rate{}) {
		return nil
	}
	return &Meter{limiter(int64(r.Messages)), limiter(r.Bytes)}
}

func limiter(n int64) *rate.Limiter {
	if n == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(n), int(burst*n))
}

// Take lets a message of n bytes pass, or says how long it has to wait; then
// nothing was taken. A message larger than a burst passes when the meter is full.
func (m *Meter) Take(now time.Time, n int) (wait time.Duration) {
	if m == nil {
		return 0
	}
	message, wait := take(m.messages, now, 1)
	if wait > 0 {
		return wait
	}
	if _, wait = take(m.bytes, now, n); wait > 0 && message != nil {
		message.CancelAt(now)
	}
	return wait
}

// take reserves n at once, or not at all.
func take(l *rate.Limiter, now time.Time, n int) (*rate.Reservation, time.Duration) {
	if l == nil {
		return nil, 0
	}
	r := l.ReserveN(now, min(n, l.Burst()))
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return r, wait
}
