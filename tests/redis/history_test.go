package redis_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// history is what publishers were told, and when which fault lost history.
type history struct {
	mu sync.Mutex
	// guarded by mu
	accepted map[codec.Topic]map[string]codec.Position
	unknown  int // publications that were given up
}

func (h *history) total() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, accepted := range h.accepted {
		n += len(accepted)
	}
	return n
}

// check compares what one follower had with what was accepted.
func (h *history) check(t *testing.T, topic codec.Topic, f *bridgetest.Follower, lossless bool) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	resets := f.Resets()
	if lossless && len(resets) > 0 {
		t.Errorf("%v: reset though nothing was lost: %v", topic, resets)
	}
	log := f.Log()
	seen := map[string]bool{}
	for i, e := range log {
		for len(resets) > 0 && resets[0].Length < i {
			resets = resets[1:]
		}
		anew := len(resets) > 0 && resets[0].Length == i
		if i > 0 && !anew && e.Position.Offset != log[i-1].Position.Offset+1 {
			t.Fatalf("%v: %v after %v, and no reset", topic, e.Position, log[i-1].Position)
		}
		if anew {
			clear(seen) // with the history its dedup keys were lost
		}
		if seen[e.EID] {
			t.Fatalf("%v: %s came twice", topic, e.EID)
		}
		seen[e.EID] = true
	}
	if !lossless {
		return
	}
	for eid, at := range h.accepted[topic] {
		if !seen[eid] {
			t.Fatalf("%v: %s was accepted at %v, and never came", topic, eid, at)
		}
	}
}

// Nodes, rooms and publishers who repeat by key, while connections are cut, the server is
// frozen, and bounced with everything on disk: of all that was accepted nothing is missing, comes
// twice or in another order, and nobody is reset. Then it loses everything, now and then: nobody
// misses anything in silence.
func TestHistoriesThroughFaults(t *testing.T) {
	for _, c := range []struct {
		name     string
		lossless bool
		faults   []string
	}{
		{"nothing is lost", true, []string{"cut", "links", "pause", "bounce", "scripts", "cut", "refuse"}},
		{"everything is lost", false, []string{"flush", "cut", "flush", "links", "meta", "flush"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := server.Start(t, "--appendonly", "yes", "--appendfsync", "always")
			p := server.NewProxy(t, s.Address())
			var nodes []*redis.Bridge
			for range 3 {
				nodes = append(nodes, node(t, p.Address()))
			}
			topics := topicsOf(6)
			h := &history{accepted: map[codec.Topic]map[string]codec.Position{}}
			followers := map[codec.Topic][]*bridgetest.Follower{}
			for _, topic := range topics {
				h.accepted[topic] = map[string]codec.Position{}
				for _, n := range nodes {
					followers[topic] = append(followers[topic], follow(t, n, topic))
				}
			}
			stop := make(chan struct{})
			var publishers sync.WaitGroup
			for i, topic := range topics {
				for w := range 2 {
					publishers.Go(func() { h.publish(t, nodes[(i+w)%len(nodes)], topic, stop) })
				}
			}
			random := rand.New(rand.NewPCG(1, uint64(len(c.name))))
			for _, fault := range c.faults {
				<-time.After(time.Duration(50+random.IntN(150)) * time.Millisecond)
				switch fault {
				case "cut":
					p.Cut()
				case "links":
					p.CutLinks()
				case "pause":
					s.Pause()
					<-time.After(700 * time.Millisecond)
					s.Resume()
				case "bounce":
					s.Kill()
					<-time.After(300 * time.Millisecond)
					s.Restart()
				case "scripts":
					s.Do("SCRIPT", "FLUSH")
				case "refuse":
					p.Refuse(true)
					p.Cut()
					<-time.After(400 * time.Millisecond)
					p.Refuse(false)
				case "flush":
					s.Flush()
				case "meta":
					s.Do("DEL", "pulse:meta:acme:chat:1")
				}
			}
			eventually(t, "a hundred publications", func() bool { return h.total() >= 100 })
			close(stop)
			publishers.Wait()
			for _, n := range nodes {
				until(t, n, bridge.Up)
			}
			for _, topic := range topics {
				last := fill(t, nodes[0], topic, 1)
				for _, f := range followers[topic] {
					meet(t, f, fmt.Sprintf("%v of %v", last, topic), func(p codec.Position, _ int) bool { return p == last })
					h.check(t, topic, f, c.lossless)
				}
			}
			if h.unknown > 0 && c.lossless {
				t.Errorf("%d given up", h.unknown)
			}
			t.Logf("%d accepted", h.total())
		})
	}
}

// publish goes on until stop, and repeats what was not answered under its key.
func (h *history) publish(t *testing.T, b bridge.Broker, topic codec.Topic, stop <-chan struct{}) {
	for {
		pub := kept(topic)
		for try := 0; ; try++ {
			select {
			case <-stop:
				return
			default:
			}
			got := receive(t, send(b, topic, pub), "an answer")[0]
			if got.Err == nil {
				h.mu.Lock()
				h.accepted[topic][got.EID] = got.Position
				h.mu.Unlock()
				break
			}
			if !got.Err.Code.Retryable() || try == 20 {
				h.mu.Lock()
				h.unknown++
				h.mu.Unlock()
				break
			}
		}
		<-time.After(time.Millisecond)
	}
}
