package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/actors/mailbox"
)

// Ref is how an actor is reached, from any goroutine and also after its end.
// Data goes through the embedded mailbox; the PID is for protoactor alone.
type Ref struct {
	*mailbox.Mailbox
	PID *actor.PID
}

// Stop ends the actor and, before its own end, its children. It returns at
// once; posts are told Closed from here on. Stopping again does nothing.
func (r *Ref) Stop() { Stop(r.Mailbox) }

// Stop is Ref.Stop for who knows the actor by its mailbox.
func Stop(m *mailbox.Mailbox) { m.PostSystemMessage(&actor.Stop{}) }
