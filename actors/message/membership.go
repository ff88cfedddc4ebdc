package message

import (
	"sync/atomic"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// Bits of a membership's signal to its room.
const (
	Want    uint32 = 1 << iota // the member's queue has place, and it is behind
	Leave                      // the client leaves, and waits for the reply
	Gone                       // the session has ended
	Lost                       // as Gone, but its client may come back
	Forbid                     // the session has lost the right to be in the room
	Dropped                    // its join has left the room's mailbox unhandled, and was answered
)

// Membership is one session's being joined to one room, as both actors know it.
// The session makes it and posts it with Join; a later join of the same room
// makes another, of a later generation.
//
// It holds the one slot that it has reserved in either mailbox: a signal that
// is raised however often, and cannot be refused. So there are no ghosts.
type Membership struct {
	// immutable once posted
	Topic  codec.Topic
	Policy *Policy
	Out    *mailbox.Outbound
	Seat   mailbox.Seat
	// Presence: the member wants to see who else is in the room.
	Presence bool
	// Early: publishes of this membership go the way of its join, which they must
	// not overtake, because the first went before the room had answered it. Owned by
	// the session.
	Early bool
	// Speaks: an Authorizer has allowed all that this membership publishes, under the
	// credentials of now. Owned by the session.
	Speaks  bool
	Subject string
	Session string

	room   *mailbox.Mailbox
	toRoom mailbox.Signal // the bits above
	left   mailbox.Signal // the room ended it

	// atomic
	leaveID atomic.Uint64
	joined  atomic.Bool

	// Connection rises with every connection of the session: a room may hear of an
	// earlier one's last join after the next one's first. Immutable as those above; here
	// it takes no space.
	Connection uint32

	// Place is the room's own record of the member; owned by the room.
	Place any
	// Next of the session's memberships; owned by the session.
	Next *Membership
}

// Bind says which room's mailbox the membership is posted to, before it is.
func (m *Membership) Bind(room *mailbox.Mailbox) {
	m.room = room
	m.toRoom.Init(m)
	m.left.Init(m)
	m.Out.Join(m.Seat, room, &m.toRoom, Want)
}

// In tells whether it was posted to that mailbox, whose room alone may touch Place.
func (m *Membership) In(room *mailbox.Mailbox) bool { return m.room == room }

// Joined tells whether the room has taken the member.
func (m *Membership) Joined() bool { return m.joined.Load() }

// SetJoined is the room's.
func (m *Membership) SetJoined(joined bool) { m.joined.Store(joined) }

// Leave asks the room to end the membership and to answer the request id. If
// the room is gone it is answered here.
func (m *Membership) Leave(t *scheduler.Turn, id uint64) {
	m.leaveID.Store(id)
	if !m.room.Raise(&m.toRoom, Leave) {
		m.ReplyLeave(t)
	}
}

// Gone tells the room that the session has ended.
func (m *Membership) Gone() { m.room.Raise(&m.toRoom, Gone) }

// Lost tells the room that the session's connection has ended without a word.
func (m *Membership) Lost() { m.room.Raise(&m.toRoom, Lost) }

// Forbid tells the room that the session may not be in it any more.
func (m *Membership) Forbid() { m.room.Raise(&m.toRoom, Forbid) }

// Dropped tells the room, if it goes on, that it will not see the join.
func (m *Membership) Dropped() bool { return m.room.Raise(&m.toRoom, Dropped) }

// Ended tells the session that the room has ended the membership.
func (m *Membership) Ended() { m.Out.Mailbox().Raise(&m.left, 1) }

// ReplyLeave answers Leave; nothing of the membership follows it.
func (m *Membership) ReplyLeave(t *scheduler.Turn) {
	f := codec.NewFrame(&codec.Reply{ID: m.leaveID.Load(), OK: &codec.LeaveResult{Room: m.Topic.Room}})
	m.Out.Reply(t, m.Policy.Lane, f, m.Over(), true)
}

// SendLeft tells the client that the room ended the membership; nothing of it
// follows.
func (m *Membership) SendLeft(t *scheduler.Turn, reason codec.LeftReason) {
	f := codec.NewFrame(&codec.Left{Room: m.Topic.Room, Reason: reason})
	m.Out.Mark(t, m.Policy.Lane, f, m.Over())
}

// Over is the seat of the generation in which nothing is ever sent, between this one and
// the next.
func (m *Membership) Over() mailbox.Seat {
	return mailbox.Seat{Slot: m.Seat.Slot, Gen: m.Seat.Gen + 1}
}

// NextGeneration is the generation of a membership that comes after gen in a
// slot: the one between them ends the earlier.
func NextGeneration(gen uint32) uint32 { return gen + 2 }

// Join asks a room to take a member.
type Join struct {
	M           *Membership
	ID          uint64
	Position    codec.Position
	HasPosition bool
	Data        codec.Data
	// Replaces is the session's earlier membership of the room, if any.
	Replaces *Membership
	// Hello is set for a join that is part of a hello; it is told the result,
	// and nothing is sent.
	Hello *HelloJoin
}

// HelloJoin is how a join of a hello is answered: the room fills it in and
// raises it in the session's mailbox.
type HelloJoin struct {
	Index int // in the hello's list
	OK    *codec.JoinResult
	Err   *codec.Error

	session *mailbox.Mailbox
	done    mailbox.Signal
}

// NewHelloJoin makes the answer's place for the join at index.
func NewHelloJoin(session *mailbox.Mailbox, index int) *HelloJoin {
	h := &HelloJoin{Index: index, session: session}
	h.done.Init(h)
	return h
}

// Answer tells the result, once.
func (j *Join) Answer(t *scheduler.Turn, ok *codec.JoinResult, err *codec.Error) {
	if j.Hello != nil {
		j.Hello.OK, j.Hello.Err = ok, err
		j.Hello.session.Raise(&j.Hello.done, 1)
		return
	}
	reply := &codec.Reply{ID: j.ID, Err: err}
	if err == nil {
		reply.OK = ok
	}
	j.M.Out.Reply(t, j.M.Policy.Lane, codec.NewFrame(reply), j.M.Seat, true)
}

// Size is what the message counts in a queue.
func (j *Join) Size() int { return 64 + len(j.M.Topic.Room) + j.Data.Len() }

// Unavailable is the refusal of what could not be served in time, or in a room
// that has just ended.
func Unavailable(scope codec.Scope) *codec.Error {
	return codec.Retry(codec.CodeUnavailable, scope, retrySoon, "not available now")
}

// Refusal translates what a queue said into what a client is told.
func Refusal(o backpressure.Outcome, scope codec.Scope) *codec.Error {
	switch o {
	case backpressure.Expired:
		return ErrExpired
	case backpressure.TooLarge:
		return codec.NewError(codec.CodeTooLarge, "larger than the queue can hold")
	case backpressure.QuotaExceeded:
		return codec.Retry(codec.CodeQuotaExceeded, scope, retrySoon, "quota used up")
	case backpressure.RateLimited:
		return codec.Retry(codec.CodeRateLimited, scope, retrySoon, "too many at once")
	case backpressure.Closed, backpressure.Unavailable:
		return Unavailable(scope)
	}
	return codec.Retry(codec.CodeBackpressured, scope, retrySoon, "queue full")
}
