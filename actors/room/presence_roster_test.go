package room

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func memberOf(session, subject string) *member {
	return &member{Membership: &message.Membership{Session: session, Subject: subject}}
}

func dataOf(n int) codec.Data {
	d, _ := codec.MakeData(codec.JSON, fmt.Append(nil, n))
	return d
}

// here is a bridge that takes reports.
type here map[string]codec.Member

func (h here) take(u bridge.PresenceUpdate) {
	if u.Whole {
		clear(h)
	}
	for _, m := range u.Put {
		h[m.Subject] = m
	}
	for _, subject := range u.Remove {
		delete(h, subject)
	}
}

// naive is a roster that is looked through from end to end.
type naive struct{ list []*naiveEntry } // in order of joins

type naiveEntry struct {
	owner    *member
	data     codec.Data
	lost     bool
	deadline int64
}

func (n *naive) drop(gone func(*naiveEntry) bool) { n.list = slices.DeleteFunc(n.list, gone) }

func (n *naive) here() here {
	h := here{}
	for _, e := range n.list {
		h[e.owner.Subject] = codec.Member{
			Subject: e.owner.Subject, Sessions: h[e.owner.Subject].Sessions + 1, Data: e.data,
		}
	}
	return h
}

// Joins, some of connections that were taken over, leaves, drops and takeovers in any
// order, with reports that land, fail or are of everybody: the bridge has what a naive
// roster has, who is settled is there with its data, and a report says nothing that the
// bridge has already, but for numbers of sessions and what is told again.
func TestRosterAgainstANaiveOne(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		r, n, told := newRoster(), &naive{}, here{}
		var members []*member
		var flying *report
		now := int64(1)
		for range 200 {
			now += int64(random.IntN(3))
			var m *member
			if len(members) > 0 {
				m = members[random.IntN(len(members))]
			}
			switch k := random.IntN(10); {
			case k < 4 || m == nil: // joins, taking over what its session has
				session := random.IntN(12)
				m = memberOf(fmt.Sprint("s", session), fmt.Sprint("u", session%4))
				m.Connection = uint32(random.IntN(3))
				data := dataOf(random.IntN(3))
				overtaken := func(e *naiveEntry) bool {
					return e.owner.Session == m.Session && e.owner.Connection > m.Connection
				}
				if !slices.ContainsFunc(n.list, overtaken) {
					n.drop(func(e *naiveEntry) bool { return e.owner.Session == m.Session })
					n.list = append(n.list, &naiveEntry{owner: m, data: data})
				}
				r.join(m, data)
				members = append(members, m)
			case k < 6:
				n.drop(func(e *naiveEntry) bool { return e.owner == m && !e.lost })
				r.leave(m)
			case k < 8:
				for _, e := range n.list {
					if e.owner == m && !e.lost {
						e.lost, e.deadline = true, now+5
					}
				}
				r.lose(m, now+5)
			case k < 9:
				n.drop(func(e *naiveEntry) bool { return e.lost && e.deadline <= now })
				r.expire(now)
			case flying == nil:
				rep := r.report(random.IntN(8) == 0)
				flying = &rep
				if random.IntN(4) > 0 {
					told.take(rep.PresenceUpdate)
				}
			case random.IntN(4) == 0:
				r.failed(*flying)
				flying = nil
			default:
				told.take(flying.PresenceUpdate) // once more, perhaps
				r.landed(*flying)
				flying = nil
			}
			want := n.here()
			if r.empty() != (len(n.list) == 0) || len(r.entries) != len(n.list) || len(r.subjects) != len(want) {
				t.Fatalf("seed %d: %d entries of %d subjects, want %d of %d", seed, len(r.entries), len(r.subjects), len(n.list), len(want))
			}
			earliest := int64(0)
			for _, e := range n.list {
				if e.lost && (earliest == 0 || e.deadline < earliest) {
					earliest = e.deadline
				}
			}
			if at := r.deadline(); at != earliest {
				t.Fatalf("seed %d: the next leaves at %d, want %d", seed, at, earliest)
			}
			for subject, m := range want {
				if !r.has(subject) || r.sessions(subject) != m.Sessions {
					t.Fatalf("seed %d: %s has %d sessions, want %d", seed, subject, r.sessions(subject), m.Sessions)
				}
				if flying == nil && r.settled(subject) && !told[subject].Data.Same(m.Data) {
					t.Fatalf("seed %d: %s is settled, and the bridge has %v for %v", seed, subject, told[subject], m)
				}
			}
		}
		if flying != nil {
			r.failed(*flying)
		}
		told.take(r.report(false).PresenceUpdate)
		if !maps.EqualFunc(told, n.here(), func(a, b codec.Member) bool { return a.Sessions == b.Sessions && a.Data.Same(b.Data) }) {
			t.Fatalf("seed %d: the bridge has %v, want %v", seed, told, n.here())
		}
		if rep := r.report(false); len(rep.Put)+len(rep.Remove) > 0 {
			t.Fatalf("seed %d: told twice: %+v", seed, rep)
		}
		for _, e := range slices.Clone(n.list) {
			r.lose(e.owner, now)
		}
		r.expire(now + 10)
		if !r.empty() || r.bytes != 0 || r.lost.Len() != 0 {
			t.Fatalf("seed %d: at the end %d entries of %d bytes", seed, len(r.entries), r.bytes)
		}
	}
}

