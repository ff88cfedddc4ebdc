package mailbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

func at(epoch string, offset uint64) codec.Position {
	return codec.Position{Epoch: epoch, Offset: offset}
}

// What an acknowledgement covers: pure.
func TestAckWindowUpTo(t *testing.T) {
	for _, c := range []struct {
		rule string
		sent []codec.Position // those that are to be acknowledged
		last codec.Position   // zero: the last of them
		ack  codec.Position
		want int
	}{
		{"everything up to it", []codec.Position{at("a", 3), at("a", 4), at("a", 7)}, at("", 0), at("a", 4), 2},
		{"a position between two", []codec.Position{at("a", 3), at("a", 4), at("a", 7)}, at("", 0), at("a", 6), 2},
		{"the last", []codec.Position{at("a", 3), at("a", 4)}, at("", 0), at("a", 4), 2},
		{"an event behind them that needs none", []codec.Position{at("a", 3), at("a", 4)}, at("a", 9), at("a", 9), 2},
		{"older than the last", []codec.Position{at("a", 3)}, at("", 0), at("a", 2), 0},
		{"beyond what was sent", []codec.Position{at("a", 3)}, at("a", 5), at("a", 6), 0},
		{"of another epoch", []codec.Position{at("a", 3)}, at("", 0), at("b", 3), 0},
		{"of the epoch before, which lost nothing", []codec.Position{at("a", 3), at("a", 4), at("b", 5)}, at("", 0), at("a", 4), 2},
		{"of the epoch after, it covers the one before", []codec.Position{at("a", 3), at("b", 4), at("b", 5)}, at("", 0), at("b", 4), 2},
		{"of the epoch after, by an event that needs none", []codec.Position{at("a", 3)}, at("b", 4), at("b", 4), 1},
		{"nothing was sent", nil, at("", 0), at("a", 1), 0},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var w ackWindow
			for _, p := range c.sent {
				w.open.Push(p)
				w.last = p
			}
			if !c.last.IsZero() {
				w.last = c.last
			}
			if got := w.upTo(c.ack); got != c.want {
				t.Errorf("%d acknowledged, want %d", got, c.want)
			}
		})
	}
}

// order is a buffered event that must be acknowledged, note one of its kind that
// need not be.
func order(offset uint64) Delivery {
	d := note(offset)
	d.Policy = backpressure.RequireAck
	return d
}

func note(offset uint64) Delivery {
	d := event(fmt.Sprint("e", offset), interactive, buffered)
	d.Event.Position = at("a", offset)
	d.Acks = true
	return d
}

func bundleOf(events ...Delivery) Run {
	run := Run{Events: events}
	var frames []*codec.Frame
	for i := range events {
		frames = append(frames, &events[i].Event.Frame)
	}
	run.Whole = codec.Bundle(frames)
	return run
}

// The rig's window is of four.
func TestOutboundWindowOfUnacknowledgedEvents(t *testing.T) {
	r := newOpenRig(t, 100, 1<<16)
	s := seatOpen(r)
	asked := func() int { n := len(r.wants.got); r.wants.got = nil; return n }

	posted, full := r.deliver(s, order(1), note(2), order(3), order(4), order(5), note(6), order(7), note(8))
	want(t, "until the window is full", fmt.Sprint(posted, full), "6 true")
	want(t, "written", fmt.Sprint(r.written()), "[e1 e2 e3 e4 e5 e6]")
	r.balanced()
	want(t, "asked while the window is full", asked(), 0)
	r.out.Acknowledge(s, at("b", 5))
	r.out.Acknowledge(s, at("a", 7))
	r.run()
	want(t, "asked for acknowledgements that cover nothing", asked(), 0)
	r.out.Acknowledge(s, at("a", 2))
	r.run()
	want(t, "asked when there is place", asked(), 1)
	r.out.Acknowledge(s, at("a", 3))
	r.run()
	want(t, "asked again before it was fed", asked(), 0)

	var live bool
	r.push(func(tn *scheduler.Turn) {
		posted, live = r.out.Feed(tn, r.room.Flow(), s, []Delivery{order(7), note(8), order(9), order(10)}, true)
	})
	want(t, "fed", fmt.Sprint(posted, live), "3 false")
	want(t, "written", fmt.Sprint(r.written()), "[e7 e8 e9]")
	want(t, "asked while the window is full again", asked(), 0)
	r.out.Acknowledge(s, at("a", 9))
	r.run()
	want(t, "asked", asked(), 1)
	r.push(func(tn *scheduler.Turn) {
		posted, live = r.out.Feed(tn, r.room.Flow(), s, []Delivery{order(10)}, true)
	})
	want(t, "at the head", fmt.Sprint(posted, live), "1 true")
	want(t, "left behind", r.out.cfg.Counts.Unacked.Load(), 1)
	want(t, "fed in all", r.out.cfg.Counts.Fed.Load(), 4)
	r.ended()
}

