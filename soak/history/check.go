package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// An event that a fault has lost was accepted not long before it, since by then a primary
// has told its replica, nor long after its members should have had it.
const (
	justBefore = time.Second
	justAfter  = 15 * time.Second
)

// What a room has read of the buffer may be ahead of what it has delivered, and of what
// anybody has heard of yet.
const readAhead = time.Second

// Check says what is wrong with a run, in order of time.
func Check(run *Run) []Finding {
	var all []Finding
	for i := range run.Rooms {
		j := &judge{
			room: &run.Rooms[i], faults: run.Faults,
			sent: map[Key]Publication{}, events: map[codec.Position]Key{}, had: map[Key]bool{}, known: map[codec.Position]time.Duration{}, passages: map[string]passage{},
		}
		all = append(all, j.judge()...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.At, b.At) })
	return all
}

// judge is at work on one room.
type judge struct {
	room     *Room
	faults   []Fault
	sent     map[Key]Publication
	events   map[codec.Position]Key           // what any member had
	had      map[Key]bool                     // likewise
	known    map[codec.Position]time.Duration // since when anybody knows of it
	passages map[string]passage               // by the epoch that ended, of who saw most of it
	resets   []verdictDue
	findings []Finding
}

func (j *judge) find(rule Rule, member string, at time.Duration, format string, args ...any) {
	j.findings = append(j.findings, Finding{rule, j.room.Name, member, at, fmt.Sprintf(format, args...)})
}

func (j *judge) judge() []Finding {
	for _, p := range j.room.Sent {
		j.sent[p.Key] = p
		if p.Accepted {
			j.know(p.Position, p.At)
		}
	}
	for _, m := range j.room.Members {
		for _, e := range m.Entries {
			j.know(e.Position, e.At)
		}
	}
	walks := make([]*walk, len(j.room.Members))
	for i, m := range j.room.Members {
		walks[i] = &walk{room: j, member: m.Name}
		for _, e := range m.Entries {
			walks[i].step(e)
		}
	}
	for _, due := range j.resets {
		j.needless(due)
	}
	var last Publication
	for _, p := range j.room.Sent {
		if p.Accepted {
			j.accepted(p, walks)
			if p.At >= last.At {
				last = p
			}
		}
	}
	for _, w := range walks {
		j.whole(w)
		j.ended(w, last)
	}
	return j.findings
}

func (j *judge) know(p codec.Position, at time.Duration) {
	if first, ok := j.known[p]; !ok || at < first {
		j.known[p] = at
	}
}

// passed notes that somebody who stood at p went on in another epoch.
func (j *judge) passed(p codec.Position, to string) {
	if known, ok := j.passages[p.Epoch]; !ok || p.Offset > known.end {
		j.passages[p.Epoch] = passage{to, p.Offset}
	}
}

// needless judges a reset.
func (j *judge) needless(r verdictDue) {
	head := j.head(r.begins, r.at+readAhead)
	behind := head > r.was.Offset && head-r.was.Offset > uint64(j.room.Kept)
	switch {
	case r.reason != codec.ResetEpoch && behind:
		// The buffer does not reach so far.
	case j.held(r.was, r.begins.Epoch):
		j.find(Needless, r.member, r.at, "reset (%v) at %v, to %v, which is the same history", r.reason, r.was, r.begins)
	case !j.lost(j.known[r.was], r.at):
		j.find(Needless, r.member, r.at, "reset (%v) at %v, to %v; no history was lost since the former was new, at %v", r.reason, r.was, r.begins, j.known[r.was])
	}
}

// head is how far the buffer reached at an instant, in the epoch of a position that was in
// it by then.
func (j *judge) head(p codec.Position, by time.Duration) uint64 {
	for known, at := range j.known {
		if known.Epoch == p.Epoch && at <= by {
			p.Offset = max(p.Offset, known.Offset)
		}
	}
	return p.Offset
}

// lost reports whether history may have been lost between two instants.
func (j *judge) lost(since, until time.Duration) bool {
	return slices.ContainsFunc(j.faults, func(f Fault) bool { return f.Loses && f.To >= since && f.From <= until })
}

// held reports whether a position is known to be one of the history that is in an epoch:
// somebody stood there or beyond, and went on.
func (j *judge) held(p codec.Position, epoch string) bool {
	at := p.Epoch
	for range len(j.passages) {
		if at == epoch {
			return true
		}
		next, ok := j.passages[at]
		if !ok || p.Offset > next.end {
			return false
		}
		at = next.to
	}
	return at == epoch
}

// whole checks that a member has what was accepted, as far as each of its segments goes.
func (j *judge) whole(w *walk) {
	for _, s := range w.segments {
		epochs := map[string]bool{s.from.Epoch: true}
		for _, e := range s.events {
			epochs[e.Position.Epoch] = true
		}
		end := s.end()
		for _, p := range j.room.Sent {
			offset := p.Position.Offset
			if !p.Accepted || !epochs[p.Position.Epoch] || offset <= s.from.Offset {
				continue
			}
			i, found := slices.BinarySearchFunc(s.events, offset, func(e Entry, o uint64) int { return cmp.Compare(e.Position.Offset, o) })
			switch {
			case found && s.events[i].Key == p.Key:
			case found && s.events[i].Position == p.Position:
				j.find(Split, w.member, p.At, "publication %v was accepted at %v, where it has %v", p.Key, p.Position, s.events[i].Key)
			case !found && (s.over || offset < end.Offset):
				// A reset followed, or it was found missing already.
			case end.Epoch == p.Position.Epoch:
				j.find(Loss, w.member, p.At, "publication %v was accepted at %v; the member ends at %v", p.Key, p.Position, end)
			case !j.lost(p.At-justBefore, p.At+justAfter):
				j.find(Loss, w.member, p.At, "publication %v was accepted at %v, and passed over by %v", p.Key, p.Position, end)
			}
		}
	}
}

// ended checks that a member's last segment is of the history that the last publication is
// in: how far it reaches there is found by whole.
func (j *judge) ended(w *walk, last Publication) {
	if !last.Accepted || len(w.segments) == 0 {
		return
	}
	s := w.segments[len(w.segments)-1]
	if s.from.Epoch != last.Position.Epoch && !slices.ContainsFunc(s.events, func(e Entry) bool { return e.Position.Epoch == last.Position.Epoch }) {
		j.find(Loss, w.member, last.At, "the last publication is at %v; the member ends at %v", last.Position, s.end())
	}
}

// accepted checks that what was accepted was seen by somebody, or lost with the history, or
// that everybody was told to go on beyond it.
func (j *judge) accepted(p Publication, walks []*walk) {
	if j.had[p.Key] || len(walks) == 0 || j.lost(p.At-justBefore, p.At+justAfter) {
		return
	}
	for _, w := range walks {
		beyond := func(s *segment) bool {
			return s.anew && s.from.Epoch == p.Position.Epoch && s.from.Offset >= p.Position.Offset
		}
		if !slices.ContainsFunc(w.segments, beyond) {
			j.find(Loss, "", p.At, "publication %v was accepted at %v, and nobody had it", p.Key, p.Position)
			return
		}
	}
}
