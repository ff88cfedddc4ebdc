package supervision

import (
	"math/rand/v2"
	"time"
)

// Backoff is the wait before each restart of one actor: Initial, doubling up to
// Cap. It has no clock of its own, and one owner at a time.
type Backoff struct {
	Initial time.Duration // wait before the first restart; 0: none at all
	Cap     time.Duration // longest wait; 0: Initial
	Jitter  float64       // part of each wait that is left to chance, 0 to 1

	// MaxRestarts within Window are allowed, and the next failure is one too
	// many; 0: no limit. An actor that was quiet for Window starts anew.
	MaxRestarts int
	Window      time.Duration

	// Rand gives the chance, in [0, 1). Nil: math/rand.
	Rand func() float64

	streak int         // restarts since the last quiet time
	last   time.Time   // of the latest failure
	recent []time.Time // restarts within Window, at most MaxRestarts, oldest first
}

// Reset forgets the failures so far: the actor works.
func (b *Backoff) Reset() { b.streak, b.recent = 0, b.recent[:0] }

// Next is asked at a failure and gives the wait before the restart; false says
// that the limit is reached and the actor has to stop.
func (b *Backoff) Next(now time.Time) (delay time.Duration, ok bool) {
	if now.Sub(b.last) >= b.Window {
		b.streak = 0
	}
	b.last = now
	if b.MaxRestarts > 0 && !b.admit(now) {
		return 0, false
	}
	delay = b.wait()
	b.streak++
	return delay, true
}

// admit notes a restart at now, unless the window has its full number.
func (b *Backoff) admit(now time.Time) bool {
	old := 0
	for old < len(b.recent) && now.Sub(b.recent[old]) >= b.Window {
		old++
	}
	b.recent = append(b.recent[:0], b.recent[old:]...)
	if len(b.recent) >= b.MaxRestarts {
		return false
	}
	b.recent = append(b.recent, now)
	return true
}

// wait is the delay of the current streak. The random part is taken off, so Cap
// holds.
func (b *Backoff) wait() time.Duration {
	limit := max(b.Cap, b.Initial)
	d := b.Initial
	for range b.streak {
		if d >= limit/2 {
			d = limit
			break
		}
		d *= 2
	}
	random := b.Rand
	if random == nil {
		random = rand.Float64
	}
	return d - time.Duration(b.Jitter*random()*float64(d))
}
