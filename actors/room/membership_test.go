package room

import (
	"fmt"
	"testing"

	"github.com/yaza-dev/pulse/backpressure"
)

func (s *stage) alone(p *peer) {
	s.t.Helper()
	if n := s.room.members.count; n != 0 {
		s.t.Errorf("%d members are left: %s is a ghost", n, p.name)
	}
	want(s.t, "events for one who is no member", p.frames(), []string(nil))
}

// A signal overtakes the join that waits in the lane: whatever it says, there
// is one answer to each request, and nobody stays who is gone.
func TestMembershipEndsBeforeItsJoinIsHandled(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *stage, p *peer)
		want []string
	}{
		{"left", func(s *stage, p *peer) { p.post(p.joining()); p.leaving() }, []string{"joined 0", "parted"}},
		{"gone", func(s *stage, p *peer) { p.post(p.joining()); p.gone() }, nil},
		{"gone in a second join: the first is not forgotten", func(s *stage, p *peer) {
			p.join()
			p.frames()
			p.post(p.joining())
			p.gone()
		}, nil},
		{"left in a second join", func(s *stage, p *peer) {
			p.join()
			p.frames()
			p.post(p.joining())
			p.leaving()
		}, []string{"joined 0", "parted"}},
		{"left while its position is looked up", func(s *stage, p *peer) {
			s.broker.publish(3)
			s.open()
			s.broker.byHand = true
			p.post(p.joining(at("e0:1")))
			s.run()
			p.leaving()
			s.run()
			for _, answer := range s.broker.reads {
				answer()
			}
		}, []string{"refused conflict", "parted"}},
		{"left and joined again while its position is looked up", func(s *stage, p *peer) {
			s.broker.publish(3)
			s.open()
			s.broker.byHand = true
			p.post(p.joining(at("e0:1")))
			s.run()
			p.leaving()
			p.post(p.joining())
			s.run()
			for _, answer := range s.broker.reads {
				answer()
			}
			s.run()
			p.leaving()
		}, []string{"refused conflict", "parted", "joined 3", "parted"}},
		{"left in a join whose position would have to be looked up", func(s *stage, p *peer) {
			s.broker.publish(3)
			s.open()
			s.broker.byHand = true
			p.post(p.joining(at("e0:1")))
			p.leaving()
			p.post(p.joining())
			s.run()
			for _, answer := range s.broker.reads {
				answer()
			}
			s.run()
			p.leaving()
		}, []string{"refused conflict", "parted", "joined 3", "parted"}},
		{"gone while its position is looked up", func(s *stage, p *peer) {
			s.broker.publish(3)
			s.open()
			s.broker.byHand = true
			p.post(p.joining(at("e0:1")))
			s.run()
			p.gone()
			s.run()
			for _, answer := range s.broker.reads {
				answer()
			}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, plain)
			p := s.peer("alice", 64)
			c.do(s, p)
			s.run()
			want(t, "told", p.frames(), c.want)
			s.broker.byHand = false
			s.peer("bob", 64).publish("message", "1")
			s.alone(p)
		})
	}
}

// A join that is pushed out of the room's mailbox by others is answered, and
// takes what it replaced, and what it was left by, along.
func TestMembershipWhoseJoinIsPushedOut(t *testing.T) {
	pushy := plain
	pushy.MailboxItems = 1
	pushy.Events = map[string]EventPolicy{
		Any:     {Delivery: AtLeastOnce, Lane: backpressure.Interactive},
		"pushy": {Delivery: Transient, Lane: backpressure.Interactive, Overflow: backpressure.DropOldest},
	}
	for _, c := range []struct {
		name string
		do   func(s *stage, p, other *peer)
		want []string
	}{
		{"a first join", func(s *stage, p, other *peer) {
			p.post(p.joining())
			other.publishing("pushy", "1")
		}, []string{"refused backpressured"}},
		{"a second join", func(s *stage, p, other *peer) {
			p.join()
			p.frames()
			p.post(p.joining())
			other.publishing("pushy", "1")
		}, []string{"refused backpressured"}},
		{"left before it is pushed out", func(s *stage, p, other *peer) {
			p.post(p.joining())
			p.leaving()
			other.publishing("pushy", "1")
		}, []string{"refused backpressured", "parted"}},
		{"left after it was pushed out", func(s *stage, p, other *peer) {
			p.post(p.joining())
			other.publishing("pushy", "1")
			p.leaving()
		}, []string{"refused backpressured", "parted"}},
		{"left, which the room knows, and then pushed out", func(s *stage, p, other *peer) {
			s.room.mb.Pause() // as a fan-out does
			p.post(p.joining())
			p.leaving()
			for s.room.mb.UserMessageCount() > 0 && s.pool.Step() {
				s.room.mb.Pause()
			}
			other.publishing("pushy", "1")
			s.room.mb.Resume()
		}, []string{"refused backpressured", "parted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, pushy)
			p, other := s.peer("alice", 64), s.member("bob")
			c.do(s, p, other)
			s.run()
			want(t, "told", p.frames(), c.want)
			other.publish("pushy", "2")
			if n := s.room.members.count; n != 1 {
				t.Errorf("%d members: alice is a ghost", n)
			}
			want(t, "events for one who is no member", p.frames(), []string(nil))
		})
	}
}

