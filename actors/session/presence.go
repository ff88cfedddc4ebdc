package session

import (
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

// presence reads a page of a room's members. The room itself is not needed.
func (s *Session) presence(r *codec.PresenceQuery) *codec.Error {
	if _, err := s.asks(auth.Presence, r.Room); err != nil {
		return err
	}
	if !s.beginPage() {
		return errUnread
	}
	id := r.ID
	message.PresencePage(s.cfg.Presence, s.topic(r.Room), *r, s.cfg.Limits.MaxFrameBytes, func(ok *codec.PresenceResult, err *codec.Error) {
		reply := &codec.Reply{ID: id, Err: err}
		if err == nil {
			reply.OK = ok
		}
		s.endPage(codec.NewFrame(reply))
	})
	return nil
}
