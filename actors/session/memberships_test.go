package session

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

func membershipOf(room string) *message.Membership {
	return &message.Membership{Topic: codec.Topic{Tenant: "acme", Room: room}}
}

func TestMemberships(t *testing.T) {
	var ms memberships
	a, b := membershipOf("a"), membershipOf("b")
	ms.add(a)
	ms.add(b)
	if a.Seat == b.Seat || ms.find("a") != a || ms.find("b") != b || ms.find("c") != nil {
		t.Fatalf("seats %v and %v", a.Seat, b.Seat)
	}
	again := membershipOf("a")
	ms.replace(ms.find("a"), again)
	if again.Seat.Slot != a.Seat.Slot || again.Seat.Gen <= a.Seat.Gen+1 {
		t.Errorf("a newer membership has seat %v after %v: there must be a generation between, for the end of the older", again.Seat, a.Seat)
	}
	if ms.remove(a) {
		t.Error("the end of a membership that was replaced ended the newer one")
	}
	if ms.find("a") != again || ms.count != 2 {
		t.Error("the newer membership is gone")
	}
	if !ms.remove(again) || ms.find("a") != nil || ms.count != 1 {
		t.Error("removed, and still there")
	}
	if ms.remove(again) || ms.count != 1 {
		t.Error("removed twice")
	}
	c := membershipOf("c")
	ms.add(c)
	if c.Seat.Slot != a.Seat.Slot || c.Seat.Gen <= again.Seat.Gen+1 {
		t.Errorf("a slot that was free is used again with a later generation: %v after %v", c.Seat, again.Seat)
	}
}

// Against a map: no two memberships share a slot, no seat is ever given twice,
// and there are never more slots than were used at once.
func TestMembershipsAgainstAMap(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 7))
		var ms memberships
		in := map[string]*message.Membership{}
		var ended []*message.Membership
		given := map[mailbox.Seat]bool{}
		most, slots := 0, 0
		for range 500 {
			room := fmt.Sprint("r", random.IntN(12))
			m := membershipOf(room)
			switch old := in[room]; {
			case random.IntN(4) == 0 && len(ended) > 0:
				if ms.remove(ended[random.IntN(len(ended))]) {
					t.Fatalf("seed %d: a membership ended twice", seed)
				}
				continue
			case old == nil:
				ms.add(m)
			case random.IntN(2) == 0:
				ms.remove(old)
				delete(in, room)
				ended = append(ended, old)
				continue
			default:
				ms.replace(ms.find(room), m)
				ended = append(ended, old)
			}
			in[room] = m
			most, slots = max(most, len(in)), max(slots, int(m.Seat.Slot)+1)
			if given[m.Seat] {
				t.Fatalf("seed %d: seat %v was given before", seed, m.Seat)
			}
			given[m.Seat] = true
		}
		if int(ms.count) != len(in) || slots > most {
			t.Fatalf("seed %d: count %d of %d, %d slots for at most %d", seed, ms.count, len(in), slots, most)
		}
		for room, m := range in {
			if ms.find(room) != m {
				t.Fatalf("seed %d: %s is not found", seed, room)
			}
		}
	}
}
