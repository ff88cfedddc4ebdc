package mailbox

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

const (
	control     = backpressure.Control
	interactive = backpressure.Interactive
	bulk        = backpressure.Bulk
	lossy       = backpressure.Lossy
)

func TestFullLanesByPolicy(t *testing.T) {
	tests := []struct {
		rule    string
		items   []Item
		last    backpressure.Outcome
		got     []any
		removed []removal
	}{
		{"reject keeps what waits", []Item{{Msg: 1}, {Msg: 2}, {Msg: 3}},
			backpressure.Backpressured, []any{1, 2}, nil},
		{"drop_oldest tells the owner of the oldest", []Item{{Msg: 1}, {Msg: 2}, {Msg: 3, Policy: backpressure.DropOldest}},
			backpressure.Accepted, []any{2, 3}, []removal{{1, backpressure.Backpressured}}},
		{"coalesce_latest replaces in place", []Item{{Msg: 1, Key: 7, Policy: backpressure.CoalesceLatest}, {Msg: 2}, {Msg: 3, Key: 7, Policy: backpressure.CoalesceLatest}},
			backpressure.Coalesced, []any{3, 2}, []removal{{1, backpressure.Coalesced}}},
		{"expired ones do not run", []Item{{Msg: 1, Expires: 5}, {Msg: 2, Expires: 50}},
			backpressure.Accepted, []any{2}, []removal{{1, backpressure.Expired}}},
		{"one that fits no empty lane is refused for good", []Item{{Msg: 1, Size: 2 << 20, Policy: backpressure.DropOldest}},
			backpressure.TooLarge, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			account := backpressure.NewAccount(nil, 0)
			r := newRig(t, 2, func(c *options) { c.Account = account })
			r.now = 10
			var o backpressure.Outcome
			for _, it := range tt.items {
				o = r.m.Post(interactive, it)
			}
			want(t, "last outcome", o, tt.last)
			r.run()
			want(t, "delivered", r.got, tt.got)
			want(t, "removed", r.removed, tt.removed)
			want(t, "ledger", account.Used(), 0)
		})
	}
}

func TestTheLedgerRefusesAndIsGivenBack(t *testing.T) {
	account := backpressure.NewAccount(nil, 2*(backpressure.EntryBytes+100))
	r := newRig(t, 10, func(c *options) { c.Account = account })
	it := Item{Msg: "x", Size: 100}
	want(t, "first", r.m.Post(bulk, it), backpressure.Accepted)
	want(t, "second", r.m.Post(lossy, it), backpressure.Accepted)
	want(t, "third, in an empty lane", r.m.Post(interactive, it), backpressure.Backpressured)
	want(t, "charged", account.Used(), 2*132)
	r.m.PostSystemMessage(&actor.Stop{})
	r.run()
	want(t, "after the end", account.Used(), 0)
}

func TestControlHasItsOwnBound(t *testing.T) {
	r := newRig(t, 1)
	for range ControlItems {
		want(t, "control", r.m.Post(control, Item{}), backpressure.Accepted)
	}
	want(t, "beyond", r.m.Post(control, Item{}), backpressure.Backpressured)
}

func TestLanesAreServedByWeight(t *testing.T) {
	r := newRig(t, 1000)
	for range ControlItems {
		for l := range backpressure.Lane(backpressure.Lanes) {
			r.m.Post(l, Item{Msg: l})
		}
	}
	r.pool.Step()
	n := make(map[any]int)
	for _, l := range r.got[:15] {
		n[l]++
	}
	want(t, "of the first 15", n, map[any]int{control: 8, interactive: 4, bulk: 2, lossy: 1})
}

func TestAControlTurnServesControlAndSignalsOnly(t *testing.T) {
	r := newRig(t, 8)
	var s Signal
	s.Init("member")
	r.m.Post(bulk, Item{Msg: "bulk"})
	r.post("interactive")
	r.m.PostUserMessage("single")
	r.m.Post(control, Item{Msg: "ping"})
	r.m.Raise(&s, 1)
	r.turn = func(b *Batch) { b.turn.Control = true }
	if !r.pool.Step() {
		t.Fatal("not ready")
	}
	want(t, "in the control turn", r.got, []any{Raised{"member", 1}, "ping"})
	r.turn = nil
	r.run()
	want(t, "the rest later", len(r.got), 5)
}

// busy is an actor of another tenant that always has work.
type busy struct{ m *Mailbox }

func (a busy) InvokeUserMessage(msg any) {
	b := msg.(*Batch)
	for msg, ok := b.Next(); ok; msg, ok = b.Next() {
		a.m.Post(bulk, Item{Msg: msg})
	}
}
func (busy) InvokeSystemMessage(any)  {}
func (busy) EscalateFailure(any, any) {}

