package supervision

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Directive is what a rule wants done with an actor that panicked.
type Directive uint8

const (
	Stop    Directive = iota // it ends; the zero value, since it is always safe
	Restart                  // a new instance takes over after the rule's wait
	Resume                   // the same instance goes on with the next message
)

func (d Directive) String() string {
	switch d {
	case Stop:
		return "stop"
	case Restart:
		return "restart"
	case Resume:
		return "resume"
	}
	return "unknown"
}

// Rule is the answer for one kind of actor. Backoff limits how often Restart
// and Resume are granted (beyond: Stop), and delays Restart.
type Rule struct {
	Directive Directive
	Backoff   Backoff
}

// Child is a supervised actor as the strategy sees it. Rule and Failures are
// called on the supervisor's turn only; Restart and Resume from any goroutine.
type Child interface {
	Rule() *Rule
	Failures() *Backoff // this child's own copy of the rule's Backoff
	Stop()
	Restart() // does nothing when the child has ended
	Resume()
}

// Failure is a reason for which protoactor may ask the strategy: the recovered
// panic, which knows the actor that it happened in.
type Failure interface {
	Failed() any
}

// Decision is what was decided about one failure.
type Decision struct {
	Child     Child
	Reason    Failure
	Directive Directive
	Delay     time.Duration // before a Restart
	GaveUp    bool          // the rule's limit turned the directive into Stop
}

// Clock runs f once, after d, on a goroutine that f must not hold up.
type Clock interface {
	After(d time.Duration, f func())
}

// Strategy supervises every actor of the engine. Its fields are immutable after
// the first use, and it may be used from any number of goroutines.
type Strategy struct {
	Clock   Clock
	Now     func() time.Time
	Decided func(Decision) // told of every decision, on the supervisor's turn; may be nil
}

var _ actor.SupervisorStrategy = (*Strategy)(nil)

// HandleFailure is protoactor's. A failure that is not of a child of ours ends
// the child: nothing is known about it that would make going on safe. Escalation
// is never an answer, because protoactor's guardian panics at it.
func (s *Strategy) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, pid *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	failure, ok := reason.(Failure)
	if !ok {
		supervisor.StopChildren(pid)
		return
	}
	child, ok := failure.Failed().(Child)
	if !ok {
		supervisor.StopChildren(pid)
		return
	}
	d := decide(child, s.Now())
	d.Reason = failure
	if s.Decided != nil {
		s.Decided(d)
	}
	switch {
	case d.Directive == Stop:
		child.Stop()
	case d.Directive == Resume:
		child.Resume()
	case d.Delay > 0:
		s.Clock.After(d.Delay, child.Restart)
	default:
		child.Restart()
	}
}

func decide(child Child, now time.Time) Decision {
	d := Decision{Child: child, Directive: child.Rule().Directive}
	if d.Directive == Stop {
		return d
	}
	delay, ok := child.Failures().Next(now)
	switch {
	case !ok:
		d.Directive, d.GaveUp = Stop, true
	case d.Directive == Restart:
		d.Delay = delay
	}
	return d
}
