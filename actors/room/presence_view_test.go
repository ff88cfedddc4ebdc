package room

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// hall is a bridge's presence of one topic, whose changes the test delivers.
type hall struct {
	members map[string]codec.Member
	mark    bridge.Mark
	changes []bridge.PresenceChange // on their way
}

func newHall() *hall {
	return &hall{members: map[string]codec.Member{}, mark: bridge.Mark{Epoch: "p0"}}
}

func (h *hall) change(c bridge.PresenceChange) {
	c.Prev = h.mark.Seq
	h.mark.Seq++
	c.Mark = h.mark
	for _, m := range append(c.Joined, c.Updated...) {
		h.members[m.Subject] = m
	}
	for _, subject := range c.Left {
		delete(h.members, subject)
	}
	h.changes = append(h.changes, c)
}

func (h *hall) join(subjects ...string) {
	var c bridge.PresenceChange
	for _, s := range subjects {
		c.Joined = append(c.Joined, codec.Member{Subject: s, Sessions: 1})
	}
	h.change(c)
}

func (h *hall) leave(subjects ...string) { h.change(bridge.PresenceChange{Left: subjects}) }

func (h *hall) page(after string, limit int) bridge.MemberPage {
	p := bridge.MemberPage{Mark: h.mark, Count: len(h.members)}
	for _, s := range slices.Sorted(maps.Keys(h.members)) {
		if s > after && len(p.Members) < limit {
			p.Members = append(p.Members, h.members[s])
		} else if s > after {
			p.More = true
		}
	}
	return p
}

// deliver gives the view all that is on its way.
func (h *hall) deliver(v *view) (steps []step) {
	for _, c := range h.changes {
		if s, moved, _ := v.changed(c); moved {
			steps = append(steps, s)
		}
	}
	h.changes = nil
	return steps
}

// read answers what the view wants until it wants nothing.
func (h *hall) read(v *view, limit int) (steps []step) {
	for r := v.wants(); r != nil; r = v.wants() {
		if s, moved, _ := v.page(r, h.page(r.after, limit)); moved {
			steps = append(steps, s)
		}
	}
	return steps
}

func nobodyLocal(string) bool { return false }

func (v *view) String() string {
	switch {
	case !v.whole:
		return "not whole"
	case !v.listed:
		return fmt.Sprint(v.count)
	}
	return fmt.Sprint(slices.Sorted(maps.Keys(v.members)))
}

// B140, phoenixframework/phoenix#2255: a leave between the snapshot and the first
// change was lost, so that who had left stayed for ever.
func TestB140_LeaveBetweenTheListAndTheFirstChange(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(h *hall, v *view, page bridge.MemberPage, r *reading)
	}{
		{"the leave comes before the list", func(h *hall, v *view, page bridge.MemberPage, r *reading) {
			h.leave("x")
			h.deliver(v)
			v.page(r, page)
		}},
		{"the leave comes after the list", func(h *hall, v *view, page bridge.MemberPage, r *reading) {
			h.leave("x")
			v.page(r, page)
			h.deliver(v)
		}},
		{"it left and came and left again", func(h *hall, v *view, page bridge.MemberPage, r *reading) {
			h.leave("x")
			h.deliver(v)
			h.join("x")
			v.page(r, page)
			h.leave("x")
			h.deliver(v)
		}},
		{"the change that it left with is lost, and the next is not", func(h *hall, v *view, page bridge.MemberPage, r *reading) {
			h.leave("x")
			h.changes = nil
			v.page(r, page)
			h.join("z")
			h.deliver(v)
			h.read(v, 10)
			h.leave("z")
			h.deliver(v)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, v := newHall(), newView(10, 1<<20, nobodyLocal)
			h.join("x", "y")
			h.changes = nil
			for range 2 { // the second time after the link was made anew
				v.anew()
				r := v.wants()
				c.leave(h, v, h.page(r.after, 10), r)
				want(t, "the view", v, "[y]")
				h.join("x")
				h.deliver(v)
			}
		})
	}
}

