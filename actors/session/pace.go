package session

import (
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

const (
	// heedlessAfter is how long a client may go on at more than its rate.
	heedlessAfter = 10 * time.Second
	// pausedAfter is how long a client that was refused must not be refused again for
	// that to count as a pause.
	pausedAfter = time.Second
)

// Rates are how fast the clients of a tenant may go, each session by itself and all
// together; they may change. Set them before the first session is made.
type Rates struct {
	one atomic.Pointer[backpressure.Rate]
	all atomic.Pointer[backpressure.Meter] // nil: no limit
}

// Set changes the rate of one session.
func (r *Rates) Set(one backpressure.Rate) { r.one.Store(&one) }

// SetAll changes the rate of all together.
func (r *Rates) SetAll(all backpressure.Rate) { r.all.Store(backpressure.NewMeter(all)) }

// Take is Meter.Take for all together.
func (r *Rates) Take(now int64, n int) (wait time.Duration) { return r.all.Load().Take(now, n) }

// pace is how fast a client goes: whether within its rate, and, when it was
// refused for that, whether it heeds it. Instants are the pool's. Pure.
type pace struct {
	session, tenant *backpressure.Meter
	rate            *backpressure.Rate // session's
	since, last     int64              // first and latest refusal without a pause between; 0: none
}

// take lets a request of n bytes pass, or says how long it has to wait, and
// whether that is the session's own limit.
func (p *pace) take(now int64, n int) (wait time.Duration, own bool) {
	if wait = p.session.Take(now, n); wait > 0 {
		own = true
	} else {
		wait = p.tenant.Take(now, n)
	}
	if wait > 0 {
		p.refused(now)
	}
	return wait, own
}

// refused notes a refusal, for the rate or for what is like it.
func (p *pace) refused(now int64) {
	if now-p.last >= int64(pausedAfter) {
		p.since = now
	}
	p.last = now
}

// heedless: the client has been refused for long, and did not pause.
func (p *pace) heedless() bool { return p.last-p.since >= int64(heedlessAfter) }

// goes is the session's pace by the rates of the moment.
func (s *Session) goes() *pace {
	p := &s.rarely().pace
	if rate := s.cfg.Rates.one.Load(); p.rate != rate {
		p.session, p.rate = backpressure.NewMeter(*rate), rate
	}
	p.tenant = s.cfg.Rates.all.Load()
	return p
}

// within judges a request by the rates of the session and of its tenant, and a
// command by whether the node stays: the last thing that a request is judged by. The
// joins of a hello do not count, since a node that comes back gets them from all its
// clients at once; a client has as many of them as it may have rooms.
func (s *Session) within(r codec.Request) *codec.Error {
	if _, ok := r.(*codec.Command); ok && s.cfg.Leaving.begun() {
		_, high := s.cfg.Leaving.within(s.id)
		return codec.Retry(codec.CodeDraining, codec.ScopeNode, high, "the node is leaving")
	}
	if *s.cfg.Rates.one.Load() == (backpressure.Rate{}) && s.cfg.Rates.all.Load() == nil {
		return nil
	}
	wait, own := s.goes().take(s.turn.Now(), message.Weight(r))
	switch {
	case wait == 0:
		return nil
	case own:
		return codec.Retry(codec.CodeRateLimited, codec.ScopeSession, wait, "faster than a session may be")
	}
	return codec.Retry(codec.CodeRateLimited, codec.ScopeTenant, wait, "faster than the tenant's clients may be")
}

// heed closes the session of a client that goes on regardless of being refused.
func (s *Session) heed() {
	if s.seldom != nil && s.seldom.pace.heedless() {
		s.close(codec.CauseRateLimited, "")
	}
}
