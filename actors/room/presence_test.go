package room

import (
	"fmt"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// mute is a presence that never answers.
type mute struct{ bridge.Presence }

func (mute) Change(codec.Topic, uint64, bridge.PresenceUpdate, func(bridge.Mark, *codec.Error)) {}
func (mute) List(codec.Topic, string, int, func(bridge.MemberPage, *codec.Error))               {}
func (mute) Watch(codec.Topic, bridge.Watcher)                                                  {}
func (mute) Unwatch(codec.Topic, bridge.Watcher)                                                {}

// A leave never waits for what its join waits for, whether it comes before the join
// is handled or after; a join that follows is not answered before it.
func TestLeaveDoesNotWaitForPresence(t *testing.T) {
	seen := plain
	seen.Presence = true
	for _, handled := range []bool{false, true} {
		s := newStage(t, seen)
		p := s.peer("alice", 64)
		join := p.joining()
		join.M.Presence = true
		p.post(join)
		if handled {
			s.run()
		}
		p.leaving()
		p.post(p.joining())
		s.run()
		want(t, "told", p.frames(), []string{"refused conflict", "parted", "joined 0"})
	}
}

// Whoever still waits when the room ends is answered.
func TestJoinsThatWaitForPresenceAreAnsweredAtTheEnd(t *testing.T) {
	seen := plain
	seen.Presence = true
	s := newStage(t, seen)
	p := s.peer("alice", 64)
	join := p.joining()
	join.M.Presence = true
	p.post(join)
	s.run()
	want(t, "at first", p.frames(), []string(nil))
	s.room.Stopping()
	s.run()
	want(t, "at the end", p.frames(), []string{"refused unavailable"})
}

// failing is a presence that is away, and then takes everything in.
type failing struct {
	mute
	away bool
	last bridge.PresenceUpdate
}

func (f *failing) Change(_ codec.Topic, _ uint64, u bridge.PresenceUpdate, done func(bridge.Mark, *codec.Error)) {
	if f.away {
		done(bridge.Mark{}, codec.Retry(codec.CodeUnavailable, codec.ScopeNode, 1, "away"))
		return
	}
	f.last = u
	done(bridge.Mark{Epoch: "e", Seq: 1}, nil)
}

// However many came and went while the bridge was away, it hears that they are gone,
// from a room in which nobody is left too.
func TestTheBridgeHearsOfThoseWhoLeftWhileItWasAway(t *testing.T) {
	seen := plain
	seen.Presence = true
	s := newStage(t, seen)
	source := &failing{}
	p := s.room.presence
	p.source = source
	stays := memberOf("stays", "stays")
	p.roster.join(stays, codec.Data{})
	s.room.turn = &scheduler.Turn{}
	p.report(1)
	p.landed()
	if source.away = true; len(source.last.Put) != 1 {
		t.Fatalf("told %+v", source.last)
	}
	p.roster.leave(stays)
	for i := range mostGone { // with stays one too many, so that none of them is remembered
		m := memberOf("s", fmt.Sprint("u", i))
		p.roster.join(m, codec.Data{})
		p.roster.leave(m)
		if p.report(1); p.flying != nil {
			p.landed()
		}
	}
	source.away, p.retryAt = false, 0
	if p.report(2); !source.last.Whole || len(source.last.Put) != 0 {
		t.Errorf("told %+v, want whole and nobody", source.last)
	}
	p.landed()
	source.last = bridge.PresenceUpdate{}
	if p.report(3); p.flying != nil {
		t.Errorf("told again: %+v", source.last)
	}
	p.book()
}

// slow is a presence whose word of a change comes later than its answer.
type slow struct {
	mute
	watcher bridge.Watcher
}

func (s *slow) Watch(_ codec.Topic, w bridge.Watcher) { s.watcher = w; w.Anew() }

func (s *slow) Change(_ codec.Topic, _ uint64, _ bridge.PresenceUpdate, done func(bridge.Mark, *codec.Error)) {
	done(bridge.Mark{Epoch: "e", Seq: 1}, nil)
}

func (s *slow) List(_ codec.Topic, _ string, _ int, done func(bridge.MemberPage, *codec.Error)) {
	done(bridge.MemberPage{Mark: bridge.Mark{Epoch: "e"}}, nil) // from before the change
}

// A join that wants to see the others waits for a view in which it is itself, not for
// the first that there is.
func TestJoinIsAnsweredWhenTheViewShowsIt(t *testing.T) {
	seen := plain
	seen.Presence = true
	s := newStage(t, seen)
	source := &slow{}
	s.room.presence.source = source
	source.Watch(testTopic, &s.room.presence.arrivals)
	p := s.peer("alice", 64)
	join := p.joining()
	join.M.Presence = true
	p.post(join)
	s.run()
	want(t, "before the change has come", p.frames(), []string(nil))
	source.watcher.Changed(bridge.PresenceChange{
		Mark: bridge.Mark{Epoch: "e", Seq: 1}, Joined: []codec.Member{{Subject: "alice", Sessions: 1}},
	})
	s.run()
	want(t, "then", p.frames(), []string{"joined 0"})
}

// A pass over many members is cut into slices, with other work in between.
func TestMembersAreToldInSlices(t *testing.T) {
	seen := plain
	seen.Presence = true
	s := newStage(t, seen)
	p := s.room.presence
	s.room.turn = &scheduler.Turn{}
	for i := range 2*scheduler.Slice + 1 {
		p.add(memberOf(fmt.Sprint("s", i), "u")) // who know already what the pass would tell
	}
	p.begin()
	for _, left := range []int{scheduler.Slice + 1, 1, 0} {
		p.slice()
		want(t, "left to be told", p.next, left)
	}
	want(t, "under way", p.passing, false)
}