func TestOutboundABundleKeepsTheWindow(t *testing.T) {
	r := newOpenRig(t, 100, 1<<16)
	s := seatOpen(r)
	posted, full := r.run1(s, bundleOf(order(1), note(2), order(3)), true)
	want(t, "as one", fmt.Sprint(posted, full, r.out.sole.more), "3 false 2")
	posted, full = r.run1(s, bundleOf(order(4), note(5), order(6), order(7), note(8)), true)
	want(t, "as far as the window reaches", fmt.Sprint(posted, full), "3 true")
	want(t, "written", fmt.Sprint(r.written()), "[e1 e2 e3 e4 e5 e6]")
	r.ended()

	r = newOpenRig(t, 100, 1<<16)
	s = seatOpen(r)
	posted, full = r.run1(s, bundleOf(order(1), order(2), order(3), order(4), order(5)), true)
	want(t, "the first of all likewise", fmt.Sprint(posted, full), "4 true")
	r.ended()
}

// A window ends with its membership, and with a reset: what a client was sent
// before is nothing that it could acknowledge.
func TestOutboundWindowsEnd(t *testing.T) {
	r := newOpenRig(t, 100, 1<<16)
	s := seatOpen(r)
	fill := func(s Seat, from uint64) {
		t.Helper()
		posted, full := r.deliver(s, order(from), order(from+1), order(from+2), order(from+3), order(from+4))
		want(t, "a whole window", fmt.Sprint(posted, full), "4 true")
		r.run()
		r.balanced()
	}
	fill(s, 1)
	r.push(func(tn *scheduler.Turn) {
		r.out.Mark(tn, interactive, named("reset"), s)
		r.out.Feed(tn, r.room.Flow(), s, nil, true)
	})
	fill(s, 11)

	next := Seat{Slot: s.Slot, Gen: s.Gen + 2}
	r.enter(next)
	r.out.Acknowledge(s, at("a", 14))
	posted, _ := r.deliver(s, order(15), order(16), order(17), order(18), order(19))
	want(t, "for a membership that was replaced, which drops it", posted, 5)
	fill(next, 21)
	r.out.Part(next.Slot)
	r.balanced()
	r.out.Acknowledge(next, at("a", 24))
	r.ended()
}

// A membership without echo is not sent its session's own events, and need not
// acknowledge them.
func TestOutboundWindowWithoutEcho(t *testing.T) {
	r := newOpenRig(t, 100, 1<<16)
	s := seatOpen(r)
	s.NoEcho = true
	r.out.Withhold("me", &r.slots[3], 1)
	own := func(offset uint64) Delivery {
		d := order(offset)
		d.Event.Session = "me"
		return d
	}
	posted, full := r.deliver(s, order(1), own(2), own(3), own(4), own(5), order(6), own(7))
	want(t, "posted", fmt.Sprint(posted, full), "7 false")
	want(t, "waits for", r.out.slots.at(s.Slot).acks.open.Len(), 2)
	r.out.Acknowledge(s, at("a", 7)) // which a position frame has told
	want(t, "waits for", r.out.slots.at(s.Slot).acks.open.Len(), 0)
	r.ended()
}

