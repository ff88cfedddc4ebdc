package bridge_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
)

// States are metric labels: each its own, and nothing beyond.
func TestStateNames(t *testing.T) {
	for s, want := range map[bridge.State]string{
		bridge.Connecting: "connecting", bridge.Up: "up", bridge.Degraded: "degraded", bridge.Down: "down", 200: "unknown",
	} {
		if got := s.String(); got != want {
			t.Errorf("State(%d) is %q, want %q", s, got, want)
		}
	}
}

// Clients are told that events may be late where they may be, and not for what
// does not concern them.
func TestStatesThatAreLive(t *testing.T) {
	for s, want := range map[bridge.State]bool{
		bridge.Connecting: false, bridge.Up: true, bridge.Degraded: true, bridge.Down: false, 200: false,
	} {
		if got := s.Live(); got != want {
			t.Errorf("%v: live %v", s, got)
		}
	}
}

// A watcher hears of the present state at once, of the latest in the end, in one
// call at a time, and of nothing once it has stopped.
func TestConditionTellsTheLatestLast(t *testing.T) {
	var c bridge.Condition
	c.Set(bridge.Health{State: bridge.Up})
	var got []bridge.State
	var stopped []bridge.State
	stop := c.Watch(func(h bridge.Health) { stopped = append(stopped, h.State) })
	c.Watch(func(h bridge.Health) {
		got = append(got, h.State)
		if len(got) == 1 { // two changes while it is told of the first: the latest counts
			c.Set(bridge.Health{State: bridge.Degraded})
			c.Set(bridge.Health{State: bridge.Down})
		}
	})
	stop()
	c.Set(bridge.Health{State: bridge.Up})
	if want := []bridge.State{bridge.Up, bridge.Down, bridge.Up}; !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	if want := []bridge.State{bridge.Up, bridge.Degraded, bridge.Down}; !slices.Equal(stopped, want) {
		t.Errorf("who has stopped was told %v, want %v", stopped, want)
	}
	if c.Health().State != bridge.Up {
		t.Error(c.Health())
	}
}

// Whoever sets meanwhile, calls do not overlap, and nobody is left with what is
// outdated.
func TestConditionUnderConcurrency(t *testing.T) {
	var c bridge.Condition
	var inside atomic.Int32
	var last atomic.Pointer[bridge.Health]
	c.Watch(func(h bridge.Health) {
		if inside.Add(1) > 1 {
			t.Error("two calls at once")
		}
		last.Store(&h)
		inside.Add(-1)
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 500 {
				c.Set(bridge.Health{State: bridge.State(i % 4)})
			}
		})
	}
	wg.Wait()
	if *last.Load() != c.Health() {
		t.Errorf("told %v last, is %v", *last.Load(), c.Health())
	}
}
