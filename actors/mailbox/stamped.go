package mailbox

import (
	"math/rand/v2"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/internal/telemetry"
)

// Timing is told how long some waited. It is shared, and called on workers: it must
// not block.
type Timing interface {
	// Waited: a message in a mailbox for its actor, or a session's outbound queue,
	// in which the lane's frame was the first, for a worker.
	Waited(lane backpressure.Lane, d time.Duration)
}

// WriteTiming is the Timing of outbound queues.
type WriteTiming interface {
	Timing
	// Wrote: handing frames to a socket has taken d.
	Wrote(d time.Duration)
}

// stamped is how a message waits whose wait is measured: which it is, is left to
// chance, so that the rest pays for one number drawn and no memory.
type stamped struct {
	msg  any
	at   int64
	lane backpressure.Lane
}

// stamp makes the item one that is measured, if it is its turn.
func (m *Mailbox) stamp(l backpressure.Lane, it *Item) {
	if m.cfg.Timing == nil || rand.Uint32()%telemetry.EveryMessage != 0 {
		return
	}
	if _, ok := it.Msg.(*foreign); !ok {
		it.Msg = &stamped{it.Msg, m.cfg.Pool.Now(), l}
	}
}

// unstamp is the message as it was posted, whose wait is over.
func (m *Mailbox) unstamp(msg any) any {
	s, ok := msg.(*stamped)
	if !ok {
		return msg
	}
	m.cfg.Timing.Waited(s.lane, time.Duration(m.cfg.Pool.Now()-s.at))
	return s.msg
}

// wokenAt notes, in as few bytes as a session has left, when the queue began to wait
// for a worker, in units of 4 µs, and for which lane. A wait beyond
// an hour is taken for a shorter one.
type wokenAt uint32

const wokenUnit = 4 * time.Microsecond

func woken(now int64, l backpressure.Lane) wokenAt {
	return wokenAt(now/int64(wokenUnit))<<2 | wokenAt(l)
}

func (w wokenAt) wait(now int64) (backpressure.Lane, time.Duration) {
	units := (wokenAt(now/int64(wokenUnit))<<2 - w&^3) >> 2
	return backpressure.Lane(w & 3), time.Duration(units) * wokenUnit
}
