package actors

import (
	"log/slog"
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
	Ref   *Ref
	Panic *mailbox.Panic

	// Callback is empty for a failure of the actor, about which was decided
	// what the other fields say. Else it names the callback in which the panic
	// was recovered: "stopping", "stopped", "restart" or "child stopped". It had
	// no other consequence.
	Callback  string
	Directive supervision.Directive
	Delay     time.Duration // before a restart
	GaveUp    bool          // stopped because the rule's limit was reached
}

// System holds the actors of one engine.
type System struct {
	// immutable
	props    *actor.Props
	root     *actor.RootContext
	strategy *supervision.Strategy
	failed   func(Failure)
	unbound  *Context      // of a guard that does not yet know its actor
	done     chan struct{} // closed when the last actor after Close has ended

	// guarded by mu
	mu          sync.Mutex
	incarnation uint64
	spawning    *Context // the actor that protoactor is making just now
	successors  map[string]incarnate
	live        int
	closed      bool
}

// incarnate is an actor between the failed instance and the next.
type incarnate struct {
	c    *Context
	next Actor
}

// NewSystem makes a System without actors.
func NewSystem(cfg Config) *System {
	s := &System{
		failed:     cfg.Failed,
		done:       make(chan struct{}),
		successors: make(map[string]incarnate),
	}
	s.unbound = &Context{system: s}
	s.strategy = &supervision.Strategy{Clock: cfg.Clock, Now: time.Now, Decided: s.decided}
	s.props = newProps(s)

	proto := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return discreet(cfg.Logger)
	}))
	// protoactor subscribes a dead letter log to its event stream, whose throttle
	// starts a goroutine that nobody owns and that outlives the system. Nothing
	// of ours uses the stream, so it gets an empty one.
	proto.EventStream = zero(proto.EventStream)
	s.root = proto.Root.Copy().WithGuardian(s.strategy)
	s.root.Self() // makes the guardian here, once; two spawns at a time would make two
	return s
}

// zero is a new zero value of p's type, which is of a package that is not
// imported for its name alone.
func zero[T any](_ *T) *T { return new(T) }

// SpawnRoot starts a as an actor without a parent. The name is for logs and may
// repeat. Callable from any goroutine.
func (s *System) SpawnRoot(k *Kind, name string, a Actor, m *mailbox.Mailbox) (*Ref, error) {
	return s.spawn(s.root, k, name, a, m)
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

// stopped forgets an actor whose Stopped has returned.
func (s *System) stopped(c *Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.successors, c.ref.PID.Id)
	s.ended()
}

// ended counts one actor less. Under mu.
func (s *System) ended() {
	s.live--
	s.finish()
}

func (s *System) finish() {
	if s.closed && s.live == 0 {
		close(s.done)
	}
}

// restarting keeps the next instance until protoactor starts it.
func (s *System) restarting(c *Context, next Actor) {
	s.mu.Lock()
	s.successors[c.ref.PID.Id] = incarnate{c, next}
	s.mu.Unlock()
}

// successor is the actor that restarts under pid, its next instance in place.
func (s *System) successor(pid *actor.PID) *Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.successors[pid.Id]
	delete(s.successors, pid.Id)
	i.c.actor = i.next
	return i.c
}

// decided reports what the strategy decided about a failed actor.
func (s *System) decided(d supervision.Decision) {
	g := d.Child.(*guard)
	s.report(Failure{
		Kind: g.c.kind.Name, Ref: &g.c.ref, Panic: d.Reason.(*mailbox.Panic),
		Directive: d.Directive, Delay: d.Delay, GaveUp: d.GaveUp,
	})
}

func (s *System) report(f Failure) {
	if s.failed != nil {
		s.failed(f)
	}
}
