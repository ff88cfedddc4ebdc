package session

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// tenantWindow is how long results of the tenant's own commands are remembered under
// their dedup keys.
const tenantWindow = 2 * time.Minute

var errNoHandler = codec.NewError(codec.CodeNotFound, "nobody handles this command")

// command hands a command to the room, or to the tenant's handler. Order of
// refusals: right, existence, limits; that a room's handler takes no commands is
// the room's to say.
func (s *Session) command(r *codec.Command) *codec.Error {
	who, wait := s.identity.Load(), message.CommandTime(r)
	c := &message.Command{
		By: message.Client{Out: &s.out}, ID: r.ID, Name: r.Name, Data: r.Data,
		Topic:   codec.Topic{Tenant: who.Tenant, Room: r.Room},
		Subject: who.Subject, Session: s.id, DedupKey: r.DedupKey, Deadline: s.turn.Now() + int64(wait),
		Codec: s.out.Framing().Protocol.Codec(), MaxResult: s.cfg.Limits.MaxFrameBytes - message.AnswerRest,
	}
	if r.Room == "" {
		switch {
		case !who.Grants.AllowsTenant(auth.Command):
			return message.ErrForbidden
		case s.cfg.Commands == nil:
			return errNoHandler
		case wait <= 0:
			return message.ErrDeadline
		}
		if err := s.within(r); err != nil {
			return err
		}
		c.Window = tenantWindow
		if err := s.cfg.Commands(c); err != nil {
			return err
		}
		s.expect(c)
		return nil
	}
	kind, err := s.asks(auth.Command, r.Room)
	switch {
	case err != nil:
		return err
	case wait <= 0:
		return message.ErrDeadline
	}
	if err := s.within(r); err != nil {
		return err
	}
	if c.Window = kind.DedupWindow; c.Window <= 0 {
		c.DedupKey = ""
	}
	if in := s.rooms.find(r.Room); in != nil {
		c.Member = in
	}
	if err := s.post(r.Room, kind, backpressure.Interactive, c.Item(), nil); err != nil {
		return err
	}
	s.expect(c)
	return nil
}

// expect looks after a command until it is answered.
func (s *Session) expect(c *message.Command) {
	if s.rarely().commands.add(c) {
		s.tick()
	}
}

// commands are those of a session that may still be open. Each of them has the
// place of a reply, which bounds them; those that were answered are taken out now
// and then.
type commands struct {
	list []*message.Command
	due  int64 // no later than the earliest deadline; 0: there is none
}

// add reports whether c has to be looked at before all others.
func (cs *commands) add(c *message.Command) bool {
	if len(cs.list) >= mailbox.MaxOwed {
		cs.list = slices.DeleteFunc(cs.list, (*message.Command).Over)
	}
	cs.list = append(cs.list, c)
	if cs.due != 0 && cs.due <= c.Deadline {
		return false
	}
	cs.due = c.Deadline
	return true
}

// expire answers those whose deadline has passed, and returns the earliest of the
// others; 0: there are none.
func (cs *commands) expire(t *scheduler.Turn, now int64) int64 {
	cs.due = 0
	cs.list = slices.DeleteFunc(cs.list, func(c *message.Command) bool {
		if c.Deadline <= now {
			c.Expire(t)
		}
		if c.Over() {
			return true
		}
		if cs.due == 0 || c.Deadline < cs.due {
			cs.due = c.Deadline
		}
		return false
	})
	if len(cs.list) == 0 {
		cs.list = nil
	}
	return cs.due
}

// gone tells all of them that the session has ended.
func (cs *commands) gone() {
	for _, c := range cs.list {
		c.Gone()
	}
	cs.list = nil
}