func TestRosterSaysOnlyWhatIsNew(t *testing.T) {
	a1, a2, b := memberOf("a1", "a"), memberOf("a2", "a"), memberOf("b", "b")
	again := memberOf("a1", "a")
	steps := []struct {
		name string
		do   func(r *roster)
		want string // put with sessions and data; removed
	}{
		{"the first session", func(r *roster) { r.join(a1, dataOf(1)) }, "+a×1=1"},
		{"a second one with other data", func(r *roster) { r.join(a2, dataOf(2)) }, "+a×2=2"},
		{"the newer one leaves: the older one's data is back", func(r *roster) { r.leave(a2) }, "+a×1=1"},
		{"a lost connection", func(r *roster) { r.lose(a1, 10) }, ""},
		{"is back in time", func(r *roster) { r.join(again, dataOf(1)) }, ""},
		{"the end of what was taken over", func(r *roster) { r.leave(a1); r.lose(a1, 5); r.expire(20) }, ""},
		{"a subject that comes and goes between two reports", func(r *roster) { r.join(b, dataOf(1)); r.leave(b) }, "-b"},
		{"the last session", func(r *roster) { r.leave(again) }, "-a"},
	}
	r := newRoster()
	for _, s := range steps {
		s.do(r)
		rep := r.report(false)
		r.landed(rep)
		got := ""
		for _, m := range rep.Put {
			got += fmt.Sprintf("+%s×%d=%s", m.Subject, m.Sessions, m.Data.Raw())
		}
		for _, subject := range rep.Remove {
			got += "-" + subject
		}
		if got != s.want {
			t.Fatalf("%s: reports %q, want %q", s.name, got, s.want)
		}
	}
}

// While the bridge is away a room may see any number of subjects come and go: what is
// remembered of them is bounded, and the next report tells of them by not naming them.
func TestRosterForgetsWhoHasLeftWhileTheBridgeIsAway(t *testing.T) {
	r, told := newRoster(), here{"u0": {}}
	stays := memberOf("stays", "stays")
	r.join(stays, dataOf(1))
	whole := false
	for i := range 3 * mostGone {
		m := memberOf("s", fmt.Sprint("u", i))
		r.join(m, dataOf(1))
		r.leave(m)
		whole = r.forget() || whole
		if len(r.dirty) > len(r.subjects)+mostGone {
			t.Fatalf("%d subjects are remembered, of %d that are here", len(r.dirty), len(r.subjects))
		}
	}
	told.take(r.report(whole).PresenceUpdate)
	if _, ok := told["stays"]; !ok || len(told) != 1 {
		t.Errorf("the bridge has %v", told)
	}
}

// One subject with very many sessions, as of all who are not logged in, costs no
// more for each.
func TestRosterOfOneSubjectWithManySessions(t *testing.T) {
	r := newRoster()
	var all []*member
	for i := range 50_000 {
		m := memberOf(fmt.Sprint(i), "anybody")
		all = append(all, m)
		r.join(m, codec.Data{})
	}
	for _, m := range all {
		r.leave(m)
	}
	if !r.empty() || r.has("anybody") {
		t.Error("somebody is left")
	}
}
