package message

import (
	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/codec"
)

// Session is a session as its tenant knows it.
type Session interface {
	actors.Actor
	Mailbox() *mailbox.Mailbox
	Subject() string
	// Kick closes the session in order.
	Kick(cause codec.Cause)
	// Notice has the session look at what its engine says of itself.
	Notice()
}

// Attach brings a new session to its tenant, which starts it.
type Attach struct {
	Session Session
	// Replaces is the earlier connection's actor of the same session, if it is on
	// this node: it has been told that it was taken over, and does not count any
	// more. Nil: there is none.
	Replaces Session
	// Done is told once whether the session was started; it must not block.
	Done func(err *codec.Error)
}

// Disconnect closes the sessions of a subject, or all when it is empty. Done is
// told how many; it must not block.
type Disconnect struct {
	Subject string
	Cause   codec.Cause
	Done    func(sessions int)
}
