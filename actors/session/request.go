package session

import (
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// Frames that never differ are made once.
var (
	pingFrame = codec.NewFrame(&codec.Ping{})
	pongFrame = codec.NewFrame(&codec.Pong{})
)

var (
	errNotJoined = codec.NewError(codec.CodeNotJoined, "join the room first")
	errSecond    = codec.NewError(codec.CodeConflict, "the session is open already")
	errOwed      = codec.Retry(codec.CodeRateLimited, codec.ScopeSession, 100*time.Millisecond, "too many requests wait for their replies")
	errRooms     = codec.Retry(codec.CodeQuotaExceeded, codec.ScopeSession, time.Second, "in as many rooms as a session may be")
)

// handle does one request. Every request with an id gets exactly one reply: here,
// or by whoever it is handed to, in the place that was reserved for it.
func (s *Session) handle(req codec.Request) {
	switch r := req.(type) {
	case *codec.Ping:
		if r.ID == 0 {
			s.out.Control(pongFrame)
		} else {
			s.out.Control(codec.NewFrame(&codec.Pong{ID: r.ID}))
		}
		return
	case *codec.Pong:
		return
	case *codec.Ack:
		s.ack(r)
		return
	case *codec.Hello:
		s.complain(errSecond, "hello", "")
		return
	}
	if id := req.RequestID(); id != 0 && !s.out.Reserve() {
		s.out.Refuse(codec.NewFrame(&codec.Reply{ID: id, Err: errOwed}))
		s.count(req, errOwed)
		s.goes().refused(s.turn.Now())
		s.heed()
		return
	}
	if s.cfg.Authorize == nil || !s.wait(req) {
		s.do(req)
	}
}

// do does a request that need not wait any more.
func (s *Session) do(req codec.Request) {
	if err := s.dispatch(req); err != nil {
		s.fail(req, err)
	}
}

// fail refuses a request that was not handed on.
func (s *Session) fail(req codec.Request, err *codec.Error) {
	s.refuse(req, err)
	s.count(req, err)
	s.heed()
}

// dispatch hands the request on; with an error it was not, and is refused here.
func (s *Session) dispatch(req codec.Request) *codec.Error {
	switch r := req.(type) {
	case *codec.Publish:
		return s.publish(r)
	case *codec.Join:
		_, err := s.join(r, nil)
		return err
	case *codec.Leave:
		return s.leave(r)
	case *codec.Command:
		return s.command(r)
	case *codec.History:
		return s.history(r)
	case *codec.PresenceQuery:
		return s.presence(r)
	case *codec.Token:
		return s.token(r)
	case *codec.Fault:
		return r.Err
	}
	panic("session: a request that nobody knows")
}

// refuse answers a request here and now.
func (s *Session) refuse(req codec.Request, err *codec.Error) {
	if id := req.RequestID(); id != 0 {
		s.out.Reply(s.turn, backpressure.Control, codec.NewFrame(&codec.Reply{ID: id, Err: err}), mailbox.Seat{}, false)
		return
	}
	switch r := req.(type) {
	case *codec.Publish:
		s.complain(err, "publish", r.Room)
	case *codec.Fault:
		if err.Code != codec.CodeUnknownType {
			s.complain(err, r.Type, r.Room)
		}
	}
}

// complain is about a frame that had no id.
func (s *Session) complain(err *codec.Error, re, room string) {
	s.out.Control(codec.NewFrame(&codec.ErrorFrame{Err: err, Re: re, Room: room}))
}

func (s *Session) topic(room string) codec.Topic {
	return codec.Topic{Tenant: s.identity.Load().Tenant, Room: room}
}

func (s *Session) allows(right auth.Right, room string) bool {
	return s.identity.Load().Grants.Allows(right, room)
}

// asks finds the policy of a room of which the client asks what takes a right.
func (s *Session) asks(right auth.Right, room string) (*message.Policy, *codec.Error) {
	return s.cfg.Kinds.For(s.identity.Load().Grants, right, room)
}

// publish sends an event to its room. Order of refusals: right, existence,
// membership, limits.
func (s *Session) publish(r *codec.Publish) *codec.Error {
	kind, err := s.asks(auth.Publish, r.Room)
	if err != nil {
		return err
	}
	policy := kind.Event(r.Event)
	if policy == nil {
		return message.ErrNoEvent
	}
	lane := policy.Lane
	p := &message.Publish{
		By: message.Client{Out: &s.out}, ID: r.ID, Event: r.Event, Kind: kind, Policy: policy, Data: r.Data,
		Subject: s.identity.Load().Subject, Session: s.id, DedupKey: r.DedupKey,
	}
	in := s.rooms.find(r.Room)
	switch {
	case in != nil:
		p.Topic = in.Topic
		if in.Early = in.Early || !in.Joined(); in.Early {
			lane = backpressure.Interactive // behind its join
		}
		if kind.Publish == message.Members {
			p.Member = in
		}
	case kind.Publish == message.Members:
		return errNotJoined
	default:
		p.Topic = s.topic(r.Room)
	}
	if r.HasTTL {
		if r.TTL <= 0 {
			return message.ErrExpired
		}
		p.Expires = time.Now().Add(r.TTL)
	}
	if err := s.within(r); err != nil {
		return err
	}
	if s.cfg.Trace != nil {
		p.Trace = s.cfg.Trace(p)
	}
	err = s.post(r.Room, kind, lane, p.Item(s.cfg.Coalesce, s.turn.Now()), nil)
	if err != nil && p.Trace != nil {
		p.Trace.Published(nil, err) // it is counted as any refusal of the session
	}
	return err
}

// post puts a message into a room's mailbox, making the room if need be. bind is
// told the mailbox before each try.
func (s *Session) post(room string, kind *message.Policy, lane backpressure.Lane, it mailbox.Item, bind func(*mailbox.Mailbox)) *codec.Error {
	for range 3 {
		mb, err := s.cfg.Rooms.Room(room, kind)
		if err != nil {
			return err
		}
		if bind != nil {
			bind(mb)
		}
		var o backpressure.Outcome
		if s.turn != nil {
			o = mb.PostFrom(s.turn, lane, it)
		} else {
			o = mb.Post(lane, it)
		}
		switch {
		case o.Took():
			return nil
		case o != backpressure.Closed:
			return message.Refusal(o, codec.ScopeRoom)
		}
		s.cfg.Rooms.Forget(room, mb)
	}
	return message.Unavailable(codec.ScopeRoom) // it ended as often as it was made
}

// joinable finds the policy of a room that the client wants to join. Order of refusals:
// right, existence, presence.
func (s *Session) joinable(r *codec.Join) (*message.Policy, *codec.Error) {
	if !s.mayJoin(r.Room, r.Presence) {
		return nil, message.ErrForbidden
	}
	kind := s.cfg.Kinds.Of(codec.RoomKind(r.Room))
	switch {
	case kind == nil:
		return nil, message.ErrNoKind
	case r.Presence && !kind.Presence:
		return nil, message.ErrNoPresence
	}
	return kind, nil
}

// join asks a room for membership.
func (s *Session) join(r *codec.Join, hello *message.HelloJoin) (*message.Membership, *codec.Error) {
	kind, err := s.joinable(r)
	if err != nil {
		return nil, err
	}
	if hello == nil {
		if err := s.within(r); err != nil {
			return nil, err
		}
	}
	m := &message.Membership{
		Topic: s.topic(r.Room), Policy: kind, Out: &s.out,
		Subject: s.identity.Load().Subject, Session: s.id, Connection: uint32(s.generation), Presence: r.Presence,
	}
	if m.Seat.NoEcho = r.NoEcho; r.NoEcho {
		s.out.Withhold(s.id, &s.signal, keptBack)
	}
	j := &message.Join{M: m, ID: r.ID, Position: r.Position, HasPosition: r.HasPosition, Data: r.Data, Hello: hello}
	if in := s.rooms.find(r.Room); in != nil {
		j.Replaces = in
		s.rooms.replace(in, m)
	} else {
		if int(s.rooms.count) >= s.cfg.Limits.MaxRooms {
			return nil, errRooms
		}
		s.rooms.add(m)
	}
	it := mailbox.Item{Msg: j, Size: j.Size()}
	if err := s.post(r.Room, kind, backpressure.Interactive, it, m.Bind); err != nil {
		s.rooms.remove(m)
		s.out.Part(m.Seat.Slot)
		if j.Replaces == nil {
			return nil, err
		}
		j.Replaces.Gone()
		j.Answer(s.turn, nil, err) // so that nothing of the earlier one follows
	}
	return m, nil
}

func (s *Session) leave(r *codec.Leave) *codec.Error {
	m := s.rooms.find(r.Room)
	if m == nil {
		return errNotJoined
	}
	s.rooms.remove(m)
	s.out.Part(m.Seat.Slot)
	m.Leave(s.turn, r.ID)
	return nil
}
