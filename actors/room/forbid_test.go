package room

import "testing"

// A right that is lost ends the membership, wherever it stands: it is told `left`
// if its join was answered, else the join is refused; every request has its reply.
func TestForbidEndsAMembershipWhereverItStands(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(s *stage, p *peer)
		want  []string
		ended int
	}{
		{"live", func(s *stage, p *peer) {
			p.join()
			p.frames()
			p.member.Forbid()
		}, []string{"left forbidden"}, 1},
		{"told twice", func(s *stage, p *peer) {
			p.join()
			p.frames()
			p.member.Forbid()
			s.run()
			p.member.Forbid()
		}, []string{"left forbidden"}, 1},
		{"before its join was handled", func(s *stage, p *peer) {
			p.post(p.joining())
			p.member.Forbid()
		}, []string{"refused forbidden"}, 1},
		{"before its second join was handled", func(s *stage, p *peer) {
			p.join()
			p.frames()
			p.post(p.joining())
			p.member.Forbid()
		}, []string{"refused forbidden"}, 1},
		{"before its join was handled, and left", func(s *stage, p *peer) {
			p.post(p.joining())
			p.member.Forbid()
			p.leaving()
		}, []string{"refused forbidden", "parted"}, 0},
		{"while its position is looked up", func(s *stage, p *peer) {
			s.broker.publish(3)
			s.open()
			s.broker.byHand = true
			p.post(p.joining(at("e0:1")))
			s.run()
			p.member.Forbid()
			s.run()
			for _, answer := range s.broker.reads {
				answer()
			}
		}, []string{"refused forbidden"}, 1},
		{"as it leaves", func(s *stage, p *peer) {
			p.join()
			p.frames()
			p.member.Forbid()
			p.leaving()
		}, []string{"parted"}, 0},
		{"after it has left", func(s *stage, p *peer) {
			p.join()
			p.frames()
			m := p.member
			p.leaving()
			s.run()
			m.Forbid()
		}, []string{"parted"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, plain)
			p := s.peer("alice", 64)
			c.do(s, p)
			s.run()
			want(t, "told", p.frames(), c.want)
			want(t, "memberships that the room has ended", p.ended, c.ended)
			s.broker.byHand = false
			s.peer("bob", 64).publish("message", "1")
			s.alone(p)
		})
	}
}
