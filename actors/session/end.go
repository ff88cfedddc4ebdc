package session

import (
	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

// kick is Kick, in the actor.
func (s *Session) kick(cause codec.Cause) {
	reason := ""
	if cause == codec.CauseRestart {
		reason = s.cfg.Leaving.Reason(s.id)
		if s.phase == open {
			s.warn(s.cfg.Limits.WriteTimeout)
		}
	}
	s.close(cause, reason)
}

// close ends the session in order: what is queued goes out first, unless the
// cause is one that comes at once. Then, and where the session is over for good,
// its rooms do not wait for the peer to answer.
func (s *Session) close(cause codec.Cause, reason string) {
	if s.hungUp {
		s.end()
	}
	s.Blame(cause)
	if cause.Immediate() && s.phase != ended {
		s.conn().Close(cause, reason)
		s.end()
	}
	if s.phase >= closing {
		return
	}
	s.phase = closing
	s.place.close()
	s.rarely().hello = nil
	s.seldom.deadline = s.cfg.Pool.Now() + int64(s.cfg.Limits.WriteTimeout)
	s.tell()
	s.out.Finish(cause, reason)
	if cause.Final() {
		s.leaveRooms()
	}
	s.tick()
}

// hangUp ends a session whose connection has ended. What the client said before
// counts, and is handled first.
func (s *Session) hangUp() {
	if s.phase >= closing || s.Mailbox().UserMessageCount() == 0 {
		s.end()
		return
	}
	s.hungUp = true
	s.out.End() // nobody is there to be told
}

// leaveRooms tells every room how the session has left it.
func (s *Session) leaveRooms() {
	how := (*message.Membership).Lost
	if codec.Cause(s.cause.Load()).Final() {
		how = (*message.Membership).Gone
	}
	for m := s.rooms.first; m != nil; m = m.Next {
		how(m)
	}
	s.rooms = memberships{}
}

// end is the last thing that a session does.
func (s *Session) end() {
	if s.phase == ended {
		return
	}
	s.place.close()
	s.phase = ended
	s.leaveRooms()
	if s.seldom != nil {
		s.seldom.hello = nil
		s.seldom.commands.gone()
		s.dropInquiries()
		s.dropTokens()
	}
	s.out.End()
	actors.Stop(s.Mailbox())
}

// Stopping makes sure of it: the session was stopped from outside, or failed.
func (s *Session) Stopping() {
	s.end()
	s.conn().Close(codec.CauseInternal, "")
	s.cfg.Wheel.Clear(&s.timer)
}

// Stopped is the end.
func (s *Session) Stopped() {}