func TestControlWorkThatIsLeftGetsAnotherControlTurn(t *testing.T) {
	r := newRig(t, 8)
	other := busy{New(&Config{Pool: r.pool, Tenant: scheduler.NewTenant(1), Items: 8, Bytes: 1 << 20}, nil)}
	other.m.RegisterHandlers(other, nil)
	other.m.Start()
	other.m.Post(bulk, Item{Msg: "again"})
	r.turn = func(b *Batch) { b.Turn().Spend(1_000_000, 0) } // deep in debt from here on
	r.post("debt")
	for len(r.got) == 0 {
		r.pool.Step()
	}
	const n = 2 * scheduler.BatchMessages
	signals := make([]Signal, n)
	for i := range signals {
		signals[i].Init(i)
		r.m.Raise(&signals[i], 1)
	}
	for range 10 * scheduler.ControlEvery {
		r.pool.Step()
	}
	want(t, "signals handled", len(r.got)-1, n)
}

func TestSignals(t *testing.T) {
	t.Run("are queued once, with the bits of all raises, ahead of full lanes", func(t *testing.T) {
		r := newRig(t, 1)
		r.post("full")
		var a, b Signal
		a.Init("a")
		b.Init("b")
		for _, bits := range []uint32{1, 2, 4, 2} {
			if !r.m.Raise(&a, bits) {
				t.Fatal("refused")
			}
		}
		r.m.Raise(&b, 8)
		r.run()
		want(t, "delivered", r.got, []any{Raised{"a", 7}, Raised{"b", 8}, "full"})
	})
	t.Run("may be raised again while being handled", func(t *testing.T) {
		r := newRig(t, 1)
		var s Signal
		s.Init("s")
		r.handle = func(msg any) {
			if msg == (Raised{"s", 1}) {
				r.m.Raise(&s, 2)
			}
		}
		r.m.Raise(&s, 1)
		r.run()
		want(t, "delivered", r.got, []any{Raised{"s", 1}, Raised{"s", 2}})
	})
	t.Run("starve no lane", func(t *testing.T) {
		r := newRig(t, 1)
		signals := make([]Signal, 2*scheduler.BatchMessages)
		for i := range signals {
			signals[i].Init(i)
			r.m.Raise(&signals[i], 1)
		}
		r.handle = func(msg any) {
			if s, ok := msg.(Raised); ok && len(r.got) < 1000 {
				r.m.Raise(&signals[s.Owner.(int)], 1)
			}
		}
		r.post("patient")
		r.pool.Step()
		want(t, "within the first batch", r.got[signalShare], any("patient"))
		r.run()
	})
	t.Run("are refused by a closed mailbox only", func(t *testing.T) {
		r := newRig(t, 1)
		var s Signal
		r.m.PostSystemMessage(&actor.Stop{})
		want(t, "raise", r.m.Raise(&s, 1), false)
	})
}

func TestPauseHoldsTheLanesAlone(t *testing.T) {
	r := newRig(t, 8)
	var s Signal
	s.Init("signal")
	r.handle = func(msg any) {
		if msg == "pause" {
			r.m.Pause()
		}
	}
	r.post("pause", "held")
	r.m.PostUserMessage("held alone")
	r.run()
	r.m.Raise(&s, 1)
	r.m.PostSystemMessage("system")
	r.post("also held")
	r.run()
	want(t, "paused", r.got, []any{"pause", Raised{"signal", 1}})
	want(t, "system", r.system[1:], []any{"system"})
	r.m.Resume()
	r.run()
	want(t, "resumed, in order", r.got[2:], []any{"held", "held alone", "also held"})
}

func TestCloseIfIdle(t *testing.T) {
	tests := []struct {
		rule   string
		before func(m *Mailbox, s *Signal)
		closes bool
	}{
		{"idle closes", func(*Mailbox, *Signal) {}, true},
		{"not with a message", func(m *Mailbox, s *Signal) { m.Post(lossy, Item{}) }, false},
		{"not with one that came through the PID", func(m *Mailbox, s *Signal) { m.PostUserMessage("x") }, false},
		{"not with a raised signal", func(m *Mailbox, s *Signal) { m.Raise(s, 1) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			var s Signal
			r := newRig(t, 8)
			var closed bool
			r.handle = func(msg any) {
				if msg == "try" {
					tt.before(r.m, &s)
					closed = r.m.CloseIfIdle()
				}
			}
			r.post("try")
			r.run()
			want(t, "closed", closed, tt.closes)
			want(t, "posts", r.m.Post(bulk, Item{}) == backpressure.Closed, tt.closes)
			want(t, "signals", r.m.Raise(&s, 2), !tt.closes)
		})
	}
}

func TestCloseIfIdleSeesTheRestOfItsBatch(t *testing.T) {
	r := newRig(t, 8)
	r.handle = func(any) { r.m.CloseIfIdle() }
	r.post(1, 2, 3)
	r.run()
	want(t, "delivered", r.got, []any{1, 2, 3})
	want(t, "closed with the last", r.m.Post(bulk, Item{}), backpressure.Closed)
}

