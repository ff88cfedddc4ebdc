package session

import (
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

const (
	// atOnce is the time over which clients spread their coming back that had no
	// warning: the node closes, and does not drain.
	atOnce = 5 * time.Second
	// parts is into how many ranges a drain divides its time. A session's is drawn
	// by its id, which is random: so it is known without being kept.
	parts = 256
)

// Leaving is whether the node is about to leave, as all sessions of an engine know
// it.
type Leaving struct{ over atomic.Int64 } // how long clients have to go elsewhere; 0: it stays

// Begin says that the node leaves, and how long its clients have to go elsewhere;
// sessions are to be noticed.
func (l *Leaving) Begin(over time.Duration) { l.over.Store(max(1, int64(over))) }

// begun: new work that may take long is for other nodes.
func (l *Leaving) begun() bool { return l.over.Load() != 0 }

// within is when the client of a session is to come back, counted from when it is
// told; of none: any client.
func (l *Leaving) within(session string) (low, high time.Duration) {
	over := time.Duration(l.over.Load())
	switch {
	case over == 0:
		return 0, atOnce
	case session == "":
		return 0, over
	}
	part := time.Duration(crc32.ChecksumIEEE([]byte(session)) % parts)
	return (over * part / parts).Truncate(time.Millisecond), (over * (part + 1) / parts).Truncate(time.Millisecond)
}

// Reason is that range as the reason of a close with CauseRestart.
func (l *Leaving) Reason(session string) string {
	low, high := l.within(session)
	return fmt.Sprintf("%d-%d", low.Milliseconds(), high.Milliseconds())
}

// warn tells the client that the node leaves, unless it has been told. False: there
// was no place for it.
func (s *Session) warn(deadline time.Duration) bool {
	if !s.warned {
		low, high := s.cfg.Leaving.within(s.id)
		s.warned = s.out.Control(codec.NewFrame(&codec.Drain{
			ReconnectMin: low, ReconnectMax: high, Deadline: deadline, Reason: codec.CauseRestart.String(),
		}))
	}
	return s.warned
}
