package room

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// What a movements log holds at most. Beyond, whoever was not told yet gets the
// whole list.
const (
	loggedSteps   = 1024
	loggedChanges = 4096
)

// movements are the steps of the view that not every member has been told. Pure.
//
// Invariant: each step begins where the one before it ended.
type movements struct {
	steps   []step
	changes int
}

func (l *movements) add(s step) {
	if n := len(l.steps); n > 0 && l.steps[n-1].seq != s.prev ||
		n >= loggedSteps || l.changes+len(s.changes) > loggedChanges {
		*l = movements{}
		return
	}
	l.steps = append(l.steps, s)
	l.changes += len(s.changes)
}

// from is the steps after seq; false: it is no place in the log.
func (l *movements) from(seq uint64) ([]step, bool) {
	for i := range l.steps {
		if l.steps[i].prev == seq {
			return l.steps[i:], true
		}
	}
	return nil, false
}

// net is what steps have changed in all: who came and left again is not in it.
func net(steps []step) []change {
	var all []change
	at := make(map[string]int)
	for _, s := range steps {
		for _, c := range s.changes {
			if i, ok := at[c.subject]; ok {
				all[i].after = c.after
				continue
			}
			at[c.subject] = len(all)
			all = append(all, c)
		}
	}
	var sum step
	for _, c := range all {
		if c.before != nil || c.after != nil {
			sum.note(c)
		}
	}
	return sum.changes
}

// fill puts changes into a frame, and says how many bytes they need.
func fill(f *codec.PresenceFrame, changes []change) (size int) {
	for _, c := range changes {
		switch {
		case c.after == nil:
			f.Leave = append(f.Leave, c.subject)
			size += c.before.size
			continue
		case c.before == nil:
			f.Join = append(f.Join, c.after.Member)
		default:
			f.Update = append(f.Update, c.after.Member)
		}
		size += c.after.size
	}
	return size
}

// How long changes are gathered.
const (
	gatherLeast = 100 * time.Millisecond
	gatherMost  = time.Second
	gatherAt    = 1000 // members at which it is gatherMost
)

// gatherFor grows with the membership, since a frame goes to every member. The
// number alone is told at most once in gatherMost.
func gatherFor(members int, listed bool) time.Duration {
	if !listed || members >= gatherAt {
		return gatherMost
	}
	return gatherLeast + (gatherMost-gatherLeast)*time.Duration(members)/gatherAt
}
