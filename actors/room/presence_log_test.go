package room

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// From wherever a member is in the log, the net of what follows brings it to where
// the steps one by one would, names each subject once, and nobody who is as before.
func TestNetOfTheLogAgainstItsSteps(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		var log movements
		state := map[string]*seen{}
		states := []map[string]*seen{maps.Clone(state)}
		for seq := range uint64(12) {
			s := step{prev: seq, seq: seq + 1}
			for _, i := range random.Perm(5)[:random.IntN(4)] {
				subject := fmt.Sprint("u", i)
				before := state[subject]
				var after *seen
				if before == nil || random.IntN(2) == 0 {
					after = newSeen(&codec.Member{Subject: subject, Data: dataOf(random.IntN(2))})
					state[subject] = after
				} else {
					delete(state, subject)
				}
				s.note(change{subject, before, after})
			}
			log.add(s)
			states = append(states, maps.Clone(state))
		}
		for from, known := range states[:12] {
			steps, ok := log.from(uint64(from))
			if !ok {
				t.Fatalf("seed %d: %d is not in the log", seed, from)
			}
			var f codec.PresenceFrame
			size := fill(&f, net(steps))
			named := map[string]bool{}
			bytes := 0
			for i, list := range [][]codec.Member{f.Join, f.Update} {
				for _, m := range list {
					old := known[m.Subject]
					if named[m.Subject] || (old == nil) != (i == 0) || old != nil && old.Data.Same(m.Data) {
						t.Fatalf("seed %d from %d: %+v of a member that was %+v", seed, from, f, old)
					}
					named[m.Subject] = true
					known[m.Subject] = newSeen(&m)
					bytes += m.Size()
				}
			}
			for _, subject := range f.Leave {
				if named[subject] || known[subject] == nil {
					t.Fatalf("seed %d from %d: %s leaves", seed, from, subject)
				}
				bytes += known[subject].size
				delete(known, subject)
			}
			if bytes > size || !maps.EqualFunc(known, state, func(a, b *seen) bool { return a.Data.Same(b.Data) }) {
				t.Fatalf("seed %d from %d: leads to %v, want %v; %d bytes, said %d", seed, from, known, state, bytes, size)
			}
		}
		if _, ok := log.from(12); ok {
			t.Fatal("something follows the end")
		}
	}
}

func TestTheLogIsBoundedAndHasNoHoles(t *testing.T) {
	var log movements
	many := make([]change, loggedChanges/2)
	log.add(step{prev: 0, seq: 1, changes: many})
	log.add(step{prev: 1, seq: 2, changes: many})
	log.add(step{prev: 2, seq: 3, changes: many})
	if _, ok := log.from(0); ok || log.changes > loggedChanges {
		t.Errorf("%d changes are kept", log.changes)
	}
	for seq := range uint64(2*loggedSteps + 1) {
		log.add(step{prev: seq, seq: seq + 1})
		if len(log.steps) > loggedSteps {
			t.Fatalf("%d steps are kept", len(log.steps))
		}
	}
	log = movements{}
	log.add(step{prev: 1, seq: 2})
	log.add(step{prev: 3, seq: 4})
	if _, ok := log.from(1); ok {
		t.Error("the log goes on over a hole")
	}
}

func TestGatheringGrowsWithTheMembership(t *testing.T) {
	for _, c := range []struct {
		members int
		listed  bool
		want    time.Duration
	}{
		{0, true, 100 * time.Millisecond},
		{1, true, 100*time.Millisecond + 900*time.Microsecond},
		{500, true, 550 * time.Millisecond},
		{1000, true, time.Second},
		{1_000_000, true, time.Second},
		{1, false, time.Second}, // the number alone
	} {
		if got := gatherFor(c.members, c.listed); got != c.want {
			t.Errorf("%d members, listed %v: %v, want %v", c.members, c.listed, got, c.want)
		}
	}
}
