package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	membridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// crossing are kinds whose buffered events, and with them all replies and ends of
// memberships, go in each lane, beside events in every other.
func crossing(history int, census *census) (kinds []room.Kind) {
	for _, l := range []backpressure.Lane{backpressure.Interactive, backpressure.Bulk, backpressure.Lossy} {
		kinds = append(kinds, room.Kind{
			Name:    l.String(),
			New:     func() room.Handler { return census },
			History: room.History{Events: history, Bytes: 1 << 20, Age: time.Hour},
			Events: map[string]room.EventPolicy{
				"kept": {Delivery: room.AtLeastOnce, Lane: l},
				"i":    {Delivery: room.Transient, Lane: backpressure.Interactive, Overflow: backpressure.DropOldest},
				"b":    {Delivery: room.AtMostOnce, Lane: backpressure.Bulk},
				"l":    {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.DropOldest},
				"who":  {Delivery: room.Transient, Lane: backpressure.Interactive},
				"c":    {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.CoalesceLatest, CoalesceBy: "session"},
			},
		})
	}
	return kinds
}

// census is a handler, of all rooms at once, that is told by an event "who" to say
// who is there.
type census struct {
	mu    sync.Mutex
	rooms map[string][]string // subjects, sorted
}

func (c *census) Publish(ctx *room.Context, e *room.Event) error {
	if e.Name != "who" {
		return nil
	}
	var list []string
	for _, m := range ctx.Members() {
		list = append(list, m.Subject)
	}
	slices.Sort(list)
	c.mu.Lock()
	c.rooms[ctx.Room()] = list
	c.mu.Unlock()
	return nil
}

// check asks until the rooms' members are those who think that they are.
func (c *census) check(t *testing.T, e *Engine, rooms []string, audits []*audit) {
	t.Helper()
	want := map[string][]string{}
	for _, name := range rooms {
		want[name] = nil
		for _, a := range audits {
			if a.rooms[name] != nil {
				want[name] = append(want[name], a.subject())
			}
		}
		slices.Sort(want[name])
	}
	var got string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		for _, name := range rooms {
			e.publish(t, "acme", name, "who", nil)
		}
		c.mu.Lock()
		got = fmt.Sprint(c.rooms)
		c.mu.Unlock()
		if got == fmt.Sprint(want) {
			return
		}
	}
	t.Errorf("the rooms have %v, their members are %v", got, want)
}

// brokers are what the tests of order run over: a way as good as can be, and ways
// as bad as allowed.
func brokers(seeds int) map[string]func(t *testing.T) bridge.Broker {
	b := map[string]func(*testing.T) bridge.Broker{"memory": func(*testing.T) bridge.Broker { return nil }}
	for seed := range seeds {
		b[fmt.Sprint("hostile", seed)] = func(t *testing.T) bridge.Broker {
			h := bridgetest.Hostile(membridge.New(membridge.Config{}), uint64(seed), bridgetest.HostileOptions{
				Delay: 2 * time.Millisecond, Drop: 20, Repeat: 20, LoseReply: 10,
			})
			return h
		}
	}
	return b
}

// Sessions that join, with positions and without, leave, publish in every lane,
// read slowly, break off and resume, all at random and pipelined.
func TestOrderHoldsForRandomSessions(t *testing.T) {
	for name, broker := range brokers(3) {
		t.Run(name, func(t *testing.T) { randomSessions(t, broker(t), uint64(len(name))) })
	}
}

func randomSessions(t *testing.T, broker bridge.Broker, seed uint64) {
	const clients, rounds = 12, 200
	if broker != nil {
		t.Cleanup(broker.Close) // after the engine
	}
	census := &census{rooms: map[string][]string{}}
	e := start(t, func(c *Config) {
		c.Broker = broker
		c.Kinds = crossing(48, census)
		c.Limits.SessionQueueItems = 24
		c.Limits.Workers = 4
		c.Limits.Ping = time.Hour
	})
	rooms := []string{"interactive", "bulk", "lossy", "bulk:2"}
	audits := make([]*audit, clients)
	var sending, done, reading sync.WaitGroup
	done.Add(clients)
	counted := make(chan struct{})
	heads := make(chan map[string]codec.Position)
	for i := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		a := newAudit(t, e, fmt.Sprintf("acme/s%d", i), codec.Codec(i%2), memory.Options{
			Window: 256 + random.IntN(4096),
			// Who is done reads nothing until all are, however long that takes.
			WriteTimeout: 10 * time.Minute,
		})
		audits[i] = a
		sending.Add(1)
		reading.Go(func() {
			act(a, random, rooms, rounds)
			sending.Done()
			for h := range heads {
				a.readTo(h)
				done.Done()
				done.Wait()
				<-counted
			}
			a.cut()
		})
	}
	sending.Wait()
	last := map[string]codec.Position{}
	for _, name := range rooms {
		last[name] = e.marker(t, name)
	}
	for range clients {
		heads <- last
	}
	close(heads)
	done.Wait()
	census.check(t, e, rooms, audits)
	close(counted)
	reading.Wait()
	total := map[string]int{}
	for _, a := range audits {
		total["events"] += a.events
		total["joins"] += a.joins
		for reason, n := range a.resets {
			total[reason] += n
		}
	}
	t.Log(total)
}

// marker publishes until it knows the position of an event: the way may have lost
// the reply.
func (e *Engine) marker(t *testing.T, name string) codec.Position {
	t.Helper()
	for range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		r, err := e.Publish(ctx, Event{Tenant: "acme", Room: name, Name: "kept"})
		cancel()
		if err == nil {
			return r.Position
		}
	}
	t.Fatal("no reply came through")
	return codec.Position{}
}

// act is what one client does.
func act(a *audit, random *rand.Rand, rooms []string, rounds int) {
	a.dial(rooms[random.IntN(len(rooms))])
	counts := map[string]int{}
	for range rounds {
		if a.failed {
			return
		}
		name := rooms[random.IntN(len(rooms))]
		switch n := random.IntN(20); {
		case n < 2:
			a.ask("join", name, "")
		case n < 3:
			if m := a.rooms[name]; m != nil {
				a.resume(name, m.pos)
			}
		case n < 5:
			a.ask("leave", name, "")
		case n < 14:
			for range 1 + random.IntN(6) {
				event := []string{"kept", "kept", "i", "b", "l", "c"}[random.IntN(6)]
				counts[event]++
				a.ask("publish", name, fmt.Sprintf(`,"event":%q,"data":{"as":%d,"n":%d,"pad":"%*d"}`, event, a.as, counts[event], 1+random.IntN(200), 0))
			}
		case n < 15:
			a.cut()
			a.dial()
		case n < 18:
			a.read(1 + random.IntN(20))
		default:
			a.read(0)
		}
		if len(a.asked) > 40 {
			a.read(0)
		}
	}
	a.read(0)
	if len(a.rooms) == 0 {
		a.ask("join", rooms[0], "")
		a.read(0)
	}
}
