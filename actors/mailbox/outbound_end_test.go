package mailbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

func TestOutboundAControlTurnWritesControlFramesOnly(t *testing.T) {
	r := newOpenRig(t, 8, 1<<16)
	s := seatOpen(r)
	r.deliver(s, event("e", interactive))
	r.out.Control(named("pong"))
	turn := scheduler.Turn{Control: true}
	r.out.Drain(&turn)
	want(t, "in a control turn", r.wire.take(), []string{"pong"})
	want(t, "later", r.written(), []string{"e"})
	r.ended()
}

// The ledger holds 32 bytes an entry in chunks, and the frames' bytes only while
// the socket is full.
func TestOutboundLedger(t *testing.T) {
	r := newOpenRig(t, 100, 1<<16)
	s := seatOpen(r)
	idle := r.account.Used()
	want(t, "booked while idle", idle, base*backpressure.EntryBytes)
	e := event("e", bulk)
	size := int64(len(e.Event.Bytes(lines)))
	for range 20 {
		r.deliver(s, e)
	}
	want(t, "while it drains", r.account.Used(), (base+chunk)*backpressure.EntryBytes)
	r.wire.limit = 0
	r.pool.Step()
	r.run()
	want(t, "parked", r.account.Used()-int64(r.out.charged)*backpressure.EntryBytes, 20*size)
	r.deliver(s, e, e)
	r.balanced()
	want(t, "parked with two more", r.out.held, 22*size)
	r.deliver(s, event("c", lossy, with(backpressure.CoalesceLatest), keyed(1)), event("c", lossy, with(backpressure.CoalesceLatest), keyed(1)))
	r.balanced()
	want(t, "coalesced", r.out.held, 23*size)
	r.wire.open(1 << 20)
	r.run()
	want(t, "drained", r.account.Used(), idle)
	r.ended()
}

// Where the ledger is used up a buffered event leaves its member behind, and
// others go by their policy; nothing is booked for them.
func TestOutboundTheLedgerRefuses(t *testing.T) {
	r := newOutRig(t, 1000, 1<<20)
	r.account.SetLimit(40 * backpressure.EntryBytes)
	r.out.Open(named("welcome"), nil)
	s := seatOpen(r)
	var many []Delivery
	for range 100 {
		many = append(many, event("e", bulk, buffered))
	}
	posted, full := r.deliver(s, many...)
	want(t, "posted", fmt.Sprint(posted, full), fmt.Sprint(base+2*chunk, " true"))
	if r.account.Used() > 40*backpressure.EntryBytes {
		t.Fatalf("%d booked past the limit", r.account.Used())
	}
	r.ended()
}

func TestOutboundWrites(t *testing.T) {
	r := newOpenRig(t, 1000, 1<<22)
	s := seatOpen(r)
	r.wire.writes = nil
	for range scheduler.WriteFrames + 1 {
		r.deliver(s, event("e", bulk))
	}
	r.run()
	want(t, "writes of many frames", len(r.wire.writes), 2)

	r.wire.writes = nil
	large := event(strings.Repeat("x", scheduler.WriteBytes), bulk)
	half := event(strings.Repeat("y", scheduler.WriteBytes/2), bulk)
	r.deliver(s, half, half, large, half)
	r.run()
	if len(r.wire.writes) != 4 {
		t.Errorf("writes: %v", r.wire.writes)
	}
	for _, n := range r.wire.writes[:2] {
		if n > scheduler.WriteBytes {
			t.Errorf("a gathered write of %d bytes", n)
		}
	}
	r.ended()
}

func TestOutboundFinish(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(r *outRig, s Seat)
		want string
		code []string
	}{
		{"closes behind what was queued", func(r *outRig, s Seat) {
			r.deliver(s, event("a", interactive), event("b", lossy))
			r.out.Finish(codec.CauseRestart, "")
			r.deliver(s, event("late", interactive))
		}, "a b", []string{codec.CauseRestart.String()}},
		{"closes at once when nothing waits, and once", func(r *outRig, s Seat) {
			r.out.Finish(codec.CauseRestart, "")
			r.out.Finish(codec.CauseOverload, "")
		}, "", []string{codec.CauseRestart.String()}},
		{"answers what is still owed", func(r *outRig, s Seat) {
			r.wire.limit = 0
			r.deliver(s, event("a", interactive))
			r.run()
			r.out.Reserve()
			r.out.Finish(codec.CauseRestart, "")
			r.reply(control, "reply", Seat{}, false)
			r.run()
			r.wire.open(1 << 20)
		}, "a reply", []string{codec.CauseRestart.String()}},
		{"lets out what waits for a welcome that never comes", func(r *outRig, s Seat) {
			r.out.state |= corked
			r.out.Control(named("pong"))
			r.out.Finish(codec.CauseUnauthenticated, "")
		}, "pong", []string{codec.CauseUnauthenticated.String()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newOpenRig(t, 100, 1<<16)
			s := seatOpen(r)
			c.do(r, s)
			want(t, "written", strings.Join(r.written(), " "), c.want)
			want(t, "closed", r.wire.closed, c.code)
			r.ended()
		})
	}
}

// A client that reads while the Write that filled its socket is still returning.
func TestOutboundReadyBeforeWriteHasReturned(t *testing.T) {
	r := newOpenRig(t, 100, 1<<16)
	s := seatOpen(r)
	r.wire.early = []error{nil, nil}
	for _, name := range []string{"a", "b", "c"} {
		r.deliver(s, event(name, bulk))
		want(t, "written", r.written(), []string{name})
		r.balanced()
	}
	r.wire.limit = 0
	r.deliver(s, event("d", bulk))
	r.run()
	if r.out.held == 0 {
		t.Error("a socket that is full, after one that was not any more, is not parked")
	}
	r.wire.open(1 << 20)
	want(t, "written", r.written(), []string{"d"})
	r.wire.early = []error{errDead}
	r.deliver(s, event("e", bulk), event("f", bulk))
	r.run()
	want(t, "the ledger, once it died in a Write", r.account.Used(), 0)
	r.ended()
}

func TestOutboundADeadConnectionGivesEverythingBack(t *testing.T) {
	for _, parked := range []bool{false, true} {
		r := newOpenRig(t, 100, 1<<16)
		s := seatOpen(r)
		if parked {
			r.wire.limit = 0
			r.deliver(s, event("a", bulk))
			r.run()
			r.deliver(s, event("b", bulk))
			r.out.Reserve()
			r.reply(control, "reply", Seat{}, false)
			r.wire.ready(errDead)
		} else {
			r.wire.dead = true
			r.deliver(s, event("a", bulk), event("b", bulk))
			r.run()
		}
		want(t, "ledger", r.account.Used(), 0)
		r.wire.take()
		r.deliver(s, event("c", bulk))
		want(t, "after it", fmt.Sprint(r.written(), r.account.Used()), "[] 0")
		r.ended()
	}
}

// BenchmarkReserve is what a request costs for the certainty that its reply has a
// place.
func BenchmarkReserve(b *testing.B) {
	var o Outbound
	b.ReportAllocs()
	for b.Loop() {
		if o.Reserve() {
			o.owed.Add(-1)
		}
	}
}
