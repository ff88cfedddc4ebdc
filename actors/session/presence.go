package session

import (
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

var errNoPresence = codec.NewError(codec.CodeUnsupported, "rooms of this kind have no presence")

// resultRoom is what a reply with a page of members needs besides the members.
const resultRoom = 4 << 10

// presence reads a page of a room's members. The room itself is not needed.
func (s *Session) presence(r *codec.PresenceQuery) *codec.Error {
	if !s.allows(auth.Presence, r.Room) {
		return errForbidden
	}
	kind := s.cfg.Kinds.Of(codec.RoomKind(r.Room))
	if kind == nil {
		return errNoKind
	}
	if !kind.Presence {
		return errNoPresence
	}
	if !s.beginPage() {
		return errUnread
	}
	id, room, most := r.ID, r.Room, s.cfg.Limits.MaxFrameBytes-resultRoom
	topic := codec.Topic{Tenant: s.cfg.Identity.Tenant, Room: room}
	s.cfg.Presence.List(topic, r.After, r.Limit, func(p bridge.MemberPage, err *codec.Error) {
		reply := &codec.Reply{ID: id, Err: err}
		if err == nil {
			reply.OK = presenceResult(room, p, most)
		}
		s.endPage(reply)
	})
	return nil
}

// presenceResult is a page as its client gets it, cut to what fits a frame.
func presenceResult(room string, p bridge.MemberPage, most int) *codec.PresenceResult {
	n, size := 0, 0
	for n < len(p.Members) {
		if size += p.Members[n].Size(); size > most && n > 0 {
			break
		}
		n++
	}
	ok := &codec.PresenceResult{Room: room, PE: p.Mark.Epoch, Seq: p.Mark.Seq, Count: p.Count, Members: p.Members[:n]}
	if n > 0 && (p.More || n < len(p.Members)) {
		ok.After = p.Members[n-1].Subject
	}
	return ok
}

// welcomeWithin is the welcome with its lists of members, or, where all together do
// not fit a frame, without.
func (s *Session) welcomeWithin(rooms []codec.WelcomeRoom) *codec.Frame {
	f := codec.NewSecretFrame(s.welcome(rooms))
	lists := false
	for i := range rooms {
		lists = lists || rooms[i].OK != nil && rooms[i].OK.Members != nil
	}
	if !lists || len(f.Bytes(s.cfg.Conn.Framing())) <= s.cfg.Limits.MaxFrameBytes {
		return f
	}
	for i := range rooms {
		if ok := rooms[i].OK; ok != nil {
			ok.Members = nil
		}
	}
	return codec.NewSecretFrame(s.welcome(rooms))
}