// Whoever is behind is fed by what the room holds, or by one read for all.
func TestMembersBehindShareTheirReads(t *testing.T) {
	s := newStage(t, plain)
	alice := s.member("alice")
	const n, last = 40, 900
	var slow [n]*peer
	for i := range slow {
		slow[i] = s.peer("slow", 8)
		slow[i].join()
		slow[i].frames()
		slow[i].wire.full = true
	}
	s.publishAll(alice, 1, last)
	want(t, "reads while nobody asks", s.broker.count, 0)
	s.room.win.clear()       // the budget was needed elsewhere
	for _, p := range slow { // each at its own time
		p.wire.open()
		s.run()
		if f := p.frames(); len(f) != last || f[last-1] != fmt.Sprint("event ", last) {
			t.Fatalf("a member got %d events", len(f))
		}
	}
	if most := last/readLimit + 1; s.broker.count > most {
		t.Errorf("%d reads for %d members of %d events, should be %d", s.broker.count, n, last, most)
	}
	want(t, "behind", s.room.behind, 0)
	want(t, "nobody is behind, so the room holds little", s.room.win.events.Len(), windowRest)
}

func TestMemberResumes(t *testing.T) {
	for _, c := range []struct {
		name  string
		since string
		kept  uint64
		want  []string
	}{
		{"from the head", "e0:5", 0, []string{"joined 5 recovered"}},
		{"from before the first event", "e0:0", 0, []string{"joined 0 recovered", "event 1", "event 2", "event 3", "event 4", "event 5"}},
		{"from between", "e0:3", 0, []string{"joined 3 recovered", "event 4", "event 5"}},
		{"from the head, when nothing is kept", "e0:5", 5, []string{"joined 5 recovered"}},
		{"from the oldest kept", "e0:2", 2, []string{"joined 2 recovered", "event 3", "event 4", "event 5"}},
		{"from before the oldest kept", "e0:1", 2, []string{"joined 5 reset expired"}},
		{"from beyond the head", "e0:6", 0, []string{"joined 5 reset epoch"}},
		{"from another epoch", "other:3", 0, []string{"joined 5 reset epoch"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, plain)
			s.broker.publish(5)
			s.broker.kept = c.kept
			s.open()
			p := s.peer("alice", 64)
			want(t, "told", p.join(at(c.since)), c.want)
			s.peer("bob", 64)
			s.publishAll(s.member("carol"), 6, 6)
			want(t, "and then", p.frames(), []string{"event 6"})
		})
	}
}

// What a room has delivered lately serves whoever comes back, as long as the history
// would keep it.
func TestWhatTheHistoryDoesNotKeepIsGone(t *testing.T) {
	for _, c := range []struct {
		name  string
		keeps History
		pause int64
	}{
		{"by number", History{Events: 2}, 0},
		{"by size", History{Bytes: 2000}, 0}, // an event has 802,
		{"by age", History{Age: 100}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind := plain
			kind.History = c.keeps
			s := newStage(t, kind)
			carol := s.member("carol")
			s.publishAll(carol, 1, 3)
			s.now += c.pause
			s.publishAll(carol, 4, 5)
			s.broker.kept = 3
			want(t, "from the oldest kept", s.peer("bob", 64).join(at("e0:3")), []string{"joined 3 recovered", "event 4", "event 5"})
			want(t, "from before it", s.peer("alice", 64).join(at("e0:2")), []string{"joined 5 reset expired"})
		})
	}
}

