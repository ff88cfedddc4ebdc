package room

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/actors/message"
)

func TestMemberTransitions(t *testing.T) {
	allowed := map[memberState]string{
		expected: "joining live behind over",
		joining:  "live behind over",
		live:     "behind over",
		behind:   "live over",
		over:     "",
	}
	for from := expected; from <= over; from++ {
		var got []string
		for to := expected; to <= over; to++ {
			func() {
				defer func() { recover() }()
				m := &member{state: from}
				m.become(to)
				got = append(got, to.String())
			}()
		}
		if s := fmt.Sprint(got); s != "["+allowed[from]+"]" {
			t.Errorf("from %v: %v, want %v", from, s, allowed[from])
		}
	}
}

// A fan-out serves places 0 to n as they were when it began; whoever leaves or
// joins meanwhile moves nobody else.
func TestMembersKeepTheirPlacesDuringAFanOut(t *testing.T) {
	var ms members
	all := make([]*member, 6)
	for i := range all {
		all[i] = &member{Membership: &message.Membership{}}
		ms.add(all[i])
	}
	ms.remove(all[1], true)
	ms.remove(all[5], true)
	late := &member{Membership: &message.Membership{}}
	ms.add(late)
	for i, m := range all {
		want := m
		if i == 1 || i == 5 {
			want = nil
		}
		if ms.list[i] != want {
			t.Fatalf("place %d has moved", i)
		}
	}
	if ms.count != 5 || late.index != 6 {
		t.Fatalf("count %d, the newcomer at %d", ms.count, late.index)
	}
	ms.compact()
	if len(ms.list) != 5 || slices.Contains(ms.list, nil) {
		t.Fatalf("holes remain: %v", ms.list)
	}
}

func TestMembersAgainstASet(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		var ms members
		in := map[*member]bool{}
		steady := false
		for range 600 {
			switch n := random.IntN(10); {
			case n < 5:
				m := &member{index: -1}
				ms.add(m)
				in[m] = true
			case n < 9:
				for m := range in {
					ms.remove(m, steady)
					delete(in, m)
					if m.index != -1 {
						t.Fatal("one who left has a place")
					}
					if random.IntN(3) > 0 {
						break
					}
				}
			default:
				if steady = !steady; !steady {
					ms.compact()
				}
			}
			if ms.count != len(in) || !steady && len(ms.list) != len(in) {
				t.Fatalf("seed %d: count %d, list %d, there are %d", seed, ms.count, len(ms.list), len(in))
			}
			for m := range in {
				if ms.list[m.index] != m {
					t.Fatalf("seed %d: a member is not in its place", seed)
				}
			}
		}
	}
}

func TestMembersGiveMemoryBack(t *testing.T) {
	var ms members
	all := make([]*member, 10_000)
	for i := range all {
		all[i] = &member{}
		ms.add(all[i])
	}
	for _, m := range all[10:] {
		ms.remove(m, false)
	}
	if cap(ms.list) > 64 {
		t.Errorf("ten members in a list of %d", cap(ms.list))
	}
}
