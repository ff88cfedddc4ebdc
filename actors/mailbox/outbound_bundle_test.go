package mailbox

import (
	"fmt"
	"testing"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// whole is a run of n buffered events that may go as one.
func whole(from, n int) Run {
	var run Run
	var frames []*codec.Frame
	for i := from; i < from+n; i++ {
		run.Events = append(run.Events, event(fmt.Sprint("e", i), interactive, buffered))
		frames = append(frames, &run.Events[len(run.Events)-1].Event.Frame)
	}
	run.Whole = codec.Bundle(frames)
	return run
}

func (r *outRig) run1(s Seat, run Run, live bool) (posted int, full bool) {
	r.push(func(t *scheduler.Turn) { posted, full = r.out.Deliver(t, r.room.Flow(), s, run, live) })
	return posted, full
}

func TestOutboundARunGoesAsOne(t *testing.T) {
	r := newOpenRig(t, 8, 1<<20)
	s := seatOpen(r)
	r.written()
	posted, full := r.run1(s, whole(1, 3), true)
	want(t, "posted", posted, 3)
	want(t, "full", full, false)
	want(t, "counted as its events", r.out.items, 3)
	want(t, "written", fmt.Sprint(r.written()), "[e1 e2 e3]")
	want(t, "left", r.out.items, 0)
}

func TestOutboundARunThatDoesNotFitGoesAsFarAsItDoes(t *testing.T) {
	r := newOpenRig(t, 4, 1<<20)
	s := seatOpen(r)
	r.written()
	r.run1(s, whole(1, 3), true)
	posted, full := r.run1(s, whole(4, 3), true)
	want(t, "posted", posted, 1)
	want(t, "full", full, true)
	want(t, "written", fmt.Sprint(r.written()), "[e1 e2 e3 e4]")
}

func TestOutboundARunIsNotForThoseWhoDoNotGetAllOfIt(t *testing.T) {
	r := newOpenRig(t, 8, 1<<20)
	s := seatOpen(r)
	r.written()
	run := whole(1, 3)
	run.Events[1].Event.Session = "me"
	quiet := s
	quiet.NoEcho = true
	r.out.Withhold("me", &r.slots[3], 1)
	posted, _ := r.run1(quiet, run, true)
	want(t, "posted without echo", posted, 3)
	want(t, "written without echo", fmt.Sprint(r.written()), "[e1 e3]")
	posted, _ = r.run1(s, whole(4, 3), false)
	want(t, "posted to one who is behind", posted, 0)
	want(t, "written to one who is behind", len(r.written()), 0)
}

func TestOutboundARunOfAnEndedMembershipIsDropped(t *testing.T) {
	r := newOpenRig(t, 8, 1<<20)
	s := seatOpen(r)
	r.written()
	over := Seat{Slot: s.Slot, Gen: s.Gen + 1}
	r.reply(control, "left", over, true)
	r.run1(s, whole(1, 3), true)
	want(t, "written", fmt.Sprint(r.written()), "[left]")
	want(t, "left in the queue", r.out.items, 0)
}

func TestOutboundAFullQueueStillCoalesces(t *testing.T) {
	r := newOpenRig(t, 2, 1<<20)
	s := seatOpen(r)
	r.written()
	latest := func(name string) Delivery { return event(name, lossy, with(backpressure.CoalesceLatest), keyed(7)) }
	r.deliver(s, latest("old"), event("other", lossy))
	r.deliver(s, latest("new"))
	want(t, "written", fmt.Sprint(r.written()), "[new other]")
	r.deliver(s, latest("alone"))
	r.deliver(s, latest("newer"))
	want(t, "written of one that waited alone", fmt.Sprint(r.written()), "[newer]")
}
