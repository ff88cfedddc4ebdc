package room

import (
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

// memberState is where a membership stands; see the package's diagram.
type memberState uint8

const (
	expected memberState = iota // a signal came before its join
	joining                     // waits until its position is known to hold
	live
	behind
	over
)

var memberStates = [...]string{"expected", "joining", "live", "behind", "over"}

func (s memberState) String() string { return memberStates[s] }

// in: its join has been accepted, and it has not ended.
func (s memberState) in() bool { return s == live || s == behind }

// memberEdges are the transitions that there are.
var memberEdges = [...][]memberState{
	expected: {joining, live, behind, over},
	joining:  {live, behind, over},
	live:     {behind, over},
	behind:   {live, over},
	over:     nil,
}

// member is a membership as its room knows it. Owned by the room.
type member struct {
	*message.Membership
	info  Member
	state memberState
	// pos is the position after which the member is to be sent events: that of
	// the last buffered event that is in its queue.
	pos      codec.Position
	join     *message.Join // until it is answered
	index    int           // in members
	answered bool          // the join was
	leaving  bool          // the client asked to leave before the join was handled
	forbid   bool          // the right was lost before the join was handled
	queued   bool          // in feeder's list
	parted   bool          // was in the room, and left because its client did
	kicked   bool          // its handler does not want it any more
	lost     bool          // its connection ended without a word
	sight    sight         // in a kind with presence
}

func (m *member) become(s memberState) {
	for _, to := range memberEdges[m.state] {
		if to == s {
			m.state = s
			return
		}
	}
	panic("room: no transition of a member from " + m.state.String() + " to " + s.String())
}

// mine is the room's record of a membership; nil: it is nobody's, or that of the room
// before this one, which alone may touch it.
func (r *Room) mine(ms *message.Membership) *member {
	if ms == nil || !ms.In(r.mb) {
		return nil
	}
	return r.member(ms)
}

// member finds the room's record of a membership that was posted to it.
func (r *Room) member(ms *message.Membership) *member {
	if m, ok := ms.Place.(*member); ok {
		return m
	}
	m := &member{Membership: ms, info: Member{Subject: ms.Subject, Session: ms.Session}, index: -1}
	ms.Place = m
	return m
}

// published tells whether what comes from m is a member's, or that of one who was a
// member when it sent it. Nil is neither.
func (m *member) published() bool { return m != nil && (m.state.in() || m.parted) }

// members are those who get events, in places that do not move while a fan-out
// is under way. Pure.
type members struct {
	list  []*member // nil: left during a fan-out
	count int
	holes bool
}

func (ms *members) add(m *member) {
	m.index = len(ms.list)
	ms.list = append(ms.list, m)
	ms.count++
}

// of is the member of a session; nil: none is.
func (ms *members) of(session string) *member {
	for _, m := range ms.list {
		if m != nil && m.Session == session {
			return m
		}
	}
	return nil
}

// remove takes m out. steady: a fan-out is under way and places must not move.
func (ms *members) remove(m *member, steady bool) {
	ms.count--
	if steady {
		ms.list[m.index] = nil
		ms.holes = true
		m.index = -1
		return
	}
	last := len(ms.list) - 1
	ms.list[m.index] = ms.list[last]
	ms.list[m.index].index = m.index
	ms.list[last] = nil
	ms.list = ms.list[:last]
	m.index = -1
	ms.shrink()
}

// compact closes the holes that remove has left.
func (ms *members) compact() {
	if !ms.holes {
		return
	}
	kept := ms.list[:0]
	for _, m := range ms.list {
		if m != nil {
			m.index = len(kept)
			kept = append(kept, m)
		}
	}
	clear(ms.list[len(kept):])
	ms.list, ms.holes = kept, false
	ms.shrink()
}

// shrink gives memory back when a large room has become a small one.
func (ms *members) shrink() {
	if cap(ms.list) > 64 && len(ms.list) < cap(ms.list)/4 {
		ms.list = append(make([]*member, 0, 2*len(ms.list)), ms.list...)
	}
}

// end takes a member out of the room, whoever ended it.
func (r *Room) end(m *member) {
	if m.index >= 0 {
		r.members.remove(m, r.fanout.busy())
	}
	joined := m.state.in()
	if m.state == behind {
		r.behind--
	}
	m.become(over)
	m.SetJoined(false)
	if r.presence != nil {
		r.presence.leave(m, m.lost)
	}
	if joined && r.handler != nil {
		r.handler.leave(r, m)
	}
	r.rest()
}

// part ends a membership because its client does. The signal overtakes what the
// client published before, which counts still.
func (r *Room) part(m *member) {
	m.parted = m.state.in()
	r.end(m)
}

// raised handles a membership's signal.
func (r *Room) raised(ms *message.Membership, bits uint32) {
	m := r.member(ms)
	if m.state == over {
		if bits&message.Leave != 0 {
			ms.ReplyLeave(r.turn) // it had ended when the client asked
		}
		return
	}
	m.lost = bits&(message.Lost|message.Gone|message.Leave) == message.Lost
	switch {
	case bits&message.Dropped != 0:
		r.end(m)
		if m.leaving || bits&message.Leave != 0 {
			ms.ReplyLeave(r.turn)
		}
	case bits&(message.Gone|message.Lost) != 0 && m.state == joining:
		r.refuseJoin(m, errReplaced) // if its session has not ended, a newer join has replaced it
	case bits&(message.Gone|message.Lost) != 0:
		r.part(m)
	case bits&message.Leave != 0:
		switch m.state {
		case expected:
			m.leaving = true // the join is answered first
			m.forbid = m.forbid || bits&message.Forbid != 0
		case joining:
			m.leaving = true
			r.refuseJoin(m, errLeft)
		default:
			r.part(m)
			ms.ReplyLeave(r.turn)
		}
	case bits&message.Forbid != 0:
		r.forbid(m)
	case bits&message.Want != 0 && m.state == behind:
		r.feed(m)
	}
}

// forbid ends a membership whose session has lost the right to it.
func (r *Room) forbid(m *member) {
	switch m.state {
	case expected:
		m.forbid = true
	case joining:
		r.refuseJoin(m, errForbidden)
	default:
		r.left(m, codec.LeftForbidden)
	}
}

var (
	errForbidden = codec.NewError(codec.CodeForbidden, "no grant covers this any more")
	errReplaced  = codec.NewError(codec.CodeConflict, "replaced by a newer join")
	// A leave does not wait for a read: a join of the room that follows it must
	// not be answered before it.
	errLeft = codec.NewError(codec.CodeConflict, "left before the join was answered")
)

// handleJoin begins a membership.
func (r *Room) handleJoin(j *message.Join) {
	m := r.member(j.M)
	r.replace(j.Replaces)
	if m.state != expected { // it has ended already
		m.answered = true
		j.Answer(r.turn, nil, errReplaced)
		return
	}
	r.used = r.turn.Now()
	m.join = j
	if m.forbid {
		r.refuseJoin(m, errForbidden)
		return
	}
	m.info.Data = j.Data
	if r.unknown != nil {
		r.refuseJoin(m, r.unknown)
		return
	}
	if r.presence != nil && j.Data.Len() > presenceData {
		r.refuseJoin(m, errPresenceData)
		return
	}
	if r.handler != nil {
		if err := r.handler.join(r, m); err != nil {
			r.refuseJoin(m, err)
			return
		}
	}
	if r.presence != nil {
		switch wait, err := r.presence.enter(m); {
		case err != nil:
			r.refuseJoin(m, err)
			return
		case wait:
			return
		}
	}
	r.admit(m)
}

// admit goes on with a join that nothing refuses any more.
func (r *Room) admit(m *member) {
	if !m.join.HasPosition {
		r.accept(m, r.seq.pos, codec.ResetNone)
		return
	}
	m.pos = m.join.Position
	if m.state == expected {
		m.become(joining)
	}
	r.feed(m)
	if m.state == joining && m.leaving {
		r.refuseJoin(m, errLeft)
	}
}

// replace ends an earlier membership of the same session.
func (r *Room) replace(ms *message.Membership) {
	switch old := r.mine(ms); {
	case old == nil || old.state == over:
	case old.state == joining:
		r.refuseJoin(old, errReplaced)
	default:
		r.part(old)
	}
}

// accept answers a join: delivery starts at pos, or, when the position that was
// asked for does not hold, at the room's own.
func (r *Room) accept(m *member, pos codec.Position, reset codec.ResetReason) {
	j := m.join
	ok := &codec.JoinResult{Room: r.cfg.Topic.Room, Position: pos, Reset: reset}
	if ok.Recovered = j.HasPosition && reset == codec.ResetNone; ok.Recovered {
		ok.Position = j.Position // the client's own, also where a later epoch goes on from it
	} else {
		ok.Data = r.snapshot() // may not return: until it does the join is owed its answer
	}
	if reset != codec.ResetNone {
		m.Out.CountReset(reset)
		ok.After = r.cfg.Herd.turn(ok.Data, time.Now())
	}
	m.join, m.answered = nil, true
	m.pos = pos
	r.members.add(m)
	m.SetJoined(true)
	if r.presence != nil {
		r.presence.show(m, ok)
	}
	j.Answer(r.turn, ok, nil)
	if pos == r.seq.pos {
		m.become(live)
	} else {
		m.become(behind)
		r.behind++
		m.Out.Behind(m.Seat)
	}
	if m.leaving {
		r.part(m)
		m.ReplyLeave(r.turn)
	}
}

func (r *Room) refuseJoin(m *member, err *codec.Error) {
	j := m.join
	m.join, m.answered = nil, true
	r.end(m)
	j.Answer(r.turn, nil, err)
	m.Ended()
	if m.leaving {
		m.ReplyLeave(r.turn)
	}
}

// reset tells a member that what it holds is no prefix of the history any more,
// and goes on with it from the room's position.
func (r *Room) reset(m *member, reason codec.ResetReason) {
	data := r.snapshot()
	if m.state == over {
		return // the handler has failed once too often, and the room ended
	}
	f := codec.NewFrame(&codec.Reset{
		Room: r.cfg.Topic.Room, Reason: reason, Position: r.seq.pos, Data: data, After: r.cfg.Herd.turn(data, time.Now()),
	})
	m.pos = r.seq.pos
	if m.state == behind {
		m.become(live)
		r.behind--
	}
	m.Out.CountReset(reason)
	m.Out.Mark(r.turn, r.cfg.Policy.Lane, f, m.Seat)
	m.Out.Feed(r.turn, r.mb.Flow(), m.Seat, nil, true)
}

// kick ends those whom the handler does not want any more.
func (r *Room) kick() {
	for len(r.kicked) > 0 && r.phase != ended {
		m := r.kicked[0]
		r.kicked = r.kicked[1:]
		if m.state.in() {
			r.left(m, codec.LeftKicked)
		}
	}
	r.kicked = nil
}

// left ends a member from the room's side.
func (r *Room) left(m *member, reason codec.LeftReason) {
	r.end(m)
	m.SendLeft(r.turn, reason)
	m.Ended()
}
