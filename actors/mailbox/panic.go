package mailbox

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// Panic stands for a recovered panic. It keeps the value's type and the stack,
// never the value: what a handler panics with may hold a token or a body, and
// protoactor logs the reason of every failure.
type Panic struct {
	Type  string
	Stack []byte
	actor actor.Actor
}

// NewPanic describes the panic value r; call it in the deferred function that
// recovered r, so that the stack still shows where it was raised. a is the
// actor whose code panicked.
func NewPanic(r any, a actor.Actor) *Panic {
	return &Panic{Type: fmt.Sprintf("%T", r), Stack: debug.Stack(), actor: a}
}

// Failed is the actor that panicked, as its supervisor has to know it.
func (p *Panic) Failed() any { return p.actor }

func (p *Panic) Error() string { return "mailbox: panic with a " + p.Type }

// LogValue keeps the stack readable in a log of any format.
func (p *Panic) LogValue() slog.Value {
	return slog.GroupValue(slog.String("type", p.Type), slog.String("stack", string(p.Stack)))
}
