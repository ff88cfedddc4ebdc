package mailbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

func TestOutboundNothingBeforeTheWelcome(t *testing.T) {
	r := newOutRig(t, 8, 1<<16)
	s := seat(0, 2)
	r.enter(s)
	r.deliver(s, event("a", lossy))
	r.out.Reserve()
	r.reply(control, "reply", Seat{}, false)
	want(t, "before", r.written(), []string(nil))
	r.out.Open(named("welcome"), []Seat{s})
	want(t, "after", r.written(), []string{"welcome", "reply", "a"})
	r.ended()
}

func TestOutboundALaneKeepsItsOrder(t *testing.T) {
	for _, l := range []backpressure.Lane{interactive, bulk, lossy} {
		r := newOpenRig(t, 256, 1<<16)
		s := seat(0, 2)
		r.opened(s)
		var sent []string
		for i := range 200 {
			name := fmt.Sprint("e", i)
			sent = append(sent, name)
			r.deliver(s, event(name, l))
			if i%7 == 0 {
				r.pool.Step()
			}
		}
		want(t, l.String(), r.written(), sent)
		r.ended()
	}
}

// Every pair of lanes: the membership's reply in one, its events in another that
// is served sooner or later than it. Frames of another membership stand before
// the mark, so that it does not go out at once.
func TestOutboundEachPairOfLanesKeepsTheOrderOfAMembership(t *testing.T) {
	lanes := []backpressure.Lane{interactive, bulk, lossy}
	for _, marks := range lanes {
		for _, events := range lanes {
			t.Run(fmt.Sprintf("marks %v events %v", marks, events), func(t *testing.T) {
				r := newOpenRig(t, 1024, 1<<20)
				other, s := seat(0, 2), seat(1, 2)
				r.opened(other)
				r.enter(s)
				for i := range 100 {
					r.deliver(other, event(fmt.Sprint("o", i), marks))
				}
				r.out.Reserve()
				r.reply(marks, "joined", s, true)
				for i := range 10 {
					r.deliver(s, event(fmt.Sprint("e", i), events))
				}
				for i := range 100 {
					r.deliver(other, event(fmt.Sprint("p", i), marks))
				}
				r.out.Reserve()
				r.reply(marks, "left", Seat{Slot: 1, Gen: 3}, true)
				r.deliver(s, event("late", events)) // its room would not, but the lanes may cross
				got := r.written()
				joined, left := slices.Index(got, "joined"), slices.Index(got, "left")
				if joined < 0 || left < joined {
					t.Fatalf("joined at %d, left at %d", joined, left)
				}
				var mine, others []string
				for i, name := range got {
					switch name[0] {
					case 'e':
						if i < joined || i > left {
							t.Errorf("%s at %d, outside of %d to %d", name, i, joined, left)
						}
						mine = append(mine, name)
					case 'o', 'p':
						others = append(others, name)
					}
				}
				if slices.Index(got, "late") > left {
					t.Error("an event followed the reply to the leave")
				}
				if len(mine) != 10 || !slices.IsSorted(mine) {
					t.Errorf("of ten events between the marks came %v", mine)
				}
				if len(others) != 200 {
					t.Errorf("the other membership got %d of 200", len(others))
				}
				r.ended()
			})
		}
	}
}

func TestOutboundGenerations(t *testing.T) {
	old, new := seat(0, 2), seat(0, 4)
	for _, c := range []struct {
		name string
		do   func(r *outRig)
		want string
	}{
		{"an event of a later generation waits for its mark", func(r *outRig) {
			r.deliver(new, event("e", lossy))
			r.run()
			r.out.Reserve()
			r.reply(bulk, "joined", new, true)
		}, "joined e"},
		{"an event of an earlier generation is dropped once the later is open", func(r *outRig) {
			r.deliver(old, event("e", lossy))
			r.out.Reserve()
			r.reply(interactive, "joined", new, true)
		}, "joined"},
		{"a mark goes out whatever its generation: every request is answered", func(r *outRig) {
			r.out.Reserve()
			r.reply(interactive, "joined", new, true)
			r.run()
			r.out.Reserve()
			r.reply(bulk, "left", seat(0, 3), true)
			r.run()
			r.deliver(new, event("e", lossy))
		}, "joined left e"},
		{"a reply that is no mark waits for nothing", func(r *outRig) {
			r.out.Reserve()
			r.reply(control, "reply", new, false)
		}, "reply"},
		{"one who waits for its mark does not hold up other lanes", func(r *outRig) {
			r.deliver(new, event("e", lossy))
			r.deliver(old, event("f", bulk))
		}, "f"},
		{"what was pushed for a slot that was given up is dropped", func(r *outRig) {
			r.out.Reserve()
			r.reply(interactive, "left", seat(0, 3), true)
			r.out.Part(0)
			r.run()
			r.deliver(old, event("e", lossy))
		}, "left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newOpenRig(t, 64, 1<<16)
			r.opened(old)
			c.do(r)
			want(t, "written", strings.Join(r.written(), " "), c.want)
			r.ended()
		})
	}
}