// One read tells all who ask for what is gone how much of it is: however many
// they are.
func TestMembersWhoseHistoryIsGone(t *testing.T) {
	s := newStage(t, plain)
	s.broker.publish(100)
	s.broker.kept = 60
	s.open()
	s.broker.byHand = true
	var peers [20]*peer
	for i := range peers {
		peers[i] = s.peer("p", 64)
		peers[i].post(peers[i].joining(at("e0:" + []string{"10", "20", "59", "60", "80"}[i%5])))
	}
	s.run()
	for len(s.broker.reads) > 0 {
		answer := s.broker.reads[0]
		s.broker.reads = s.broker.reads[1:]
		answer()
		s.run()
	}
	for i, p := range peers {
		f := p.frames()
		wantFirst := []string{"joined 100 reset expired", "joined 100 reset expired", "joined 100 reset expired", "joined 60 recovered", "joined 80 recovered"}[i%5]
		if f[0] != wantFirst || i%5 > 2 && f[len(f)-1] != "event 100" {
			t.Errorf("peer %d: %v", i, f)
		}
	}
	if s.broker.count > 4 {
		t.Errorf("%d reads", s.broker.count)
	}
}

// Where the budget does not allow the room to hold what its members want, each
// page serves those who wait for it, and all get everything.
func TestMembersBehindWithoutABudget(t *testing.T) {
	s := newStage(t, plain)
	s.room.win.account = backpressure.NewAccount(nil, 1)
	alice := s.member("alice")
	var slow [5]*peer
	for i := range slow {
		slow[i] = s.peer("slow", 8)
		slow[i].join()
		slow[i].frames()
		slow[i].wire.full = true
	}
	s.publishAll(alice, 1, 600)
	for _, p := range slow {
		p.wire.open()
	}
	s.run()
	for _, p := range slow {
		if f := p.frames(); len(f) != 600 || f[599] != "event 600" {
			t.Fatalf("a member got %d events", len(f))
		}
	}
	want(t, "held", s.room.win.events.Len(), 0)
}

// While the broker is away who joins with a position is told so, and who is
// behind waits.
func TestMembersWhileReadsFail(t *testing.T) {
	s := newStage(t, plain)
	alice, slow := s.member("alice"), s.peer("slow", 8)
	slow.join()
	slow.frames()
	slow.wire.full = true
	s.publishAll(alice, 1, 50)
	s.broker.failing = true
	s.room.win.clear()
	slow.wire.open()
	s.run()
	bob := s.peer("bob", 64)
	bob.join(at("e0:3"))
	s.room.mb.Raise(&s.room.read.signal, readAgain)
	s.run()
	want(t, "a join with a position that the room must look up", bob.frames(), []string{"refused unavailable"})
	want(t, "one without", s.peer("carol", 64).join(), []string{"joined 50"})
	if s.room.cfg.Wheel.Armed() == 0 {
		t.Error("nobody tries again")
	}
	s.broker.failing = false
	s.room.mb.Raise(&s.room.read.signal, readAgain)
	s.run()
	f := slow.frames()
	want(t, "the one who was behind", f[len(f)-1], "event 50")
	want(t, "and has them all", len(f), 50)
}

// A position of a past epoch holds as far as that reached, and is gone when what follows it is.
func TestMemberResumesFromAPastEpoch(t *testing.T) {
	for since, told := range map[string][]string{
		"e0:1": {"joined 5 reset expired"},
		"e0:3": {"joined 3 recovered", "event 4", "event 5"},
		"e0:6": {"joined 5 reset epoch"},
	} {
		s := newStage(t, plain)
		s.broker.publish(5)
		s.broker.fail(0)
		s.broker.kept = 3
		s.open()
		want(t, "since "+since, s.peer("alice", 64).join(at(since)), told)
	}
}

// Whoever comes back after the history was lost, before the room has heard of that, is reset
// once, to the history that there is.
func TestMemberResumesWhenTheRoomDoesNotKnowYet(t *testing.T) {
	s := newStage(t, plain)
	live := s.member("carol")
	s.publishAll(live, 1, 5*windowRest) // more than the room holds
	live.frames()
	s.broker.history = history{epoch: "e1", epochs: 1}
	p := s.peer("alice", 64)
	want(t, "told", p.join(at("e0:3")), []string{"joined 0 reset epoch"})
	want(t, "who was there", live.frames(), []string{"reset epoch 0"})
	want(t, "and then", len(p.frames()), 0)
}
