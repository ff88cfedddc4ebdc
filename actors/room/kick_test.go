package room

import (
	"maps"
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/backpressure"
)

// guard kicks who says so, whom it names, and hears of who has left.
type guard struct {
	left []string
	errs []error
}

func (g *guard) Publish(ctx *Context, e *Event) error {
	var whom string
	_ = e.Data.Unmarshal(&whom)
	_ = ctx.Send(whom, "note", "you are out")
	for range 3 { // once is enough
		g.errs = append(g.errs, ctx.Kick(whom))
	}
	if len(g.left) > 0 && slices.Contains(g.left, whom) {
		panic("Leave was called within the callback")
	}
	return nil
}

func (g *guard) Leave(_ *Context, m *Member) { g.left = append(g.left, m.Session) }

func TestKick(t *testing.T) {
	g := &guard{}
	k := plain
	k.Events = maps.Clone(plain.Events)
	k.Events["note"] = EventPolicy{Delivery: Transient, Lane: backpressure.Interactive}
	k.New = func() Handler { return g }
	s := newStage(t, k)
	alice, bob := s.member("alice"), s.member("bob")
	want(t, "publish", alice.publish("message", `"`+bob.member.Session+`"`), "accepted")
	want(t, "bob", bob.frames(), []string{"note", "left kicked"})
	want(t, "bob's session was told", bob.ended, 1)
	want(t, "alice", alice.frames(), []string{"event 1"})
	want(t, "who has left", g.left, []string{bob.member.Session})
	want(t, "what was kicked may not publish", bob.publish("message", "1"), "not_joined")
	if got := bob.join(); len(got) != 1 || got[0] != "joined 1" {
		t.Errorf("it may join again: %v", got)
	}
	g.errs = nil
	want(t, "publish", alice.publish("message", `"nobody"`), "accepted")
	want(t, "nobody is kicked", g.errs[0], error(ErrNotMember))
	want(t, "of itself", alice.publish("message", `"`+alice.member.Session+`"`), "accepted")
	want(t, "alice", alice.frames(), []string{"event 2", "note", "left kicked"})
	if s.room.members.count != 1 {
		t.Errorf("%d members", s.room.members.count)
	}
}