func TestOutboundEchoIsPassedOverAndCountsAsPosted(t *testing.T) {
	r := newOpenRig(t, 2, 1<<16)
	s := Seat{Slot: 0, Gen: 2, NoEcho: true}
	r.out.Withhold("me", &r.slots[3], 1)
	r.opened(s)
	posted, full := r.deliver(s, event("a", bulk, buffered), event("mine", bulk, buffered, by("me")), event("b", bulk, buffered, by("other")),
		event("mine too", lossy, by("me")))
	want(t, "posted", fmt.Sprint(posted, full), "3 false")
	posted, full = r.deliver(s, event("c", bulk, buffered), event("mine", bulk, buffered, by("me")))
	want(t, "full", fmt.Sprint(posted, full), "0 true")
	want(t, "written", r.written(), []string{"a", "b"})
	r.ended()
}

func TestOutboundOverflowByPolicy(t *testing.T) {
	const two = 2 // frames fit
	for _, c := range []struct {
		name  string
		push  []Delivery
		want  string
		drops int
	}{
		{"reject keeps what waits", []Delivery{event("a", bulk), event("b", bulk), event("c", bulk)}, "a b", 1},
		{"drop_oldest keeps the newest",
			[]Delivery{event("a", bulk, with(backpressure.DropOldest)), event("b", bulk, with(backpressure.DropOldest)), event("c", bulk, with(backpressure.DropOldest))}, "b c", 1},
		{"coalesce_latest without one of its key is refused when full",
			[]Delivery{event("a", bulk), event("b", bulk), event("c", lossy, with(backpressure.CoalesceLatest), keyed(7))}, "a b", 1},
		{"drop_oldest takes nothing from what was promised otherwise",
			[]Delivery{event("a", bulk, buffered), event("b", bulk), event("c", bulk, with(backpressure.DropOldest))}, "a b", 1},
		{"drop_oldest of another lane finds nothing to drop", []Delivery{event("a", bulk), event("b", bulk), event("c", lossy, with(backpressure.DropOldest))}, "a b", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newOpenRig(t, two, 1<<16)
			r.opened(seat(0, 2))
			r.deliver(seat(0, 2), c.push...)
			r.balanced()
			want(t, "written", strings.Join(r.written(), " "), c.want)
			want(t, "dropped", len(r.lost()), c.drops)
			r.ended()
		})
	}
}

// drop_oldest may share its lane with replies and with buffered events of any
// room that the session is in.
func TestOutboundDropOldestLeavesRepliesAndBufferedEventsAlone(t *testing.T) {
	r := newOpenRig(t, 3, 1<<16)
	a, b := seat(0, 2), seat(1, 2)
	r.opened(a)
	r.enter(b)
	r.deliver(a, event("buffered", bulk, buffered))
	r.out.Reserve()
	r.reply(bulk, "joined b", b, true)
	for i := range 5 {
		r.deliver(b, event(fmt.Sprint("news", i), bulk, with(backpressure.DropOldest)))
	}
	got := r.written()
	if len(got) < 2 || got[0] != "buffered" || got[1] != "joined b" {
		t.Fatalf("written: %q", got)
	}
	want(t, "owed", r.out.owed.Load(), 0)
	r.ended()
}

func TestOutboundCoalescingStaysWithinOneMembership(t *testing.T) {
	r := newOpenRig(t, 16, 1<<16)
	a, b := seat(0, 2), seat(1, 2)
	r.opened(a)
	r.opened(b)
	r.deliver(a, event("first", lossy))
	r.deliver(a, event("in a", lossy, with(backpressure.CoalesceLatest), keyed(7)))
	r.deliver(b, event("in b", lossy, with(backpressure.CoalesceLatest), keyed(7)))
	r.deliver(a, event("in a again", lossy, with(backpressure.CoalesceLatest), keyed(7)))
	want(t, "written", r.written(), []string{"first", "in a again", "in b"})
	r.ended()
}

