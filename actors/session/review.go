package session

import (
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

// review asks an Authorizer about the rooms that the session is in, for new
// credentials, before they count: so they are taken with an answer for each room, or
// not at all. No room is joined meanwhile. Reviews come one after the other.
type review struct {
	identity *auth.Identity
	done     func(*codec.Error) // nil: the credentials are the session's now

	begun  bool
	list   []*inquiry // not answered yet
	denied []*message.Membership
}

// renewAs goes on with new credentials once the memberships were looked at; done is
// told then, before rooms that they do not cover are left.
func (s *Session) renewAs(id *auth.Identity, done func(*codec.Error)) {
	if s.cfg.Authorize == nil || s.rooms.count == 0 && s.pending() == nil {
		s.become(id)
		done(nil)
		s.leaveForbidden()
		return
	}
	q := s.inquire()
	q.reviews = append(q.reviews, &review{identity: id, done: done})
	s.advance()
	s.tick()
}

// advanceReview goes on with the review that is under way.
func (s *Session) advanceReview() {
	for q := s.pending(); len(q.reviews) > 0 && s.phase < closing; {
		r := q.reviews[0]
		if !r.begun {
			r.begin(s)
		}
		err := r.look(s)
		if err == nil && len(r.list) > 0 {
			return
		}
		q.reviews = q.reviews[1:]
		if err != nil {
			r.done(err)
			continue
		}
		s.become(r.identity)
		r.done(nil)
		for _, m := range r.denied {
			if s.rooms.before(m) != nil {
				m.Forbid()
			}
		}
		s.leaveForbidden()
	}
}

func (r *review) begin(s *Session) {
	r.begun = true
	due := s.cfg.Pool.Now() + int64(InquiryTime)
	for m := s.rooms.first; m != nil; m = m.Next {
		if !r.identity.Grants.Allows(auth.Join, m.Topic.Room) {
			continue // is left anyway
		}
		i := &inquiry{member: m, about: s.toBeIn(r.identity, m.Topic.Room, m.Presence), due: due}
		i.signal.Init(i)
		r.list = append(r.list, i)
	}
}

// look asks what can be asked, and takes what was answered. With an error that is all.
func (r *review) look(s *Session) *codec.Error {
	open := r.list[:0]
	for _, i := range r.list {
		switch {
		case i.state == answered && i.verdict() == ErrNoAnswer, i.state == fresh && s.cfg.Pool.Now() >= i.due:
			return ErrNoAnswer
		case i.state == answered:
			if i.verdict() != nil {
				r.denied = append(r.denied, i.member)
			}
			continue
		case i.state == fresh:
			s.ask(i, i.about)
		}
		open = append(open, i)
	}
	r.list = open
	return nil
}
