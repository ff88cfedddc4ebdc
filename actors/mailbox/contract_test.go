package mailbox

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

// The rules that protoactor expects of a mailbox, and those that its own breaks.
// Where its own breaks one, the same scenario runs on it and must show the
// fault: so the scenario is known to be able to fail.

func TestM1_PostsBeforeRegistrationWait(t *testing.T) {
	r := unstarted(t, 4)
	r.post("early")
	r.run() // nothing may run yet: there is nobody to invoke
	r.m.RegisterHandlers(r, nil)
	r.post("between")
	r.run()
	want(t, "before Start", r.got, nil)
	r.m.PostSystemMessage(&actor.Started{})
	r.m.Start()
	r.run()
	want(t, "after Start", r.got, []any{"early", "between"})

	// protoactor's own panics in the sender and never starts afterwards.
	s := &stock{}
	s.box = actor.Unbounded()()
	if !panics(func() { s.post("early") }) {
		t.Fatal("control: the stock mailbox took an early post")
	}
	s.box.RegisterHandlers(s, s)
	s.box.PostSystemMessage(&actor.Started{})
	s.box.Start()
	s.run()
	want(t, "control: the stock mailbox never starts", len(s.system), 0)
}

func TestM1_NothingRunsBeforeStart(t *testing.T) {
	drains := 0
	r := unstarted(t, 4, func(c *options) {
		c.Sink = sink(func(*scheduler.Turn) bool { drains++; return false })
	})
	r.m.RegisterHandlers(r, nil)
	r.m.PostSystemMessage(&actor.Started{})
	r.pool.Ready(r.m.Task(), nil) // a sink that has work already says so
	r.run()
	want(t, "before Start", []int{drains, len(r.system)}, []int{0, 0})
	r.m.Start()
	r.run()
	want(t, "after Start", []int{drains, len(r.system)}, []int{1, 1})
}

func TestM2_SystemMessagesAreNeverRefusedAndComeFirst(t *testing.T) {
	r := newRig(t, 1)
	r.post("full")
	const n = 5_000
	for i := range n {
		r.m.PostSystemMessage(i)
	}
	r.onSys = func(any) { want(t, "user messages before the last system message", len(r.got), 0) }
	r.run()
	want(t, "system messages", len(r.system), n+1)
	for i := range n {
		want(t, "order", r.system[i+1], any(i))
	}
	want(t, "lane", r.got, []any{"full"})
}

func TestM2_SystemMessagesPostedMeanwhileComeBeforeTheNextBatch(t *testing.T) {
	r := newRig(t, 200)
	for i := range 100 {
		r.post(i)
	}
	r.handle = func(msg any) {
		if msg == 0 {
			r.m.PostSystemMessage("urgent")
		}
	}
	seen := -1
	r.onSys = func(any) { seen = len(r.got) }
	r.run()
	want(t, "messages before the system message", seen, scheduler.BatchMessages)
}

func TestM3_SuspendAndResumeAreNotForwarded(t *testing.T) {
	r := newRig(t, 4)
	r.m.PostSystemMessage(&actor.SuspendMailbox{})
	r.post("held")
	r.run()
	want(t, "while suspended", r.got, nil)
	r.m.PostSystemMessage("other") // the system queue goes on
	r.run()
	r.m.PostSystemMessage(&actor.ResumeMailbox{})
	r.run()
	want(t, "after resume", r.got, []any{"held"})
	want(t, "forwarded", r.system[1:], []any{"other"}) // a mailbox without the rule forwards three
}

func TestM4_APanicEscalatesOnceAndSuspends(t *testing.T) {
	r := newRig(t, 8)
	r.handle = func(msg any) {
		if msg == "bad" {
			panic("boom")
		}
	}
	r.post("good", "bad", "later")
	if !r.pool.Step() {
		t.Fatal("not ready")
	}
	want(t, "guilty", r.failed, []any{"bad"})
	want(t, "the suspension was consumed in the same run", r.m.has(suspended), true)
	r.run()
	want(t, "before the supervisor decides", r.got, []any{"good", "bad"})
	r.m.PostSystemMessage(&actor.ResumeMailbox{})
	r.run()
	want(t, "after", r.got, []any{"good", "bad", "later"})
}

func TestM4_APanicInASystemMessageEscalates(t *testing.T) {
	r := newRig(t, 8)
	r.onSys = func(msg any) {
		if msg == "bad" {
			panic("boom")
		}
	}
	r.m.PostSystemMessage("bad")
	r.m.PostSystemMessage("next")
	r.run()
	want(t, "guilty", r.failed, []any{"bad"})
	want(t, "the queue goes on", r.system[1:], []any{"bad", "next"})
}