// In its place it would stand before the mark that it waits for.
func TestOutboundAnEventOfAnEarlierMembershipIsNotReplaced(t *testing.T) {
	r := newOpenRig(t, 16, 1<<16)
	old, new := seat(0, 2), seat(0, 4)
	r.opened(old)
	r.deliver(old, event("a", lossy, with(backpressure.CoalesceLatest), keyed(7)))
	r.enter(new)
	r.out.Reserve()
	r.reply(lossy, "joined", new, true)
	r.deliver(new, event("b", lossy, with(backpressure.CoalesceLatest), keyed(7)))
	want(t, "written", r.written(), []string{"a", "joined", "b"})
	r.ended()
}

func TestOutboundExpiredEventsAreDroppedUnsent(t *testing.T) {
	r := newOpenRig(t, 16, 1<<16)
	r.opened(seat(0, 2))
	r.deliver(seat(0, 2), event("a", lossy, until(50)), event("b", lossy, until(200)), event("c", lossy))
	r.now = 100
	want(t, "written", r.written(), []string{"b", "c"})
	want(t, "dropped", r.lost(), []string{"lossy expired"})
	r.ended()
}

func TestOutboundBoundInBytes(t *testing.T) {
	size := len(event("aa", bulk).Event.Bytes(lines))
	r := newOpenRig(t, 100, 3*size)
	r.opened(seat(0, 2))
	posted, full := r.deliver(seat(0, 2), event("aa", bulk, buffered), event("bb", bulk, buffered), event("cc", bulk, buffered), event("dd", bulk, buffered))
	want(t, "posted", fmt.Sprint(posted, full), "3 true")
	r.balanced()
	r.ended()
}

// One frame that is larger than the whole bound still goes to a member who
// drains: an empty queue takes it.
func TestOutboundAnEmptyQueueTakesOneWhateverItsSize(t *testing.T) {
	r := newOpenRig(t, 100, 10)
	r.account.Force(1) // and whatever the ledger says
	r.opened(seat(0, 2))
	for _, name := range []string{"a", "b"} {
		posted, full := r.deliver(seat(0, 2), event(name, bulk, buffered), event("no", bulk, buffered))
		want(t, "posted", fmt.Sprint(posted, full), "1 true")
		want(t, "written", r.written(), []string{name})
	}
}

func TestOutboundBehind(t *testing.T) {
	r := newOpenRig(t, 4, 1<<16)
	s := seat(2, 2)
	r.opened(s)
	asked := func() int { n := len(r.wants.got); r.wants.got = nil; return n }
	feed := func(head bool, events ...Delivery) (posted int, live bool) {
		r.push(func(t *scheduler.Turn) { posted, live = r.out.Feed(t, r.room.Flow(), s, events, head) })
		return
	}
	ev := func(name string) Delivery { return event(name, interactive, buffered) }

	r.wire.limit = 0
	r.deliver(s, ev("a"))
	r.run() // parks
	posted, full := r.deliver(s, ev("b"), ev("c"), ev("d"), ev("e"), ev("f"), event("news", lossy))
	want(t, "what did not fit", fmt.Sprint(posted, full), "4 true")
	posted, full = r.deliver(s, event("lossy", lossy))
	want(t, "one who is behind still is offered the rest", fmt.Sprint(posted, full), "0 false")
	r.run()
	want(t, "asked while the socket is full", asked(), 0)

	r.wire.open(1 << 20)
	want(t, "written", r.written(), []string{"a", "b", "c", "d", "e"})
	want(t, "asked once there is place", asked(), 1)
	r.run()
	want(t, "asked again before it was fed", asked(), 0)

	posted, live := feed(false, ev("f"), ev("g"))
	want(t, "fed", fmt.Sprint(posted, live), "2 false")
	want(t, "written", r.written(), []string{"f", "g"})
	want(t, "asked for more", asked(), 1)

	posted, live = feed(true, ev("h"), ev("i"), ev("j"), ev("k"), ev("l"))
	want(t, "fed more than fits", fmt.Sprint(posted, live), "4 false")
	want(t, "written", r.written(), []string{"h", "i", "j", "k"})
	want(t, "asked", asked(), 1)
	posted, live = feed(true, ev("l"))
	want(t, "fed to the head", fmt.Sprint(posted, live), "1 true")
	want(t, "written", r.written(), []string{"l"})
	want(t, "live, so nothing is wanted", asked(), 0)
	want(t, "behind", r.out.behind, 0)

	r.out.Behind(s)
	r.out.Behind(s)
	posted, live = feed(true)
	want(t, "fed nothing, at the head", fmt.Sprint(posted, live, r.out.behind), "0 true 0")

	r.out.Behind(s)
	r.out.Behind(seat(2, 1))
	want(t, "an earlier membership does not count", r.out.behind, 1)
	r.out.Part(2)
	want(t, "parted", r.out.behind, 0)
	r.out.Behind(s)
	want(t, "a slot that was given up is never behind", r.out.behind, 0)
	r.ended()
}

