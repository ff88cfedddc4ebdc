package mailbox

import (
	"fmt"
	"testing"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// What leads goes out before all that waits, whatever lane that is in and however
// many the drain's weights would have let go first.
func TestOutboundWhatLeadsIsOvertakenByNothing(t *testing.T) {
	r := newOpenRig(t, 1000, 1<<20)
	s := seatOpen(r)
	for range 20 {
		r.push(func(*scheduler.Turn) { r.out.Control(named("control")) })
	}
	r.deliver(s, event("e", bulk))
	r.push(func(*scheduler.Turn) {
		for _, name := range []string{"first", "second"} {
			r.out.Reserve()
			r.out.Lead(named(name))
		}
	})
	r.push(func(t *scheduler.Turn) { r.out.Mark(t, bulk, named("left"), seat(0, s.Gen+1)) })
	got := r.written()
	want(t, "before all else", fmt.Sprint(got[:2]), "[first second]")
	want(t, "all of it", len(got), 24)
	r.ended()
}

func TestOutboundWhatLeadsComesBehindTheFirstFrame(t *testing.T) {
	r := newOutRig(t, 1000, 1<<20)
	r.out.Reserve()
	r.out.Lead(named("reply"))
	want(t, "before the first frame", fmt.Sprint(r.written()), "[]")
	r.out.Open(named("welcome"), nil)
	want(t, "with it", fmt.Sprint(r.written()), "[welcome reply]")
	want(t, "owed", r.out.owed.Load(), int32(0))
	r.ended()
}

// Its reservation is given back when it goes out, and at the end.
func TestOutboundWhatLeadsGivesItsPlaceBack(t *testing.T) {
	r := newOpenRig(t, 1000, 1<<20)
	r.wire.limit = 0
	r.out.Control(named("parks"))
	r.run()
	for i := range MaxOwed {
		if !r.out.Reserve() {
			t.Fatalf("no place for request %d", i)
		}
		r.out.Lead(named("reply"))
	}
	if r.out.Reserve() {
		t.Error("a place too many")
	}
	r.wire.open(1 << 20)
	want(t, "written", len(r.written()), MaxOwed+1)
	want(t, "owed", r.out.owed.Load(), int32(0))
	r.wire.limit = 0
	r.out.Control(named("parks"))
	r.run()
	r.out.Reserve()
	r.out.Lead(named("reply"))
	r.ended()
	r.out.Reserve()
	r.out.Lead(named("reply"))
	want(t, "owed after the end", r.out.owed.Load(), int32(0))
}

// A control turn brings control frames only, and none of them before what leads.
func TestOutboundControlWaitsForWhatLeads(t *testing.T) {
	r := newOpenRig(t, 1000, 1<<20)
	r.out.Reserve()
	r.push(func(*scheduler.Turn) { r.out.Lead(named("leads")); r.out.Control(named("control")) })
	r.out.state |= scheduled
	more := r.out.Drain(&scheduler.Turn{Control: true})
	want(t, "in a control turn", fmt.Sprint(r.wire.take(), more), "[] true")
	r.out.state &^= scheduled
	want(t, "after it", fmt.Sprint(r.written()), "[leads control]")
	r.ended()
}

// What leads shares its memory with what else is seldom needed, which stays.
func TestOutboundWhatLeadsTakesNothingElseWithIt(t *testing.T) {
	r := newOpenRig(t, 1000, 1<<20)
	want(t, "an open session has nothing of it", r.out.seldom == nil, true)
	s := Seat{Slot: 0, Gen: 2, NoEcho: true}
	r.out.Withhold("me", &r.slots[3], 1)
	r.opened(s)
	r.deliver(s, event("mine", bulk, buffered, by("me")))
	lead := func(name string) {
		r.out.Reserve()
		r.push(func(*scheduler.Turn) { r.out.Lead(named(name)) })
	}
	lead("reply")
	want(t, "written", fmt.Sprint(r.written()), "[reply]")
	r.out.Position(nil, bulk, "position", s)
	want(t, "where it stands", fmt.Sprint(r.written()), "[position]")
	r.ended()

	r = newOpenRig(t, 1000, 1<<20)
	lead("last")
	r.out.Finish(codec.CauseNormal, "")
	want(t, "written", fmt.Sprint(r.written()), "[last]")
	want(t, "closed", fmt.Sprint(r.wire.closed), fmt.Sprint([]string{codec.CauseNormal.String()}))
}
