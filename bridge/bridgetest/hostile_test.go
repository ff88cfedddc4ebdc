package bridgetest_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var room = codec.Topic{Tenant: "acme", Room: "chat:1"}

// tally counts what a sink gets.
type tally struct {
	mu                       sync.Mutex
	subscribed, arrived, gap int
	head                     codec.Position // of the last gap
	last                     uint64         // offset of the last arrival
	inverted                 bool           // a lower one came after a higher
}

func (s *tally) Subscribed(codec.Position, *codec.Error) { s.mu.Lock(); s.subscribed++; s.mu.Unlock() }
func (s *tally) Arrived(b bridge.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived += len(b.Events)
	for _, e := range b.Events {
		s.inverted = s.inverted || e.Position.Offset < s.last
		s.last = e.Position.Offset
	}
}
func (s *tally) Gap(head codec.Position) {
	s.mu.Lock()
	s.gap, s.head = s.gap+1, head
	s.mu.Unlock()
}

// Each kind of harm alone, at 100 percent, so that none of them is a no-op.
func TestHostileDoesEachHarm(t *testing.T) {
	for _, c := range []struct {
		name         string
		options      bridgetest.HostileOptions
		arrived      int
		gaps         bool
		unavailables int
	}{
		{"none", bridgetest.HostileOptions{}, 10, false, 0},
		{"late", bridgetest.HostileOptions{Delay: time.Second}, 10, false, 0},
		{"drops", bridgetest.HostileOptions{Delay: time.Second, Drop: 100}, 0, true, 0},
		{"repeats", bridgetest.HostileOptions{Delay: time.Second, Repeat: 100}, 20, false, 0},
		{"loses replies", bridgetest.HostileOptions{Delay: time.Second, LoseReply: 100}, 10, false, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bridgetest.Hostile(memory.New(memory.Config{}), 1, c.options)
				defer b.Close()
				s := &tally{}
				b.Subscribe(room, s)
				unavailables, inverted, last := 0, false, -1
				for i := range 10 {
					p := bridge.Publication{Event: codec.NewEvent(room, "e", codec.Data{}, codec.Origin{}), Buffered: true}
					b.Publish(room, bridge.Retention{Events: 100}, []bridge.Publication{p}, func(got []bridge.Published) {
						s.mu.Lock()
						defer s.mu.Unlock()
						if got[0].Err != nil {
							unavailables++
						}
						inverted = inverted || i < last
						last = i
					})
				}
				time.Sleep(5 * time.Second) // in the bubble: everything late has come
				synctest.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.subscribed != 1 || s.arrived != c.arrived || s.gap > 0 != c.gaps || unavailables != c.unavailables {
					t.Errorf("subscribed %d, arrived %d, gaps %d, unavailable %d", s.subscribed, s.arrived, s.gap, unavailables)
				}
				if s.inverted != (c.options.Repeat > 0) {
					t.Errorf("arrivals out of order: %v", s.inverted)
				}
				if c.gaps && s.head.Offset != 10 {
					t.Errorf("the last gap says %v", s.head)
				}
				if inverted != (c.options.Delay > 0) {
					t.Errorf("completions out of order: %v", inverted)
				}
			})
		})
	}
}

// The same seed and calls give the same harm.
func TestHostileFollowsItsSeed(t *testing.T) {
	run := func(seed uint64) (lost []int) {
		b := bridgetest.Hostile(memory.New(memory.Config{}), seed, bridgetest.HostileOptions{LoseReply: 50})
		defer b.Close()
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 64 {
			all.Add(1)
			b.Publish(room, bridge.Retention{}, []bridge.Publication{{Event: codec.NewEvent(room, "e", codec.Data{}, codec.Origin{})}},
				func(p []bridge.Published) {
					defer all.Done()
					mu.Lock()
					defer mu.Unlock()
					if p[0].Err != nil {
						lost = append(lost, i)
					}
				})
		}
		all.Wait()
		return lost
	}
	a, b, other := run(7), run(7), run(8)
	if len(a) == 0 || len(a) == 64 || !slices.Equal(a, b) || slices.Equal(a, other) {
		t.Errorf("seed 7: %v, again %v, seed 8: %v", a, b, other)
	}
}
