package room

import (
	"testing"

	"github.com/yaza-dev/pulse/actors/message"
)

// Whoever was a member of a room that has ended, and has not heard of it yet, says so to
// the room after it: to that one it is nobody, and the record of its membership stays
// its own room's, which may be at work with it.
func TestMembershipOfTheRoomBefore(t *testing.T) {
	var asked []*Member
	o := newOffice(t, nil)
	o.do = func(_ *Context, c *Command) (any, error) { asked = append(asked, c.Member); return nil, nil }
	alice, bob := o.member("alice"), o.peer("bob", 64)
	bob.joining() // which its room never saw
	first, old, unseen := o.room, alice.member, bob.member
	record := old.Place.(*member)
	first.mb.Abandon() // nothing is handled there any more
	o.open()
	untouched := func(after string) {
		t.Helper()
		if old.Place != any(record) || record.state != live || first.members.count != 1 || unseen.Place != nil {
			t.Errorf("after %s: a member of the room before is %v, of %d; another's place is %v", after, record.state, first.members.count, unseen.Place)
		}
	}
	for _, p := range []*peer{alice, bob} {
		want(t, "a publish", p.publish("message", "1"), "not_joined")
		untouched("a publish")
		_, told := o.command(func(c *message.Command) { c.Member = p.member })
		o.run()
		want(t, "a command", told, "null")
		untouched("a command")
		want(t, "a join in its place", p.join(), []string{"joined 0 [0,0]"})
		untouched("a join")
	}
	if len(asked) != 2 || asked[0] != nil || asked[1] != nil {
		t.Errorf("commands come from the members %v", asked)
	}
	want(t, "members", o.room.members.count, 2)
	want(t, "a publish", alice.publish("message", "1"), "accepted")
}