func TestLentQueues(t *testing.T) {
	pool := &LanePool{}
	r := newRig(t, 8, func(c *options) { c.Lanes = pool })
	r.post(1)
	r.run()
	want(t, "held while idle", r.m.q == nil, true)
	r.m.Pause()
	r.post(2)
	r.run()
	want(t, "held for one message", r.m.q == nil, true)
	r.post(3)
	r.run()
	want(t, "held while more waits", r.m.q == nil, false)
	r.m.Resume()
	r.run()
	want(t, "delivered", r.got, []any{1, 2, 3})
	want(t, "held after it", r.m.q == nil, true)

	// Queues of other bounds are not taken over.
	other := newRig(t, 1, func(c *options) { c.Lanes = pool })
	other.post("full")
	want(t, "bound", other.m.Post(interactive, Item{}), backpressure.Backpressured)
}

type sink func(t *scheduler.Turn) bool

func (s sink) Drain(t *scheduler.Turn) bool { return s(t) }

func TestTheSinkIsDrainedAfterTheBatch(t *testing.T) {
	var r *rig
	left := 3
	r = newRig(t, 8, func(c *options) {
		c.Sink = sink(func(*scheduler.Turn) bool {
			if r == nil || len(r.got) == 0 {
				return false
			}
			r.got = append(r.got, "drain")
			left--
			return left > 0
		})
	})
	r.post(1, 2)
	r.run()
	want(t, "order", r.got, []any{1, 2, "drain", "drain", "drain"})
}

func TestAPanicInTheSinkIsTheActors(t *testing.T) {
	bad := false
	drains := 0
	r := newRig(t, 8, func(c *options) {
		c.Sink = sink(func(*scheduler.Turn) bool {
			drains++
			if bad {
				panic("sink")
			}
			return false
		})
	})
	bad = true
	r.post(1)
	r.run()
	want(t, "failures", len(r.reasons), 1)
	n := drains
	r.post(2)
	r.run()
	want(t, "drained while suspended", drains, n)
	want(t, "delivered while suspended", r.got, []any{1})
}

// Case: tqwewe/kameo#84.
func TestB133_ATinyMailboxFilledBeforeStartStarts(t *testing.T) {
	r := unstarted(t, 1)
	r.onSys = func(any) { // the actor's Started posts to itself
		want(t, "post to itself", r.m.Post(interactive, Item{Msg: "self"}), backpressure.Backpressured)
	}
	took := 0
	for range 100 {
		if r.m.Post(interactive, Item{Msg: "sender"}).Took() {
			took++
		}
	}
	want(t, "taken before the start", took, 1)
	r.start()
	r.run()
	want(t, "started", len(r.system), 1)
	want(t, "delivered", r.got, []any{"sender"})
}

// Case: lightninglabs/wavelength#394.
func TestB134_ATimerFlagsAFullMailboxAndGoesOn(t *testing.T) {
	full, other := newRig(t, 1), newRig(t, 1)
	full.m.Pause() // stuck
	full.post("full")
	var a, b Signal
	a.Init("timer a")
	b.Init("timer b")
	for range 1000 { // due again and again, from a wheel that must not wait
		want(t, "full", full.m.Raise(&a, 1), true)
		want(t, "other", other.m.Raise(&b, 1), true)
	}
	other.run()
	want(t, "B on time", other.got, []any{Raised{"timer b", 1}})
	full.run()
	want(t, "A reported, once", full.got, []any{Raised{"timer a", 1}})
}

func TestPostToReceiveAllocatesNothing(t *testing.T) {
	for _, lent := range []*LanePool{nil, {}} {
		t.Run(fmt.Sprint("lent ", lent != nil), func(t *testing.T) { allocatesNothing(t, lent) })
	}
}

func allocatesNothing(t *testing.T, lent *LanePool) {
	r := newRig(t, 128, func(c *options) { c.Lanes = lent })
	r.turn = func(b *Batch) {
		for _, ok := b.Next(); ok; _, ok = b.Next() {
		}
	}
	var s Signal
	s.Init(r)
	msg := any(&Item{})
	round := func() {
		for range 64 {
			r.m.Post(interactive, Item{Msg: msg, Size: 100})
		}
		r.m.Post(control, Item{Msg: msg})
		r.m.Raise(&s, 1)
		r.run()
		r.batches = r.batches[:0]
	}
	round()
	n := testing.AllocsPerRun(100, round)
	if lent != nil {
		// A sync.Pool forgets at a collection, and at random in race builds.
		want(t, "at most a few allocations", n < 3, true)
		return
	}
	want(t, "allocations", n, 0)
}

// There is one for each session: four cache lines.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(Mailbox{}); size > 256 {
		t.Errorf("a mailbox of %d bytes, at most 256", size)
	}
}