// However changes, lists and losses follow each other: when all has been
// delivered the view is what the bridge has; who follows its steps has the same at
// each of them; and it holds no more than it may.
func TestViewAgainstTheBridge(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 2))
		const limit = 10
		h, v := newHall(), newView(limit, 1<<20, nobodyLocal)
		if seed%4 == 0 {
			v.most = 200 // before there are too many they are too large
		}
		follower := map[string]*seen{}
		at := uint64(0)
		take := func(steps ...step) {
			for _, s := range steps {
				if s.rebased {
					follower = maps.Clone(v.members) // as a full would tell
				} else if s.prev != at {
					t.Fatalf("seed %d: a step from %d, the one before went to %d", seed, s.prev, at)
				}
				at = s.seq
				for _, c := range s.changes {
					if c.before == nil != (follower[c.subject] == nil) {
						t.Fatalf("seed %d: %s was there: %v", seed, c.subject, c.before != nil)
					}
					if c.after == nil {
						delete(follower, c.subject)
					} else {
						follower[c.subject] = c.after
					}
				}
			}
		}
		var asked *reading
		var page bridge.MemberPage
		v.anew()
		for range 150 {
			switch k := random.IntN(12); {
			case k < 5:
				var c bridge.PresenceChange
				for range 1 + random.IntN(3) {
					s := fmt.Sprint("u", random.IntN(16))
					m, there := h.members[s]
					switch {
					case !there:
						c.Joined = append(c.Joined, codec.Member{Subject: s, Sessions: 1, Data: dataOf(random.IntN(3))})
					case random.IntN(3) > 0:
						if c.Left = append(c.Left, s); slices.Contains(c.Left[:len(c.Left)-1], s) {
							c.Left = c.Left[:len(c.Left)-1]
						}
					default:
						m.Data = dataOf(random.IntN(3))
						c.Updated = append(c.Updated, m)
					}
				}
				c.Joined = slices.CompactFunc(c.Joined, func(a, b codec.Member) bool { return a.Subject == b.Subject })
				for i, m := range c.Joined { // one subject once
					c.Joined = append(c.Joined[:i+1], slices.DeleteFunc(c.Joined[i+1:], func(o codec.Member) bool { return o.Subject == m.Subject })...)
					if i+1 >= len(c.Joined) {
						break
					}
				}
				c.Updated = slices.DeleteFunc(c.Updated, func(m codec.Member) bool { return slices.Contains(c.Left, m.Subject) })
				h.change(c)
			case k < 8 && len(h.changes) > 0:
				c := h.changes[0]
				h.changes = h.changes[1:]
				if random.IntN(15) == 0 {
					break // lost
				}
				for range 1 + random.IntN(2) { // it may come twice
					if s, moved, _ := v.changed(c); moved {
						take(s)
					}
				}
			case k == 8 && asked == nil:
				if asked = v.wants(); asked != nil {
					page = h.page(asked.after, 4)
				}
			case k == 9 && asked != nil:
				r := asked
				asked = nil
				if random.IntN(6) == 0 {
					v.failed(r)
				} else if s, moved, _ := v.page(r, page); moved {
					take(s)
				}
			case k == 10 && random.IntN(6) == 0:
				v.anew()
			case k == 11 && random.IntN(12) == 0: // the bridge has lost all
				h.members, h.mark = map[string]codec.Member{}, bridge.Mark{Epoch: fmt.Sprint("p", seed, random.IntN(1000))}
				h.changes = nil
				v.anew()
			}
			if v.listed && (len(v.members) > v.limit || v.bytes > v.most) {
				t.Fatalf("seed %d: holds %d members of %d bytes", seed, len(v.members), v.bytes)
			}
			if v.whole && v.listed && !maps.EqualFunc(follower, v.members, func(a, b *seen) bool { return a.Data.Same(b.Data) }) {
				t.Fatalf("seed %d: a follower has %v, the view %v", seed, follower, v.members)
			}
		}
		take(h.deliver(v)...)
		if asked != nil {
			v.failed(asked)
		}
		h.join(fmt.Sprint("last", seed)) // shows what was lost on the way
		take(h.deliver(v)...)
		take(h.read(v, 4)...)
		if !v.whole || v.mark != h.mark || v.number() != len(h.members) || v.count != len(h.members) {
			t.Fatalf("seed %d: view at %v (whole %v) of %d, bridge at %v of %d", seed, v.mark, v.whole, v.number(), h.mark, len(h.members))
		}
		bytes := 0
		for s, m := range v.members {
			bytes += m.size
			if !h.members[s].Data.Same(m.Data) {
				t.Fatalf("seed %d: %s has other data", seed, s)
			}
		}
		if bytes != v.bytes {
			t.Fatalf("seed %d: members of %d bytes, booked %d", seed, bytes, v.bytes)
		}
	}
}

