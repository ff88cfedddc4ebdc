package session

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

const (
	// InquiryTime is how long an Authorizer may take to answer. What waits for its turn
	// to be asked waits no longer than that either.
	InquiryTime = 5 * time.Second
	// maxAsking is how many questions of one session are asked at once.
	maxAsking = 8
	// askAgain is when a question is asked again that the tenant's share had no place
	// for.
	askAgain = 20 * time.Millisecond
)

var (
	errInquiries = codec.Retry(codec.CodeQuotaExceeded, codec.ScopeTenant, time.Second, "no budget left for requests that wait")
	// ErrNoAnswer refuses what an Authorizer has given no answer for.
	ErrNoAnswer = codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "whether this is allowed cannot be judged now")
)

// Authorize asks whether all of list is allowed, which is not empty and is not
// changed. done is called exactly once, within InquiryTime, on any goroutine. False:
// there is no place now, and done is not called.
type Authorize func(list []auth.Access, done func(auth.Decision, error)) bool

// inquiry is a request that waits: for what an Authorizer says of it, or for others
// of its room that do. Or it is a membership that is asked about again (review).
//
// It is asked for one identity. What is answered after the session went on with other
// credentials is of no use, and asked again; what is answered after the session has
// ended reaches nobody.
type inquiry struct {
	req    codec.Request // nil: of a review
	room   string
	size   int                 // on the tenant's ledger
	hello  int                 // index of a join in the hello; -1: another request
	member *message.Membership // of a review
	about  []auth.Access       // of a review
	due    int64               // what is not asked by then is refused
	state  inquiryState

	identity *auth.Identity // asked for
	signal   mailbox.Signal

	// written before signal is raised, read after
	decision auth.Decision
	err      error
}

type inquiryState uint8

const (
	fresh inquiryState = iota
	asking
	answered
)

func (i *inquiry) verdict() *codec.Error { return Verdict(i.decision, i.err) }

// Verdict is why what an Authorizer was asked about is refused; nil: it is not.
func Verdict(d auth.Decision, err error) *codec.Error {
	switch {
	case err != nil:
		return ErrNoAnswer
	case d == auth.Allowed, d == auth.AllowedOnce:
		return nil
	}
	return message.ErrForbidden
}

// inquiries are those of one session, in the order in which they came. A request
// whose room has one before it waits behind it, so that the order within a room is
// that of the client; other rooms go on. There are at most as many as replies may be
// owed, beside those of the hello and of reviews, which rooms bound. Pure but for
// what it calls of the session, which owns it.
type inquiries struct {
	list    []*inquiry
	reviews []*review // the first is under way
	asking  int
	bytes   int
	full    bool // the tenant's share had no place
}

// concerns is the room that a request is about; false: none, and nobody is asked.
func concerns(req codec.Request) (room string, ok bool) {
	switch r := req.(type) {
	case *codec.Publish:
		return r.Room, true
	case *codec.Join:
		return r.Room, true
	case *codec.Leave:
		return r.Room, true
	case *codec.Command:
		return r.Room, true
	case *codec.History:
		return r.Room, true
	case *codec.PresenceQuery:
		return r.Room, true
	}
	return "", false
}

// questions are what an Authorizer has to be asked before a request is done. None: it
// is refused anyway, or asked about already, or nobody has to be asked.
func (s *Session) questions(req codec.Request) []auth.Access {
	ask := func(right auth.Right, room, name string) []auth.Access {
		return []auth.Access{{Identity: s.identity.Load(), Right: right, Room: room, Name: name}}
	}
	switch r := req.(type) {
	case *codec.Publish:
		kind, err := s.asks(auth.Publish, r.Room)
		if err != nil || kind.Event(r.Event) == nil {
			return nil
		}
		if in := s.rooms.find(r.Room); in != nil && in.Speaks || in == nil && kind.Publish == message.Members {
			return nil
		}
		return ask(auth.Publish, r.Room, r.Event)
	case *codec.Join:
		if _, err := s.joinable(r); err != nil {
			return nil
		}
		return s.toBeIn(s.identity.Load(), r.Room, r.Presence)
	case *codec.Command:
		if r.Room == "" {
			if !s.identity.Load().Grants.AllowsTenant(auth.Command) || s.cfg.Commands == nil {
				return nil
			}
		} else if _, err := s.asks(auth.Command, r.Room); err != nil {
			return nil
		}
		return ask(auth.Command, r.Room, r.Name)
	case *codec.History:
		if _, err := s.asks(auth.History, r.Room); err != nil {
			return nil
		}
		return ask(auth.History, r.Room, "")
	case *codec.PresenceQuery:
		if _, err := s.asks(auth.Presence, r.Room); err != nil {
			return nil
		}
		return ask(auth.Presence, r.Room, "")
	}
	return nil
}

// toBeIn is what is asked about a membership.
func (s *Session) toBeIn(id *auth.Identity, room string, presence bool) []auth.Access {
	list := []auth.Access{{Identity: id, Right: auth.Join, Room: room}}
	if presence {
		list = append(list, auth.Access{Identity: id, Right: auth.Presence, Room: room})
	}
	return list
}

