package actors

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/supervision"
)

// Config is what a System is made of.
type Config struct {
	Logger *slog.Logger      // nil: no log
	Clock  supervision.Clock // delays restarts

	// Failed is told of every panic in an actor, on the goroutine that found
	// it; it must not block. Nil: nobody counts.
	Failed func(Failure)
}

// Failure is one panic in an actor's code.
type Failure struct {
	Kind  string // of the actor
	Panic *mailbox.Panic

	// Callback is empty for a failure of the actor, about which was decided
	// what the other fields say. Else it names the callback in which the panic
	// was recovered: "stopping", "stopped", "restart" or "child stopped". It had
	// no other consequence.
	Callback  string
	Directive supervision.Directive
	GaveUp    bool // stopped because the rule's limit was reached
}

// System holds the actors of one engine.
type System struct {
	// immutable
	proto    *actor.ActorSystem
	props    *actor.Props // of actors
	place    *actor.Props // of children in the place of a family
	root     *actor.RootContext
	strategy *supervision.Strategy
	failed   func(Failure)
	unbound  *Context      // of a guard that does not yet know its actor
	done     chan struct{} // closed when the last actor after Close has ended

	// guarded by mu
	mu         sync.Mutex
	spawning   *Context // the actor that protoactor is making just now
	table      table    // of all whose PIDs may be sent something
	successors map[*Context]Actor
	failures   map[*Context]*supervision.Backoff // of those that have failed
	live       int
	closed     bool
}

// NewSystem makes a System without actors.
func NewSystem(cfg Config) *System {
	s := &System{
		failed:     cfg.Failed,
		done:       make(chan struct{}),
		successors: make(map[*Context]Actor),
		failures:   make(map[*Context]*supervision.Backoff),
	}
	s.unbound = &Context{system: s}
	s.strategy = &supervision.Strategy{Clock: cfg.Clock, Now: time.Now, Decided: s.decided}
	s.props, s.place = newProps(s), newPlace()

	s.proto = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return discreet(cfg.Logger)
	}))
	// protoactor subscribes a dead letter log to its event stream, whose throttle
	// starts a goroutine that nobody owns and that outlives the system. Nothing
	// of ours uses the stream, so it gets an empty one.
	s.proto.EventStream = zero(s.proto.EventStream)
	// Of its registry nothing is used but the guardian's entry: 3 MB less.
	registry := s.proto.ProcessRegistry
	registry.LocalPIDs.LocalPIDs = slices.Clone(registry.LocalPIDs.LocalPIDs[:1])
	registry.RegisterAddressResolver(s.process)
	s.root = s.proto.Root.Copy().WithGuardian(s.strategy)
	s.root.Self() // makes the guardian here, once; two spawns at a time would make two
	return s
}

// zero is a new zero value of p's type, which is of a package that is not
// imported for its name alone.
func zero[T any](_ *T) *T { return new(T) }

// SpawnRoot starts a as an actor without a parent. Callable from any goroutine.
func (s *System) SpawnRoot(k *Kind, a Actor, m *mailbox.Mailbox) (*Ref, error) {
	c := &Context{system: s, kind: k, actor: a, ref: Ref{Mailbox: m}}
	if err := s.spawn(s.root, c); err != nil {
		return nil, err
	}
	return &c.ref, nil
}

// Close refuses new actors from here on. It stops none: who started the roots
// knows their order. The channel is closed when every actor's Stopped has
// returned. Calling it again gives the same channel.
func (s *System) Close() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.finish()
	}
	return s.done
}

// Live is the number of actors that have not ended.
func (s *System) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// stopped forgets an actor whose Stopped has returned, unless it is a child: its
// parent is told of it by its PID.
func (s *System) stopped(c *Context, child bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.successors, c)
	delete(s.failures, c)
	if !child {
		s.table.remove(c)
	}
	s.live--
	s.finish()
}

// buried forgets the child that pid was of, and returns it; nil: it was of a family.
func (s *System) buried(pid *actor.PID) *Context {
	if pid.Address != actorAddress {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	child := s.table.find(pid)
	s.table.remove(child)
	return child
}

func (s *System) finish() {
	if s.closed && s.live == 0 {
		close(s.done)
	}
}

// restarting keeps the next instance until protoactor starts it.
func (s *System) restarting(c *Context, next Actor) {
	s.mu.Lock()
	s.successors[c] = next
	s.mu.Unlock()
}

// successor is the actor that restarts under pid, its next instance in place.
func (s *System) successor(pid *actor.PID) *Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.table.find(pid)
	c.actor = s.successors[c]
	delete(s.successors, c)
	return c
}

// failuresOf are those of an actor, which its supervisor alone looks at.
func (s *System) failuresOf(c *Context) *supervision.Backoff {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.failures[c]
	if b == nil {
		b = new(supervision.Backoff)
		*b = c.kind.Rule.Backoff
		s.failures[c] = b
	}
	return b
}

// decided reports what the strategy decided about a failed actor.
func (s *System) decided(d supervision.Decision) {
	g := d.Child.(*guard)
	s.report(Failure{
		Kind: g.c.kind.Name, Panic: d.Reason.(*mailbox.Panic), Directive: d.Directive, GaveUp: d.GaveUp,
	})
}

func (s *System) report(f Failure) {
	if s.failed != nil {
		s.failed(f)
	}
}