// What a queue that is full takes from whom.
func TestOutboundLadder(t *testing.T) {
	oldest := with(backpressure.DropOldest)
	latest := func(name string) Delivery { return event(name, lossy, with(backpressure.CoalesceLatest), keyed(7)) }
	for _, c := range []struct {
		rule        string
		first, then []Delivery
		want, lost  string
	}{
		{"what is kept pushes the lossy lane out first", []Delivery{event("b", bulk), event("l", lossy), event("m", lossy, oldest)},
			[]Delivery{event("e", interactive, buffered)}, "[e b m]", "[lossy shed]"},
		{"then the bulk lane", []Delivery{event("b", bulk), latest("l"), event("c", bulk, oldest)},
			[]Delivery{event("e", interactive, buffered), event("f", interactive, buffered)}, "[e f c]", "[bulk shed lossy shed]"},
		{"as does what somebody waits for", []Delivery{event("b", bulk), event("l", lossy), event("m", lossy)},
			[]Delivery{event("e", interactive), event("f", interactive), event("g", interactive), event("h", interactive)},
			"[e f g]", "[interactive reject bulk shed lossy shed lossy shed]"},
		{"rather than an older one of its lane", []Delivery{event("d", interactive, oldest), event("l", lossy), event("e", interactive, oldest)},
			[]Delivery{event("f", interactive, oldest), event("g", interactive, oldest)}, "[e f g]", "[interactive drop_oldest lossy shed]"},
		{"bulk and lossy events take nothing from others", []Delivery{event("l", lossy), event("m", lossy), event("b", bulk)},
			[]Delivery{event("c", bulk), event("n", lossy)}, "[b l m]", "[bulk reject lossy reject]"},
		{"what is kept stays in the bulk lane", []Delivery{event("b", bulk, buffered), event("c", bulk), event("l", lossy)},
			[]Delivery{event("e", interactive), event("f", interactive)}, "[e b c]", "[interactive reject lossy shed]"},
		{"the latest of its key gives way like others", []Delivery{latest("l"), latest("m"), event("b", bulk), event("c", bulk)},
			[]Delivery{event("e", interactive)}, "[e b c]", "[lossy coalesced lossy shed]"},
		{"the latest still takes the place of an older one", []Delivery{latest("l"), event("b", bulk), event("c", bulk)},
			[]Delivery{latest("m")}, "[b c m]", "[lossy coalesced]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r := newOpenRig(t, 3, 1<<16)
			s := seatOpen(r)
			r.deliver(s, c.first...)
			r.deliver(s, c.then...)
			r.balanced()
			want(t, "lost", fmt.Sprint(r.lost()), c.lost)
			want(t, "written", fmt.Sprint(r.written()), c.want)
			r.ended()
		})
	}
}

// A panic while a frame is encoded is nobody's but its pusher's: the queue goes on,
// and ends.
func TestOutboundAnEncodingThatPanicsHoldsNothingUp(t *testing.T) {
	faulty := &codec.Framing{Name: "faulty", Protocol: lines.Protocol, Wrap: func(dst, doc []byte) []byte {
		if strings.Contains(string(doc), "boom") {
			panic("boom")
		}
		return lines.Wrap(dst, doc)
	}}
	for what, push := range map[string]func(r *outRig, s Seat){
		"reply":   func(r *outRig, s Seat) { r.out.Reply(nil, control, named("boom"), Seat{}, false) },
		"mark":    func(r *outRig, s Seat) { r.out.Mark(nil, interactive, named("boom"), s) },
		"control": func(r *outRig, s Seat) { r.out.Control(named("boom")) },
		"refuse":  func(r *outRig, s Seat) { r.out.Refuse(named("boom")) },
		"lead":    func(r *outRig, s Seat) { r.out.Lead(named("boom")) },
		"first":   func(r *outRig, s Seat) { r.out.Open(named("boom"), nil) },
		"offer":   func(r *outRig, s Seat) { r.out.Offer(nil, nil, interactive, named("boom"), s) },
		"event":   func(r *outRig, s Seat) { r.deliver(s, event("boom", interactive)) },
		"run":     func(r *outRig, s Seat) { r.run1(s, bundleOf(event("boom", interactive, buffered)), true) },
		"feed": func(r *outRig, s Seat) {
			r.out.Feed(new(scheduler.Turn), nil, s, []Delivery{event("boom", interactive, buffered)}, true)
		},
		"position": func(r *outRig, s Seat) {
			s.NoEcho = true
			r.out.Withhold("me", &r.slots[s.Slot], 1)
			r.deliver(s, event("mine", interactive, buffered, by("me")))
			r.out.Position(nil, interactive, "boom", s)
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newOpenRig(t, 8, 1<<16)
			r.out.framing = faulty
			s := seatOpen(r)
			func() {
				defer func() {
					if recover() != "boom" {
						t.Fatal("no panic")
					}
				}()
				push(r, s)
			}()
			r.out.mu.Lock() // or it would hang here
			r.out.state &^= scheduled
			r.out.mu.Unlock()
			r.deliver(s, event("after", interactive))
			want(t, "afterwards", fmt.Sprint(r.written()), "[after]")
			r.out.End()
			want(t, "left", r.out.items, 0)
		})
	}
}