func TestM5_AnEscalationThatPanicsStopsTheActor(t *testing.T) {
	r := newRig(t, 8)
	r.handle = func(any) { panic("boom") }
	r.onFail = func() { panic("guardian cannot escalate failure") }
	r.post("bad", "left")
	r.run() // a mailbox without the rule takes the process down here
	want(t, "stopped", r.system[1:], []any{&actor.Stop{}})
	want(t, "left over", r.removed, []removal{{"left", backpressure.Closed}})

	s := newStock()
	s.handle, s.onFail = r.handle, r.onFail
	s.post("bad")
	if !panics(s.run) {
		t.Fatal("control: the stock mailbox survived")
	}
}

func TestM7_ARestartHoldsMessagesUntilResume(t *testing.T) {
	// An all-for-one sibling is restarted without having failed: the old
	// instance must not serve while its children stop.
	r := newRig(t, 4)
	r.m.PostSystemMessage(&actor.Restart{})
	r.post("for the next instance")
	r.run()
	want(t, "while restarting", r.got, nil)
	r.m.PostSystemMessage(&actor.ResumeMailbox{})
	r.run()
	want(t, "after", r.got, []any{"for the next instance"})

	s := newStock()
	s.box.PostSystemMessage(&actor.Restart{})
	s.post("for the next instance")
	s.run()
	want(t, "control: the stock mailbox serves the old instance", len(s.got), 1)
}

func TestM8_AfterStopNothingIsTakenOrDelivered(t *testing.T) {
	r := newRig(t, 4)
	r.post("waiting")
	r.m.PostSystemMessage(&actor.Stop{})
	want(t, "post after Stop", r.m.Post(backpressure.Control, Item{Msg: "late"}), backpressure.Closed)
	r.run()
	want(t, "delivered", r.got, nil)

	s := newStock()
	s.post("waiting")
	s.box.PostSystemMessage(&actor.Stop{})
	s.post("late")
	s.run()
	want(t, "control: the stock mailbox delivers", len(s.got), 2)
}

func TestM8_AStopInTheMiddleEndsTheBatch(t *testing.T) {
	r := newRig(t, 8)
	r.handle = func(msg any) {
		if msg == 1 {
			r.m.PostSystemMessage(&actor.Stop{})
		}
	}
	r.post(1, 2, 3)
	r.run()
	want(t, "delivered", r.got, []any{1})
	want(t, "removed", r.removed, []removal{{2, backpressure.Closed}, {3, backpressure.Closed}})
}

func TestM8_ARestartAfterStopIsNotForwarded(t *testing.T) {
	// protoactor would set a stopping actor to restarting, and it would never end.
	r := newRig(t, 4)
	r.m.PostSystemMessage(&actor.Stop{})
	r.m.PostSystemMessage(&actor.Restart{})
	r.run()
	want(t, "forwarded", r.system[1:], []any{&actor.Stop{}})
}

func TestM9_WhatComesThroughThePIDIsDeliveredAlone(t *testing.T) {
	r := newRig(t, 8)
	env := &actor.MessageEnvelope{Message: "asked"}
	r.post(1, 2)
	r.m.PostUserMessage(env)
	r.post(3)
	r.run()
	want(t, "order", r.got, []any{1, 2, env, 3})
	want(t, "batches", r.batches, []int{2, 1})
}

func TestM9_WhatIsToBeDeliveredAloneKeepsItsPlace(t *testing.T) {
	r := newRig(t, 8)
	r.after = func() { // it is the next, and has to wait
		r.after = nil
		r.m.Pause()
	}
	r.post(1)
	r.m.PostUserMessage("alone")
	r.post(2)
	r.run()
	want(t, "paused", r.got, []any{1})
	want(t, "still counted", r.m.UserMessageCount(), 2)
	r.m.Resume()
	r.run()
	want(t, "order", r.got, []any{1, "alone", 2})
}

func TestM9_PoisonPassesAFullLane(t *testing.T) {
	r := newRig(t, 1)
	r.post("last")
	r.m.PostUserMessage(&actor.PoisonPill{})
	want(t, "post after poison", r.m.Post(backpressure.Bulk, Item{Msg: "late"}), backpressure.Closed)
	r.handle = func(msg any) {
		if _, ok := msg.(*actor.PoisonPill); ok {
			r.m.PostSystemMessage(&actor.Stop{}) // as protoactor does
		}
	}
	r.run()
	// A mailbox without the rule refuses the pill, or blocks its sender.
	want(t, "delivered", r.got, []any{"last", &actor.PoisonPill{}})
	want(t, "stopped", r.system[1:], []any{&actor.Stop{}})
}

