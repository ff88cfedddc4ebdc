package session

import "github.com/yaza-dev/pulse/codec"

// ack makes place in the window of a membership. One that is about no membership
// means nothing.
func (s *Session) ack(r *codec.Ack) {
	if in := s.rooms.find(r.Room); in != nil {
		s.out.Acknowledge(in.Seat, r.Position)
	}
}
