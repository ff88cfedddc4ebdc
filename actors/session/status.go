package session

import (
	"sync/atomic"

	"github.com/yaza-dev/pulse/codec"
)

// Reach is whether events from other nodes come in time, as all sessions of an
// engine know it. Set it before the first session is made.
type Reach struct{ now atomic.Pointer[reach] }

type reach struct {
	status codec.Status
	frame  *codec.Frame // of status, shared by all sessions
}

// Set changes it; for one goroutine at a time. changed: sessions are to be noticed.
func (r *Reach) Set(status codec.Status) (changed bool) {
	if was := r.now.Load(); was != nil && was.status == status {
		return false
	}
	r.now.Store(&reach{status: status, frame: codec.NewFrame(&status)})
	return true
}

// Notice says that Reach has changed; callable by anyone.
func (s *Session) Notice() { s.Mailbox().Raise(&s.signal, noticed) }

// well is what a client is taken to know that was told nothing else.
var well = codec.Status{Live: true}

// reached is the present state, for the welcome, which tells it.
func (s *Session) reached() (live bool) {
	now := s.cfg.Reach.now.Load()
	s.knows(now)
	return now.status.Live
}

// knows notes what the client has been told.
func (s *Session) knows(r *reach) {
	switch {
	case r.status != well:
		s.rarely().reach = r
	case s.seldom != nil:
		s.seldom.reach = nil
	}
}

// known is what the client was told last.
func (s *Session) known() codec.Status {
	if s.seldom == nil || s.seldom.reach == nil {
		return well
	}
	return s.seldom.reach.status
}

// tellReach tells the client how it is now, if that is not what it was told last.
// False: there was no place for it.
func (s *Session) tellReach() bool {
	now := s.cfg.Reach.now.Load()
	if now.status == s.known() {
		return true
	}
	if !s.out.Control(now.frame) {
		return false
	}
	s.knows(now)
	return true
}
