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

// reached is the present state, for the welcome, which tells it.
func (s *Session) reached() (live bool) {
	s.reach = s.cfg.Reach.now.Load()
	return s.reach.status.Live
}

// tellReach tells the client how it is now, if that is not what it was told last.
// False: there was no place for it.
func (s *Session) tellReach() bool {
	now := s.cfg.Reach.now.Load()
	if now.status != s.reach.status && !s.out.Control(now.frame) {
		return false
	}
	s.reach = now
	return true
}
