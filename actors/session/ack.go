package session

import "github.com/yaza-dev/pulse/codec"

// ack hands an acknowledgement to the room. One that is about no membership means
// nothing.
func (s *Session) ack(r *codec.Ack) {
	if in := s.rooms.find(r.Room); in != nil && in.m.Policy.Acks {
		in.m.Acknowledge(r.Position)
	}
}
