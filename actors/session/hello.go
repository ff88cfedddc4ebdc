package session

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

// helloJoinTime is how long a room may take to answer a join of a hello.
const helloJoinTime = 2 * time.Second

// opened is a session between its hello and its welcome.
type opened struct {
	s        *Session
	hello    *codec.Hello
	resumed  bool
	deadline int64
	rooms    []codec.WelcomeRoom
	waits    []*message.Membership // by index in the hello; nil: answered
	open     int                   // not answered
	seats    []mailbox.Seat        // which the welcome opens; those of later joins are not among them
}

// begin posts the joins. Each is answered by itself.
func (o *opened) begin() {
	o.deadline = o.s.cfg.Pool.Now() + int64(helloJoinTime)
	h := o.hello
	o.hello = nil
	o.rooms = make([]codec.WelcomeRoom, len(h.Rooms))
	o.waits = make([]*message.Membership, len(h.Rooms))
	asked := 0
	for i := range h.Rooms {
		r := &h.Rooms[i]
		o.rooms[i] = codec.WelcomeRoom{Room: r.Room, Err: r.Err}
		if r.Err != nil {
			continue
		}
		o.open++
		if o.s.cfg.Authorize == nil || len(o.s.questions(&r.Join)) == 0 {
			o.join(i, &r.Join)
			continue
		}
		if asked++; asked > o.s.cfg.Limits.MaxRooms {
			o.refuse(i, errRooms)
			continue
		}
		o.s.queue(&inquiry{req: &r.Join, room: r.Room, hello: i})
	}
	o.maybe()
}

// join asks the room.
func (o *opened) join(i int, r *codec.Join) {
	m, err := o.s.join(r, message.NewHelloJoin(o.s.Mailbox(), i))
	if err != nil {
		o.refuse(i, err)
		return
	}
	o.waits[i] = m
}

func (o *opened) refuse(i int, err *codec.Error) {
	o.rooms[i].Err = err
	o.open--
}

// judged takes what an Authorizer says of a join.
func (o *opened) judged(i int, r *codec.Join, err *codec.Error) {
	if err != nil {
		o.refuse(i, err)
	} else {
		o.join(i, r)
	}
	o.maybe()
}

// answered takes a room's answer.
func (o *opened) answered(h *message.HelloJoin) {
	m := o.waits[h.Index]
	if m == nil {
		return // too late
	}
	o.waits[h.Index] = nil
	o.seats = append(o.seats, m.Seat)
	o.rooms[h.Index].OK, o.rooms[h.Index].Err = h.OK, h.Err
	o.open--
	o.maybe()
	if o.s.phase == open {
		o.s.tick() // what is due in an open session only
	}
}

// timeout gives up on what was not answered. The room is told, so that a late
// join leaves no member behind.
func (o *opened) timeout() {
	for i, m := range o.waits {
		if m == nil {
			continue
		}
		o.waits[i] = nil
		o.rooms[i].Err = message.Unavailable(codec.ScopeRoom)
		if o.s.rooms.remove(m) {
			o.s.out.Part(m.Seat.Slot)
		}
		m.Gone()
		o.seats = append(o.seats, m.Over()) // what it is sent until the room hears of it
	}
	if q := o.s.pending(); q != nil {
		for _, i := range slices.Clone(q.list) {
			if i.hello >= 0 {
				q.drop(o.s, i)
				o.rooms[i.hello].Err = message.Unavailable(codec.ScopeRoom)
			}
		}
	}
	o.open = 0
	o.maybe()
}

// maybe sends the welcome when all is answered.
func (o *opened) maybe() {
	if o.open > 0 || o.s.phase != opening {
		return
	}
	s := o.s
	s.phase = open
	s.seldom.hello = nil
	s.out.Open(s.welcomeWithin(o.rooms, o.resumed), o.seats)
}

// welcomeWithin is the welcome with its lists of members, or, where all together do
// not fit a frame, without.
func (s *Session) welcomeWithin(rooms []codec.WelcomeRoom, resumed bool) *codec.Frame {
	f := codec.NewSecretFrame(s.welcome(rooms, resumed))
	lists := false
	for i := range rooms {
		lists = lists || rooms[i].OK != nil && rooms[i].OK.Members != nil
	}
	if !lists || len(f.Bytes(s.out.Framing())) <= s.cfg.Limits.MaxFrameBytes {
		return f
	}
	for i := range rooms {
		if ok := rooms[i].OK; ok != nil {
			ok.Members = nil
		}
	}
	return codec.NewSecretFrame(s.welcome(rooms, resumed))
}

func (s *Session) welcome(rooms []codec.WelcomeRoom, resumed bool) *codec.Welcome {
	l, who, framing := s.cfg.Limits, s.identity.Load(), s.out.Framing()
	return &codec.Welcome{
		Session: s.id, Resume: s.resumeToken(), ResumeTTL: l.ResumeTTL, Resumed: resumed, Node: s.cfg.Node,
		Tenant: who.Tenant, Subject: who.Subject,
		Compression: framing.Plain != nil,
		Transport:   s.conn().Name(), Codec: framing.Protocol.Codec(),
		Ping: l.Ping, Pong: l.Pong, MaxMessageBytes: l.MaxMessageBytes, MaxFrameBytes: l.MaxFrameBytes,
		Now: time.Now().UnixMilli(), Exp: expMS(who), Live: s.reached(), Rooms: rooms,
	}
}