// wait takes a request that cannot be done yet; false: it can.
func (s *Session) wait(req codec.Request) bool {
	room, ok := concerns(req)
	if !ok || !s.pending().holds(room) && len(s.questions(req)) == 0 {
		return false
	}
	i := &inquiry{req: req, room: room, size: message.Weight(req), hello: -1}
	q := s.inquire()
	switch {
	case len(q.list) >= mailbox.MaxOwed || q.bytes+i.size > 2*s.cfg.Limits.MaxMessageBytes:
		s.fail(req, errOwed)
	case i.size > 0 && !s.cfg.Queue.Charge(int64(i.size)):
		s.fail(req, errInquiries)
	default:
		q.bytes += i.size
		s.queue(i)
		s.advance()
		if q.full {
			s.tick()
		}
	}
	return true
}

// holds: something of the room waits.
func (q *inquiries) holds(room string) bool {
	return q != nil && slices.ContainsFunc(q.list, func(i *inquiry) bool { return i.room == room })
}

// inquire makes place for an inquiry.
func (s *Session) inquire() *inquiries {
	if s.rarely().inquiries == nil {
		s.seldom.inquiries = new(inquiries)
	}
	return s.seldom.inquiries
}

// pending are the session's inquiries; nil: there are none.
func (s *Session) pending() *inquiries {
	if s.seldom == nil {
		return nil
	}
	return s.seldom.inquiries
}

func (s *Session) queue(i *inquiry) {
	i.signal.Init(i)
	i.due = s.cfg.Pool.Now() + int64(InquiryTime)
	q := s.inquire()
	q.list = append(q.list, i)
}

// advance asks what can be asked, and does what was answered.
func (s *Session) advance() {
	q := s.pending()
	q.full = false
	s.advanceReview()
	var held []string // rooms that something waits in
	for at := 0; at < len(q.list) && s.phase < closing; {
		i := q.list[at]
		if s.step(i, slices.Contains(held, i.room)) {
			continue // it is out of the list
		}
		held = append(held, i.room)
		at++
	}
	if s.pending() == q && len(q.list) == 0 && q.asking == 0 && len(q.reviews) == 0 {
		s.seldom.inquiries = nil
	}
}

// step does what can be done about i; behind: another of its room is before it.
// True: that was all.
func (s *Session) step(i *inquiry, behind bool) bool {
	q := s.pending()
	if i.state == answered && i.identity != s.identity.Load() {
		i.state = fresh
	}
	switch i.state {
	case fresh:
		_, publishes := i.req.(*codec.Publish)
		_, joins := i.req.(*codec.Join)
		if behind && publishes || joins && len(q.reviews) > 0 {
			return false // what is to be asked depends on those before it
		}
		list := s.questions(i.req)
		switch {
		case len(list) == 0 && behind:
			return false
		case len(list) == 0:
			s.settle(i, nil)
			return true
		case s.cfg.Pool.Now() >= i.due:
			s.settle(i, ErrNoAnswer)
			return true
		}
		s.ask(i, list)
	case answered:
		if behind {
			return false
		}
		err := i.verdict()
		if r, ok := i.req.(*codec.Publish); ok && err == nil && i.decision == auth.Allowed {
			if in := s.rooms.find(r.Room); in != nil {
				in.Speaks = true
			}
		}
		s.settle(i, err)
		return true
	}
	return false
}

// ask asks, if there is place for it.
func (s *Session) ask(i *inquiry, list []auth.Access) {
	q := s.pending()
	if q.asking >= maxAsking {
		return
	}
	i.identity = list[0].Identity
	if !s.cfg.Authorize(list, func(d auth.Decision, err error) {
		i.decision, i.err = d, err
		s.Mailbox().Raise(&i.signal, 1)
	}) {
		q.full = true
		return
	}
	i.state = asking
	q.asking++
}

// settle does the request, or refuses it.
func (s *Session) settle(i *inquiry, err *codec.Error) {
	s.pending().drop(s, i)
	switch {
	case i.hello >= 0:
		s.seldom.hello.judged(i.hello, i.req.(*codec.Join), err)
	case err != nil:
		s.fail(i.req, err)
	default:
		s.do(i.req)
	}
}

// drop takes an inquiry out.
func (q *inquiries) drop(s *Session, i *inquiry) {
	at := slices.Index(q.list, i)
	q.list = slices.Delete(q.list, at, at+1)
	q.bytes -= i.size
	s.cfg.Queue.Release(int64(i.size))
}

// heard takes an answer.
func (s *Session) heard(i *inquiry) {
	i.state = answered
	s.pending().asking--
	s.advance()
	if s.phase < closing {
		s.tick()
	}
}

// dropInquiries lets go of what waits: the session has ended.
func (s *Session) dropInquiries() {
	q := s.pending()
	if q == nil {
		return
	}
	s.cfg.Queue.Release(int64(q.bytes))
	s.seldom.inquiries = nil
	for _, r := range q.reviews {
		r.done(ErrNoAnswer)
	}
}
