package actors

import (
	"math/rand/v2"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// size is how many actors there are.
func (t *table) size() int { return len(t.actors) - len(t.free) }

// The table against a map, over random spawns and ends.
func TestTableModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var table table
	live := make(map[*Context]bool)
	most := 0
	for range 20_000 {
		if rnd.IntN(100) < 52 {
			c := &Context{}
			c.ref.PID = &actor.PID{RequestId: table.add(c)}
			live[c] = true
		} else {
			for c := range live {
				table.remove(c)
				delete(live, c)
				if table.find(c.ref.PID) != nil {
					t.Fatal("found after its end")
				}
				break
			}
		}
		most = max(most, len(live))
		if table.size() != len(live) || len(table.actors) > most {
			t.Fatalf("size %d of %d, places %d of at most %d", table.size(), len(live), len(table.actors), most)
		}
	}
	for c := range live {
		if table.find(c.ref.PID) != c {
			t.Fatal("not found")
		}
	}
	if table.find(&actor.PID{RequestId: uint32(len(table.actors))}) != nil {
		t.Fatal("found beyond the end")
	}
}
