package session

import (
	"math"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport"
)

const (
	// expiringBefore is how long before its end a client is told that its credentials
	// end.
	expiringBefore = 30 * time.Second
	// tellEvery is how often a membership without echo is told where it stands, and how
	// soon what found no place in the queue is tried again.
	tellEvery = time.Second
	// never is an instant that does not come.
	never int64 = math.MaxInt64
)

// tick does what is due, and sets the timer to what is due next.
func (s *Session) tick() {
	now := s.cfg.Pool.Now()
	switch {
	case s.phase == ended:
		return
	case s.phase == closing:
		if now >= s.seldom.deadline {
			s.conn().Close(codec.CauseOverload, "")
			return
		}
		s.wake(now, s.seldom.deadline)
		return
	case s.expires != 0 && now >= s.expires:
		s.close(codec.CauseUnauthenticated, "credentials ended")
		return
	}
	next := min(s.tickHello(now), s.tickCredentials(now), s.tickNews(now), s.tickInquiries(now))
	if s.phase >= closing {
		return // which has set the timer
	}
	next = min(next, s.tickSeldom(now))
	if at, alive := s.tickLiveness(now); alive {
		s.wake(now, min(next, at))
	}
}

// wake sets the timer to an instant.
func (s *Session) wake(now, at int64) {
	s.cfg.Wheel.Set(&s.timer, max(time.Duration(at-now), scheduler.Tick))
}

// Each of these does what is due at now, and returns the instant of what is next.

func (s *Session) tickHello(now int64) int64 {
	if s.phase != opening {
		return never
	}
	if due := s.seldom.hello.deadline; now < due {
		return due
	}
	s.seldom.hello.timeout()
	return never
}

func (s *Session) tickCredentials(now int64) int64 {
	if s.expires == 0 {
		return never
	}
	if s.phase == open && !s.ageing {
		ends := s.expires - int64(s.identity.Load().Leeway)
		left := time.Duration(ends - now)
		if left > expiringBefore {
			return ends - int64(expiringBefore)
		}
		s.out.Control(codec.NewFrame(&codec.Expiring{In: max(0, left)}))
		s.ageing = true
	}
	return s.expires
}

// tickNews tells the client of the node what it does not know yet.
func (s *Session) tickNews(now int64) int64 {
	if s.phase != open {
		return never
	}
	told := s.tellReach()
	if s.cfg.Leaving.begun() {
		told = s.warn(time.Duration(s.cfg.Leaving.over.Load())) && told
	}
	if !told {
		return now + int64(tellEvery)
	}
	return never
}

func (s *Session) tickInquiries(now int64) int64 {
	if s.pending() == nil {
		return never
	}
	s.advance()
	if q := s.pending(); q != nil && q.full {
		return now + int64(askAgain)
	}
	return never
}

func (s *Session) tickSeldom(now int64) int64 {
	r := s.seldom
	if r == nil {
		return never
	}
	next := never
	if at := r.commands.expire(s.turn, now); at != 0 {
		next = at
	}
	if r.untold && now >= r.told+int64(tellEvery) {
		r.told = now
		s.tell()
	}
	if r.untold {
		next = min(next, r.told+int64(tellEvery))
	}
	if r.idle(now) {
		s.seldom = nil
	}
	return next
}

// tickLiveness gives up a connection that is not alive.
func (s *Session) tickLiveness(now int64) (at int64, alive bool) {
	in := s.in.Load()
	if s.out.Took() {
		in = now // it reads, though slowly
	}
	what, wait := s.live.check(&s.cfg.Limits, now, in, s.out.Sent())
	switch what {
	case giveUp:
		s.conn().Close(codec.CauseTimeout, "no pong")
		s.leaveRooms() // they do not wait for the close, which nobody may answer
		return 0, false
	case sendPing:
		s.out.Control(pingFrame)
		if p, ok := s.out.Conn().(transport.Pinger); ok {
			p.Ping()
		}
	}
	return now + int64(wait), true
}

// tell tells memberships without echo where they stand.
func (s *Session) tell() {
	more := false
	for m := s.rooms.first; m != nil; m = m.Next {
		if m.Seat.NoEcho {
			more = s.out.Position(s.turn, m.Policy.Lane, m.Topic.Room, m.Seat)
		}
	}
	if s.seldom != nil {
		s.seldom.untold = more
	}
}
