package actors

import (
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/supervision"
)

// Actor is the code of one actor. Its methods are called one at a time.
type Actor interface {
	// Started is the first call. c stays valid until Stopped returns, on the
	// actor's own calls only.
	Started(c *Context)

	// Receive handles the messages of one turn, until b.Next says false.
	Receive(b *mailbox.Batch)

	// Stopping says that the end has begun: there are no more messages, and the
	// children are stopped after it.
	Stopping()

	// Stopped is the last call: every child has ended. Stopping and Stopped come
	// even if Started panicked.
	Stopped()
}

// Parent is an Actor that may have children. It is told when one has ended, for
// whatever reason: the child's Stopped has returned by then.
type Parent interface {
	ChildStopped(child *Ref)
}

// Restarter is an Actor whose kind is restarted after a failure. Restart is the
// last call to the instance that failed: it lets go of what must not outlive it
// (timers) and gives its successor, which starts fresh once the children have
// ended. An actor without it, or one whose Restart panics, stops instead.
type Restarter interface {
	Restart() Actor
}

// Kind is what all actors of one kind share.
type Kind struct {
	Name string // for reports: "session", "room"
	Rule supervision.Rule
}