// Above the limit only the number; the list is back below nine tenths of it, not
// before.
func TestViewGivesTheListUpAndTakesItBack(t *testing.T) {
	h, v := newHall(), newView(20, 1<<20, nobodyLocal)
	v.anew()
	h.read(v, 7)
	name := func(i int) string { return fmt.Sprintf("u%02d", i) }
	for i := range 21 {
		h.join(name(i))
		h.deliver(v)
		if v.listed != (i < 20) || v.members == nil == v.listed {
			t.Fatalf("with %d: listed %v", i+1, v.listed)
		}
	}
	for i := range 4 {
		if h.leave(name(i)); len(h.deliver(v)) != 1 {
			t.Fatal("no step")
		}
		steps := h.read(v, 7)
		if back := v.number() < 18; v.listed != back || len(steps) > 0 != back {
			t.Fatalf("with %d: listed %v, %d steps", v.number(), v.listed, len(steps))
		} else if back && !steps[0].rebased {
			t.Error("the list is back, and members are not given it whole")
		}
	}
}

// Members whose list is too large for a frame are counted, however few they are.
func TestViewOfLargeMembers(t *testing.T) {
	h, v := newHall(), newView(100, 400, nobodyLocal)
	v.anew()
	h.read(v, 7)
	large := func(i int) {
		d, _ := codec.MakeData(codec.JSON, fmt.Appendf(nil, `"%060d"`, i))
		h.change(bridge.PresenceChange{Joined: []codec.Member{{Subject: fmt.Sprint("u", i), Sessions: 1, Data: d}}})
	}
	for i := range 5 {
		large(i)
	}
	h.deliver(v)
	want(t, "five", v, 5)
	h.read(v, 7)
	want(t, "still five", v, 5)
	h.leave("u0")
	h.deliver(v)
	h.read(v, 7)
	want(t, "four", v, "[u1 u2 u3 u4]")
}

// What this node has does not leave its view, whatever the bridge has lost; it is
// told to the bridge again.
func TestViewKeepsWhatThisNodeHas(t *testing.T) {
	mine := func(subject string) bool { return subject == "mine" }
	h, v := newHall(), newView(10, 1<<20, mine)
	v.anew()
	h.read(v, 10)
	h.join("mine", "other")
	h.deliver(v)
	v.broken = false

	h.leave("mine", "other")
	s, moved, back := v.changed(h.changes[0])
	h.changes = nil
	want(t, "after a leave", fmt.Sprint(v, moved, back, len(s.changes)), "[mine] true [mine] 1")
	want(t, "and in the count, which is the bridge's", v.count, 0)
	h.join("mine")
	if steps := h.deliver(v); len(steps) != 1 || len(steps[0].changes) != 0 {
		t.Errorf("it came back, and that was told: %+v", steps)
	}

	h.members, h.mark = map[string]codec.Member{}, bridge.Mark{Epoch: "p1"} // B144
	v.anew()
	if !v.broken {
		t.Error("the bridge has lost everything, and is not told again")
	}
	h.read(v, 10)
	want(t, "after a list without it", v, "[mine]")
}

// While a list is read what is held has a bound, beyond which it is read anew.
func TestViewHoldsOnlySoMuch(t *testing.T) {
	h, v := newHall(), newView(10, 1<<20, nobodyLocal)
	v.anew()
	first := v.wants()
	page := h.page(first.after, 10)
	for i := range heldChanges + 1 {
		h.join("x")
		h.leave("x")
		if i%2 == 0 {
			h.deliver(v)
		}
	}
	h.deliver(v)
	if n := len(v.reading.held); n > heldChanges {
		t.Errorf("%d changes are held", n)
	}
	if _, moved, _ := v.page(first, page); moved {
		t.Error("a page of a reading that was given up is taken")
	}
	h.read(v, 10)
	want(t, "the view", v, "[]")
}