func TestM10_APanicCostsOneMessage(t *testing.T) {
	for guilty := range 10 {
		r := newRig(t, 16)
		r.handle = func(msg any) {
			if msg == guilty {
				panic("boom")
			}
		}
		r.onFail = func() { r.m.PostSystemMessage(&actor.ResumeMailbox{}) }
		for i := range 10 {
			r.post(i)
		}
		r.run()
		want(t, "each once, in order", r.got, []any{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
		want(t, "guilty", r.failed, []any{guilty})
	}
}

func TestM11_LeftOversAreAnswered(t *testing.T) {
	r := newRig(t, 100)
	for i := range 25 {
		for l := range backpressure.Lane(backpressure.Lanes) {
			r.m.Post(l, Item{Msg: i})
		}
	}
	var s Signal
	s.Init("member")
	r.m.Raise(&s, 5)
	r.m.PostSystemMessage(&actor.Stop{})
	r.run()
	want(t, "removed", len(r.removed), 101)
	want(t, "a signal too", r.removed[0], removal{Raised{"member", 5}, backpressure.Closed})
	for _, x := range r.removed {
		want(t, "why", x.o, backpressure.Closed)
	}
	want(t, "count", r.m.UserMessageCount(), 0)
}

func TestM11_AnOwnerThatPanicsLosesOnlyItsOwnMessage(t *testing.T) {
	seen := 0
	r := newRig(t, 100, func(c *options) {
		c.Removed = func(any, backpressure.Outcome) {
			if seen++; seen == 2 {
				panic("owner")
			}
		}
	})
	r.post(1, 2, 3, 4)
	r.m.PostSystemMessage(&actor.Stop{})
	r.run()
	want(t, "owners told", seen, 4)
	want(t, "stopped all the same", r.system[1:], []any{&actor.Stop{}})
}

type parts []any

func (p parts) GetMessages() []any { return p }

func TestM12_NoMessageIsTakenApart(t *testing.T) {
	r := newRig(t, 8)
	r.m.PostUserMessage(parts{1, 2})
	r.post(parts{3, 4})
	r.run()
	want(t, "delivered", r.got, []any{parts{1, 2}, parts{3, 4}})

	s := newStock()
	s.post(parts{1, 2})
	s.run()
	want(t, "control: the stock mailbox delivers the parts and the whole", len(s.got), 3)

	for _, msg := range []any{&Batch{}, &Raised{}, &Signal{}} {
		if _, ok := msg.(actor.MessageBatch); ok {
			t.Fatalf("%T would be taken apart", msg)
		}
	}
}

func TestM13_ABatchIsBounded(t *testing.T) {
	tests := []struct {
		rule string
		n    int
		size int
		cost time.Duration
		most int
	}{
		{"by messages", 200, 0, 0, scheduler.BatchMessages},
		{"by bytes", 40, 64 << 10, 0, 4},
		{"by time", 40, 0, 2 * time.Millisecond, checkEvery},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			r := newRig(t, 1000, func(c *options) { c.Bytes = 1 << 30 })
			r.handle = func(any) { r.now += int64(tt.cost) }
			for i := range tt.n {
				r.m.Post(backpressure.Bulk, Item{Msg: i, Size: tt.size})
			}
			r.run()
			want(t, "delivered", len(r.got), tt.n)
			for _, n := range r.batches {
				if n > tt.most {
					t.Fatalf("a batch of %d, at most %d", n, tt.most)
				}
			}
		})
	}
}

func TestM14_UserMessageCount(t *testing.T) {
	r := newRig(t, 8)
	want(t, "empty", r.m.UserMessageCount(), 0)
	r.post(1, 2)
	r.m.Post(backpressure.Lossy, Item{Msg: 3})
	r.m.PostUserMessage("single")
	want(t, "all lanes", r.m.UserMessageCount(), 4)
	want(t, "one lane", r.m.Depth(backpressure.Interactive), 3)
	want(t, "a lane never used", r.m.Depth(backpressure.Bulk), 0)
	r.run()
	want(t, "handled", r.m.UserMessageCount(), 0)
}

func TestM15_APanicValueIsReplacedByItsTypeAndStack(t *testing.T) {
	type secret struct{ token string }
	r := newRig(t, 8)
	r.handle = func(any) { panic(secret{"s3cr3t"}) }
	r.post("x")
	r.run()
	p, ok := r.reasons[0].(*Panic)
	if !ok {
		t.Fatalf("reason is a %T", r.reasons[0])
	}
	want(t, "type", p.Type, "mailbox.secret")
	for _, s := range []string{p.Error(), p.LogValue().String(), string(p.Stack)} {
		if strings.Contains(s, "s3cr3t") {
			t.Fatalf("the value is told: %s", s)
		}
	}
	if !strings.Contains(string(p.Stack), "TestM15_") {
		t.Fatalf("the stack does not show the fault:\n%s", p.Stack)
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
