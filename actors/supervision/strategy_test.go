package supervision

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

type child struct {
	rule     Rule
	failures *Backoff
	calls    []string
}

func (c *child) Rule() *Rule { return &c.rule }
func (c *child) Failures() *Backoff {
	if c.failures == nil {
		b := c.rule.Backoff
		c.failures = &b
	}
	return c.failures
}
func (c *child) Stop()    { c.calls = append(c.calls, "stop") }
func (c *child) Restart() { c.calls = append(c.calls, "restart") }
func (c *child) Resume()  { c.calls = append(c.calls, "resume") }

type failure struct{ of any }

func (f failure) Failed() any { return f.of }

type clock struct {
	delay time.Duration
	f     func()
}

func (c *clock) After(d time.Duration, f func()) { c.delay, c.f = d, f }

type supervisor struct {
	actor.Supervisor
	stopped int
}

func (s *supervisor) StopChildren(...*actor.PID) { s.stopped++ }

func TestTheRuleOfTheKindDecides(t *testing.T) {
	limited := Backoff{Initial: time.Second, Cap: time.Second, MaxRestarts: 2, Window: time.Hour}
	tests := []struct {
		kind  string
		rule  Rule
		calls []string // of three failures
	}{
		{"session", Rule{Directive: Stop}, []string{"stop", "stop", "stop"}},
		{"room", Rule{Directive: Restart, Backoff: limited}, []string{"restart", "restart", "stop"}},
		{"tenant", Rule{Directive: Resume, Backoff: limited}, []string{"resume", "resume", "stop"}},
		{"bridge", Rule{Directive: Restart, Backoff: Backoff{Initial: time.Second, Window: time.Hour}}, []string{"restart", "restart", "restart"}},
		{"without a wait", Rule{Directive: Restart, Backoff: Backoff{Window: time.Hour}}, []string{"restart", "restart", "restart"}},
		{"no rule at all", Rule{}, []string{"stop", "stop", "stop"}},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			c, at := &child{rule: tt.rule}, &clock{}
			var decided []Decision
			s := &Strategy{Clock: at, Now: func() time.Time { return time.Unix(1e9, 0) }, Decided: func(d Decision) { decided = append(decided, d) }}
			for range 3 {
				before := len(c.calls)
				s.HandleFailure(nil, nil, nil, nil, failure{c}, nil)
				if at.f != nil {
					if len(c.calls) != before {
						t.Fatal("acted before the delay")
					}
					at.f()
					at.f = nil
				}
			}
			if fmt.Sprint(c.calls) != fmt.Sprint(tt.calls) {
				t.Fatalf("%v, want %v", c.calls, tt.calls)
			}
			for i, d := range decided {
				if d.Directive.String() != tt.calls[i] || d.GaveUp != (tt.rule.Directive != Stop && tt.calls[i] == "stop") {
					t.Fatalf("decision %d: %+v", i, d)
				}
			}
		})
	}
}

func TestAnUnknownFailureStopsTheChild(t *testing.T) {
	for _, reason := range []any{"text", nil, failure{nil}, failure{"no child"}} {
		sup := &supervisor{}
		(&Strategy{}).HandleFailure(nil, sup, nil, nil, reason, nil)
		if sup.stopped != 1 {
			t.Fatalf("%v: stopped %d", reason, sup.stopped)
		}
	}
}
