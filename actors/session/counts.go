package session

import (
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/codec"
)

// count counts a request that is refused here, if it is of those that are counted.
func (s *Session) count(req codec.Request, err *codec.Error) {
	switch r := req.(type) {
	case *codec.Fault:
		s.cfg.Faults.Count(err)
	case *codec.Publish:
		if kind := s.cfg.Kinds.Of(codec.RoomKind(r.Room)); kind != nil {
			kind.Meter.Published(nil, err)
		}
	}
}

// Load adds what waits for the session, and from it for its client; it returns how
// many rooms it is in. Callable by anyone.
func (s *Session) Load(in, out *mailbox.Depths) (members int) {
	in.Add(s.Mailbox())
	return s.out.Load(out)
}
