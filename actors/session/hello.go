package session

import (
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

// opened is a session between its hello and its welcome.
type opened struct {
	s        *Session
	deadline int64
	rooms    []codec.WelcomeRoom
	waits    []*message.Membership // by index in the hello; nil: answered
	open     int                   // not answered
	seats    []mailbox.Seat        // which the welcome opens; those of later joins are not among them
}

// begin posts the joins. Each is answered by itself.
func (o *opened) begin(h *codec.Hello) {
	o.rooms = make([]codec.WelcomeRoom, len(h.Rooms))
	o.waits = make([]*message.Membership, len(h.Rooms))
	for i := range h.Rooms {
		r := &h.Rooms[i]
		o.rooms[i] = codec.WelcomeRoom{Room: r.Room, Err: r.Err}
		if r.Err != nil {
			continue
		}
		m, err := o.s.join(&r.Join, message.NewHelloJoin(o.s.mb, i))
		if err != nil {
			o.rooms[i].Err = err
			continue
		}
		o.waits[i] = m
		o.open++
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
	s.hello = nil
	s.out.Open(s.welcomeWithin(o.rooms), o.seats)
}

func (s *Session) welcome(rooms []codec.WelcomeRoom) *codec.Welcome {
	c, l := s.cfg, s.cfg.Limits
	return &codec.Welcome{
		Session: c.ID, Resume: s.resumeToken(), ResumeTTL: l.ResumeTTL, Resumed: c.Resumed, Node: c.Node,
		Tenant: c.Identity.Tenant, Subject: c.Identity.Subject,
		Compression: c.Conn.Framing().Plain != nil,
		Transport:   c.Conn.Name(), Codec: c.Conn.Framing().Protocol.Codec(),
		Ping: l.Ping, Pong: l.Pong, MaxMessageBytes: l.MaxMessageBytes, MaxFrameBytes: l.MaxFrameBytes,
		Now: time.Now().UnixMilli(), Exp: expMS(s.identity), Live: s.reached(), Rooms: rooms,
	}
}
