package history

import (
	"fmt"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// segment is a run of events without a reset in it.
type segment struct {
	from   codec.Position
	events []Entry // ascending offsets
	over   bool    // another follows
	anew   bool    // it began with a reset
}

// end is the last position of a segment.
func (s *segment) end() codec.Position {
	if n := len(s.events); n > 0 {
		return s.events[n-1].Position
	}
	return s.from
}

// verdictDue is a reset that is judged when all members are known.
type verdictDue struct {
	member string
	at     time.Duration
	reason codec.ResetReason
	was    codec.Position // where the member stood
	begins codec.Position
}

// passage is a change of epoch that a member went through without a reset: at Offset the
// old one ended, or later.
type passage struct {
	to  string
	end uint64
}

// walk follows one member's history.
type walk struct {
	room   *judge
	member string

	joined   bool
	began    bool
	pos      codec.Position
	seen     map[Key]bool // in the segment
	last     map[int]int  // by source the last number in the segment
	segments []*segment
}

func (w *walk) find(rule Rule, at time.Duration, format string, args ...any) {
	w.room.find(rule, w.member, at, format, args...)
}

func (w *walk) step(e Entry) {
	switch e.Kind {
	case Joined:
		w.join(e)
	case Event:
		w.event(e)
	case Reset:
		if !w.joined {
			w.find(Disorder, e.At, "a reset outside a membership")
		}
		w.reset(e)
	case Left, Lost:
		w.joined = false
	}
}

func (w *walk) join(e Entry) {
	w.joined = true
	switch {
	case e.Reason != codec.ResetNone:
		w.reset(e)
	case !e.Recovered && !w.began:
		w.begin(e)
	case !e.Recovered:
		w.find(Loss, e.At, "begun anew at %v, without a reset, after %v", e.Position, w.pos)
		w.begin(e)
	case !w.began:
		w.find(Unknown, e.At, "recovered at %v, though it gave no position", e.Position)
		w.begin(e)
	case e.Position.Epoch != w.pos.Epoch || e.Position.Offset > w.pos.Offset:
		w.find(Loss, e.At, "recovered at %v after %v", e.Position, w.pos)
		w.begin(e)
	case e.Position.Offset < w.pos.Offset:
		w.find(Repeat, e.At, "recovered at %v after %v", e.Position, w.pos)
		w.begin(e)
	}
}

func (w *walk) begin(e Entry) {
	if n := len(w.segments); n > 0 {
		w.segments[n-1].over = true // what is between was found, or is told by the reset
	}
	w.began, w.pos = true, e.Position
	w.seen, w.last = map[Key]bool{}, map[int]int{}
	w.segments = append(w.segments, &segment{from: e.Position, anew: e.Reason != codec.ResetNone})
}

func (w *walk) reset(e Entry) {
	if w.began {
		w.room.resets = append(w.room.resets, verdictDue{w.member, e.At, e.Reason, w.pos, e.Position})
	} else {
		w.find(Needless, e.At, "reset before anything was told")
	}
	w.begin(e)
}

func (w *walk) event(e Entry) {
	if !w.joined || !w.began {
		w.find(Disorder, e.At, "%v outside a membership", e.Position)
		return
	}
	next := w.pos.Offset + 1
	switch {
	case e.Position.Offset < next:
		w.find(Repeat, e.At, "%v after %v", e.Position, w.pos)
		return
	case e.Position.Offset > next:
		w.find(Loss, e.At, "%v after %v", e.Position, w.pos)
	case e.Position.Epoch != w.pos.Epoch:
		w.room.passed(w.pos, e.Position.Epoch)
	}
	w.pos = e.Position
	s := w.segments[len(w.segments)-1]
	s.events = append(s.events, e)

	if w.seen[e.Key] {
		w.find(Repeat, e.At, "publication %v again, at %v", e.Key, e.Position)
	}
	w.seen[e.Key] = true
	sent, known := w.room.sent[e.Key]
	if !known {
		w.find(Unknown, e.At, "publication %v at %v", e.Key, e.Position)
	}
	// A copy, of what a lost history had too, stands anywhere.
	if sent.Accepted && sent.Position.Offset == e.Position.Offset {
		if e.Number < w.last[e.Source] {
			w.find(Disorder, e.At, "publication %v after number %d, at %v", e.Key, w.last[e.Source], e.Position)
		}
		w.last[e.Source] = max(e.Number, w.last[e.Source])
	}
	if there, ok := w.room.events[e.Position]; ok && there != e.Key {
		w.find(Split, e.At, "publication %v at %v, where others have %v", e.Key, e.Position, there)
	}
	w.room.events[e.Position], w.room.had[e.Key] = e.Key, true
}

func (k Key) String() string { return fmt.Sprintf("%d of %d", k.Number, k.Source) }
