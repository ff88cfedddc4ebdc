package session

import (
	"errors"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

var (
	errBadToken = codec.NewError(codec.CodeUnauthenticated, "the token is not valid")
	errStranger = codec.NewError(codec.CodeForbidden, "the token is of another subject")
	errTokens   = codec.Retry(codec.CodeQuotaExceeded, codec.ScopeTenant, time.Second, "no budget left for tokens")
)

// refresh is the renewal of a session's credentials that is under way. Its answer
// is a signal in the mailbox of the session that asked, and so reaches no other.
type refresh struct {
	// waiting for their turn, the first of which is being looked at: as many as
	// replies may be owed, their bytes on the tenant's ledger.
	waiting []*codec.Token
	signal  mailbox.Signal

	// written by the verifier before signal is raised, read after
	identity *auth.Identity
	err      error
}

// become makes an identity the session's: its rights, and its end by a monotonic
// clock.
func (s *Session) become(id *auth.Identity) {
	s.identity.Store(id)
	s.expires, s.ageing = 0, false
	for m := s.rooms.first; m != nil; m = m.Next {
		m.Speaks = false
	}
	if !id.Expires.IsZero() {
		// Saturated at about 146 years, so that sums with the clock stay positive.
		left := min(time.Until(id.Expires), 1<<62)
		s.expires = s.cfg.Pool.Now() + int64(left+id.Leeway)
	}
}

// token renews the credentials. Requests are looked at one at a time, in order.
func (s *Session) token(r *codec.Token) *codec.Error {
	if !s.cfg.Queue.Charge(int64(len(r.Token))) {
		return errTokens
	}
	if s.rarely().refresh == nil {
		s.seldom.refresh = &refresh{}
		s.seldom.refresh.signal.Init(s.seldom.refresh)
	}
	f := s.seldom.refresh
	if f.waiting = append(f.waiting, r); len(f.waiting) == 1 {
		s.verify()
	}
	return nil
}

func (s *Session) verify() {
	f := s.seldom.refresh
	s.verifier.Verify(f.waiting[0].Token, func(id *auth.Identity, err error) {
		f.identity, f.err = id, err
		s.Mailbox().Raise(&f.signal, 1)
	})
}

// verified takes the answer to the request that is looked at.
func (s *Session) verified() {
	f := s.seldom.refresh
	r, id := f.waiting[0], f.identity
	switch {
	case errors.Is(f.err, auth.ErrUnauthenticated):
		s.refuse(r, errBadToken)
	case f.err != nil:
		s.refuse(r, message.Unavailable(codec.ScopeNode))
	case id.Tenant != s.identity.Load().Tenant || id.Subject != s.identity.Load().Subject:
		s.refuse(r, errStranger)
	default:
		s.renewAs(id, func(err *codec.Error) {
			if s.phase == ended {
				return
			}
			if err != nil {
				s.refuse(r, err)
			} else {
				// Before everything, so that no room is left before it.
				s.out.Lead(codec.NewSecretFrame(&codec.Reply{ID: r.ID, OK: s.renewed()}))
			}
			s.nextToken()
		})
		return
	}
	s.nextToken()
}

// nextToken goes on after the request that was looked at is answered.
func (s *Session) nextToken() {
	f := s.seldom.refresh
	s.cfg.Queue.Release(int64(len(f.waiting[0].Token)))
	f.waiting = f.waiting[1:]
	if len(f.waiting) == 0 {
		s.seldom.refresh = nil
	} else {
		s.verify()
	}
}

func (s *Session) renewed() *codec.TokenResult {
	return &codec.TokenResult{Exp: expMS(s.identity.Load()), Resume: s.resumeToken()}
}

// dropTokens lets go of what waits to be looked at: the session has ended.
func (s *Session) dropTokens() {
	if f := s.seldom.refresh; f != nil {
		for _, r := range f.waiting {
			s.cfg.Queue.Release(int64(len(r.Token)))
		}
		f.waiting = nil
	}
}

// renewal brings credentials that were verified elsewhere.
type renewal struct {
	identity *auth.Identity
	done     func(*codec.TokenResult, *codec.Error) // neither: the session has ended
}

// Renew goes on with credentials of the same tenant and subject that came on another
// way. done is told once; it must not block. False: the session takes nothing more.
// Callable by anyone.
func (s *Session) Renew(id *auth.Identity, done func(*codec.TokenResult, *codec.Error)) bool {
	return s.Mailbox().Post(backpressure.Control, mailbox.Item{Msg: &renewal{id, done}, Size: 64}).Took()
}

// removed answers a renewal that the session has ended before.
func removed(msg any, _ backpressure.Outcome) {
	if r, ok := msg.(*renewal); ok {
		r.done(nil, nil)
	}
}

func (s *Session) adopt(r *renewal) {
	if s.phase >= closing {
		r.done(nil, nil)
		return
	}
	s.renewAs(r.identity, func(err *codec.Error) {
		switch {
		case s.phase == ended:
			r.done(nil, nil)
		case err != nil:
			r.done(nil, err)
		default:
			r.done(s.renewed(), nil)
		}
	})
}

// leaveForbidden ends the memberships that the credentials do not cover any more, or
// whose kind of room is no more.
func (s *Session) leaveForbidden() {
	for m := s.rooms.first; m != nil; m = m.Next {
		if !s.mayJoin(m.Topic.Room, m.Presence) || s.cfg.Kinds.Of(m.Topic.Kind()) == nil {
			m.Forbid()
		}
	}
	s.tick()
}

// mayJoin: the session may be in the room, and see who else is.
func (s *Session) mayJoin(room string, presence bool) bool {
	return s.allows(auth.Join, room) && (!presence || s.allows(auth.Presence, room))
}

// resumeToken lets the client resume this session, once.
func (s *Session) resumeToken() string {
	who := s.identity.Load()
	return s.cfg.Sealer.Seal(auth.Resume{
		Tenant: who.Tenant, Subject: who.Subject, Session: s.id, Generation: s.generation,
	}, time.Now())
}

// expMS is what exp_ms says; 0: never.
func expMS(id *auth.Identity) int64 {
	if id.Expires.IsZero() {
		return 0
	}
	return id.Expires.UnixMilli()
}
