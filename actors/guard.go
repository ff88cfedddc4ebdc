package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/supervision"
)

// guard is what protoactor knows as the actor. It translates the calls, and
// keeps panics away from protoactor where protoactor does not survive them.
type guard struct{ c *Context }

var (
	_ actor.Actor       = (*guard)(nil)
	_ supervision.Child = (*guard)(nil)
)

// Receive is protoactor's. Messages that nobody of ours sends are ignored.
func (g *guard) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *mailbox.Batch:
		g.c.actor.Receive(msg)
	case *actor.Started:
		g.started(ctx)
	case *actor.Terminated:
		g.childStopped(msg.Who)
	case *actor.Restarting:
		g.restarting()
	case *actor.Stopping:
		g.c.close()
		g.protect("stopping", g.c.actor.Stopping)
	case *actor.Stopped:
		g.protect("stopped", g.c.actor.Stopped)
		g.c.actor, g.c.family = nil, nil
		g.c.system.stopped(g.c, ctx.Parent().Address == actorAddress)
	}
}

// started lets a panic through: an actor that could not start has failed, and
// protoactor survives it here.
func (g *guard) started(ctx actor.Context) {
	if g.c == g.c.system.unbound {
		g.c = g.c.system.successor(ctx.Self())
		if g.c.actor == nil {
			g.c.actor = nothing{}
			g.c.ref.Stop()
		}
	}
	if _, ok := g.c.actor.(Parent); ok {
		g.c.family = newFamily(g.c, ctx)
	}
	g.c.actor.Started(g.c)
}

func (g *guard) childStopped(pid *actor.PID) {
	child := g.c.system.buried(pid)
	if child == nil {
		return
	}
	g.c.family.remove(child)
	g.protect("child stopped", func() { g.c.actor.(Parent).ChildStopped(&child.ref) })
	g.c.family.ended()
}

// restarting asks for the successor now, but the old instance is still the one
// to be told of its children's ends.
func (g *guard) restarting() {
	g.c.close()
	var next Actor
	if r, ok := g.c.actor.(Restarter); ok {
		g.protect("restart", func() { next = r.Restart() })
	}
	g.c.system.restarting(g.c, next)
}

// protect runs a callback and reports its panic instead of passing it on.
func (g *guard) protect(callback string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			g.c.system.report(Failure{Kind: g.c.kind.Name, Callback: callback, Panic: mailbox.NewPanic(r, g)})
		}
	}()
	f()
}

// Rule, Failures, Stop, Restart and Resume are the supervisor's view.

func (g *guard) Rule() *supervision.Rule { return &g.c.kind.Rule }

func (g *guard) Failures() *supervision.Backoff { return g.c.system.failuresOf(g.c) }

func (g *guard) Stop()    { g.c.ref.Stop() }
func (g *guard) Restart() { g.c.ref.PostSystemMessage(&actor.Restart{}) }
func (g *guard) Resume()  { g.c.ref.PostSystemMessage(&actor.ResumeMailbox{}) }

// nothing takes the place of a successor that could not be made, until the stop
// that follows at once.
type nothing struct{}

func (nothing) Started(*Context)       {}
func (nothing) Receive(*mailbox.Batch) {}
func (nothing) Stopping()              {}
func (nothing) Stopped()               {}