func TestOutboundAsksUnderHalfOnly(t *testing.T) {
	r := newOpenRig(t, 200, 1<<16)
	s := seat(0, 2)
	r.opened(s)
	r.wire.limit = 0
	r.deliver(s, event("first", bulk))
	r.run()
	var many []Delivery
	for i := range 201 {
		many = append(many, event(fmt.Sprint(i), bulk, buffered))
	}
	posted, full := r.deliver(s, many...)
	want(t, "filled", fmt.Sprint(posted, full), "200 true")
	r.wire.open(1 << 20)
	for r.out.items > 100 {
		if len(r.wants.got) > 0 {
			t.Fatalf("asked while %d of 200 wait", r.out.items)
		}
		r.pool.Step()
	}
	r.run()
	want(t, "asked", len(r.wants.got), 1)
	r.ended()
}

func TestOutboundReservations(t *testing.T) {
	r := newOpenRig(t, 1, 100)
	r.wire.limit = 0
	r.deliver(seatOpen(r), event("fills", bulk))
	r.run()
	for i := range MaxOwed {
		if !r.out.Reserve() {
			t.Fatalf("request %d was refused", i)
		}
	}
	if r.out.Reserve() {
		t.Fatal("one more than MaxOwed was taken on")
	}
	if r.out.Stuffed() {
		t.Fatal("stuffed though a refusal still has its place")
	}
	for i := range MaxOwed {
		r.reply(backpressure.Lane(i%4), fmt.Sprint("reply", i), seat(3, 2), false)
	}
	r.balanced()
	if r.out.Reserve() {
		t.Fatal("replies that wait have given their places back")
	}
	r.wire.open(1 << 20)
	want(t, "every reply goes out, whatever the bounds", len(r.written()), 1+MaxOwed)
	if !r.out.Reserve() {
		t.Fatal("what went out did not give its place back")
	}
	r.out.owed.Add(-1)
	r.ended()
}

// seatOpen opens slot 3.
func seatOpen(r *outRig) Seat {
	s := seat(3, 2)
	limit := r.wire.limit
	r.wire.limit = 1 << 20
	r.opened(s)
	r.wire.limit = limit
	return s
}

// A client that asks and never reads is stopped, not cut and not forgotten.
func TestOutboundStuffedPausesTheSessionUntilEnoughHasGoneOut(t *testing.T) {
	r := newOpenRig(t, 8, 1<<16)
	r.wire.limit = 0
	for range MaxOwed {
		r.out.Reserve()
	}
	refused := 0
	for ; !r.out.Stuffed(); refused++ {
		r.out.Refuse(named("refused"))
	}
	want(t, "refusals that wait", refused, ControlItems)
	r.run()
	r.post("request")
	r.run()
	want(t, "requests handled meanwhile", len(r.got), 0)
	r.wire.open(1 << 20)
	r.run()
	want(t, "handled afterwards", r.got, []any{"request"})
	want(t, "refusals", len(r.wire.take()), refused)
	for range MaxOwed {
		r.reply(control, "reply", Seat{}, false)
	}
	r.ended()
}

func TestOutboundUnaskedFramesAreBounded(t *testing.T) {
	r := newOpenRig(t, 8, 1<<16)
	r.wire.limit = 0
	r.out.Control(named("first"))
	r.run()
	n := 0
	for r.out.Control(named("pong")) {
		n++
	}
	want(t, "control frames that wait", n, ControlItems/2)
	r.wire.open(1 << 20)
	want(t, "written", len(r.written()), 1+n)
	want(t, "one more", r.out.Control(named("pong")), true)
	r.run()
	r.ended()
}
