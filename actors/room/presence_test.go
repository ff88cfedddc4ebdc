package room

import (
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
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
