package redis

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// The parts of an update, one after another, have its effect; none is larger than it
// may be, and only the last tells who stays.
func TestPartsHaveTheEffectOfTheWhole(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		u := bridge.PresenceUpdate{Whole: random.IntN(2) == 0}
		there := map[string]bool{}
		for i := range random.IntN(3000) {
			subject := fmt.Sprint("s", i)
			if random.IntN(3) == 0 {
				there[subject] = true
			}
			switch random.IntN(3) {
			case 0:
				data, err := codec.MakeData(codec.JSON, []byte(strconv.Quote(strings.Repeat("x", random.IntN(1000)))))
				if err != nil {
					t.Fatal(err)
				}
				u.Put = append(u.Put, codec.Member{Subject: subject, Data: data})
			case 1:
				u.Remove = append(u.Remove, subject)
			}
		}
		want := maps.Clone(there)
		if u.Whole {
			clear(want)
		}
		for _, subject := range u.Remove {
			delete(want, subject)
		}
		for _, m := range u.Put {
			want[m.Subject] = true
		}
		parts := partsOf(u)
		for i, p := range parts {
			bytes := 0
			for _, m := range p.Put {
				bytes += m.Data.Len()
				there[m.Subject] = true
			}
			for _, subject := range p.Remove {
				delete(there, subject)
			}
			if n := len(p.Put) + len(p.Remove); n > partSubjects || bytes > callBytes || n == 0 && len(parts) > 1 {
				t.Fatalf("seed %d: a part of %d, with %d bytes", seed, n, bytes)
			}
			if p.Whole != (u.Whole && i == len(parts)-1) {
				t.Fatalf("seed %d: part %d is whole: %v", seed, i, p.Whole)
			}
			if p.Whole {
				stay := map[string]bool{}
				for _, m := range p.Put {
					stay[m.Subject] = true
				}
				for _, subject := range p.stay {
					stay[subject] = true
				}
				maps.DeleteFunc(there, func(subject string, _ bool) bool { return !stay[subject] })
			}
		}
		if !maps.Equal(there, want) {
			t.Fatalf("seed %d: %d are there, want %d", seed, len(there), len(want))
		}
	}
}

func TestFramesThatAreNone(t *testing.T) {
	const head = "1 a pe 1 2 0\n"
	for _, text := range []string{
		"", "1 a pe 1 2 0", "2 a pe 1 2 0\n", "1 a  1 2 0\n", "1 a pe x 2 0\n", "1 a pe 1 -2 0\n", "1 a anepochthatistoolong 1 2 0\n",
		head + "x1:a2:1-", head + "j1:a", head + "j1:a1:1", head + "j1:a2:1 ", head + "j1:a3:1 x", head + "j1:a4:1 j{",
		head + "l", head + "l2:a", head + "lx:a", head + "l-1:a", head + "l99999999999:a", head + "l1:al",
	} {
		if f, err := readFrame(text); err == nil {
			t.Errorf("%q was read as %+v", text, f)
		}
	}
	f, err := readFrame("1 a pe 4 5 1 later fields\nj1:a3:2 -u2:ü\n8:1 j[\"x\"]l0:")
	if err == nil {
		t.Errorf("text lengths are bytes: %+v", f)
	}
	f, err = readFrame("1 a pe 4 5 1 later fields\nj1:a3:2 -u3:ü\n8:1 j[\"x\"]l0:")
	want := bridge.Mark{Epoch: "pe", Seq: 5}
	if err != nil || !f.gone || f.node != "a" || f.change.Mark != want || f.change.Prev != 4 || f.change.Joined[0].Sessions != 2 ||
		f.change.Updated[0].Subject != "ü\n" || string(f.change.Updated[0].Data.Raw()) != `["x"]` || !slices.Equal(f.change.Left, []string{""}) {
		t.Errorf("%+v, %v", f, err)
	}
}

// Whatever comes is a frame or is refused, and a frame says what it was read from.
func FuzzReadFrame(f *testing.F) {
	f.Add("1 a pe 1 2 0\nj1:a3:2 -u3:ü\n7:1 j[\"x\"]l1:b")
	f.Add("1 a pe 1 2 1\nl0:")
	f.Add("1 a pe 1 2 0\nj1:a4:1 m\x01")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readFrame(text)
		if err != nil {
			var e *codec.Error
			if !errors.Is(err, errMessage) && !errors.Is(err, codec.ErrMalformed) && !errors.As(err, &e) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		again, err := readFrame(written(got))
		if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", got) {
			t.Errorf("%+v became %+v, %v", got, again, err)
		}
	})
}

func written(f frame) string {
	var b strings.Builder
	fmt.Fprintf(&b, "1 %s %s %d %d %d\n", f.node, f.change.Mark.Epoch, f.change.Prev, f.change.Mark.Seq, flag(f.gone))
	for letter, members := range map[string][]codec.Member{"j": f.change.Joined, "u": f.change.Updated} {
		for _, m := range members {
			data := strconv.Itoa(m.Sessions) + " " + dataText(m.Data)
			fmt.Fprintf(&b, "%s%d:%s%d:%s", letter, len(m.Subject), m.Subject, len(data), data)
		}
	}
	for _, subject := range f.change.Left {
		fmt.Fprintf(&b, "l%d:%s", len(subject), subject)
	}
	return b.String()
}

// What one call renews lies in one partition, and is not too much.
func TestRenewalsOfOnePartition(t *testing.T) {
	var held []bridge.Lease
	for i := range 20_000 {
		held = append(held, bridge.Lease{Tenant: fmt.Sprint("t", i%7), Session: strconv.Itoa(i)})
	}
	for _, n := range []names{{}, {cluster: true}} {
		left := map[bridge.Lease]bool{}
		for _, lease := range held {
			left[lease] = true
		}
		for _, part := range n.renewals(held) {
			tags := map[string]bool{}
			for _, lease := range part.held {
				delete(left, lease)
				_, rest, _ := strings.Cut(n.session(lease.Tenant, lease.Session), "{")
				tag, _, _ := strings.Cut(rest, "}")
				tags[tag] = true
			}
			if len(tags) != 1 || len(part.held) > renewMost {
				t.Fatalf("%d leases of %d partitions in one call", len(part.held), len(tags))
			}
		}
		if len(left) > 0 {
			t.Errorf("%d leases are left out", len(left))
		}
	}
}
