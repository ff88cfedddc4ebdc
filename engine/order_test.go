package engine

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	membridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// roomy keeps n events.
func roomy(n int) room.Kind {
	k := openKind
	k.History = room.History{Events: n, Bytes: int64(n) << 10, Age: time.Hour}
	return k
}

// ascending reads events until offset last and says what is wrong with them. It
// looks at the bytes only, since there are many.
func ascending(ctx context.Context, c *client, last int) error {
	for next := 1; next <= last; {
		raw, err := c.conn.Recv(ctx)
		if err != nil {
			return fmt.Errorf("at %d: %w", next, err)
		}
		_, after, ok := bytes.Cut(raw, []byte(`"offset":`))
		if !ok {
			if bytes.Contains(raw, []byte(`"t":"event"`)) || bytes.Contains(raw, []byte(`"t":"ping"`)) {
				continue
			}
			return fmt.Errorf("at %d: %s", next, raw)
		}
		var offset int
		for _, b := range after {
			if b < '0' || b > '9' {
				break
			}
			offset = 10*offset + int(b-'0')
		}
		if offset != next {
			return fmt.Errorf("%d where %d is next", offset, next)
		}
		next++
	}
	return nil
}

// Source: https://github.com/anycable/anycable-go/issues/174
func TestB048_ManyWorkersKeepTheOrderOfARoom(t *testing.T) {
	const events, members = 10_000, 40
	e := start(t, func(c *Config) {
		c.Kinds = []room.Kind{roomy(events)}
		c.Limits.Workers, c.Limits.WriteTimeout = 8, time.Minute
	})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	published := make(chan struct{}) // by then the slowest begin to read
	var wg sync.WaitGroup
	for i := range members {
		c := dial(t, e, codec.JSON, memory.Options{Window: []int{1 << 20, 4 << 10, 64 << 10}[i%3], WriteTimeout: time.Minute})
		c.hello(fmt.Sprint("acme/m", i), "chat:1")
		wg.Go(func() {
			if i%3 == 2 {
				<-published
			}
			if err := ascending(ctx, c, events); err != nil {
				t.Errorf("member %d: %v", i, err)
			}
		})
	}
	for range events {
		for {
			o, err := e.TryPublish(Event{Tenant: "acme", Room: "chat:1", Name: "message"})
			if err != nil {
				t.Fatal(err)
			}
			if o.Took() {
				break
			}
			runtime.Gosched()
		}
	}
	close(published)
	wg.Wait()
}

// Source: https://github.com/grafov/bcast/issues/9 and .../issues/12
func TestB049_AMemberWhoDoesNotReadCostsNoGoroutineAndNoOrder(t *testing.T) {
	const events = 5_000
	e := start(t, func(c *Config) { c.Kinds = []room.Kind{roomy(events)}; c.Limits.WriteTimeout = time.Minute })
	stuck := dial(t, e, codec.JSON, memory.Options{Window: 1 << 10, WriteTimeout: time.Minute})
	stuck.hello("acme/stuck", "chat:1")
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 4 {
		c := join(t, e, fmt.Sprint("acme/m", i), "chat:1")
		wg.Go(func() {
			if err := ascending(ctx, c, events); err != nil {
				t.Errorf("member %d: %v", i, err)
			}
		})
	}
	e.publish(t, "acme", "chat:1", "message", 0)
	before := runtime.NumGoroutine()
	most := before
	for range events - 1 {
		e.publish(t, "acme", "chat:1", "message", 0)
		most = max(most, runtime.NumGoroutine())
	}
	if most > before+5 {
		t.Errorf("%d goroutines, %d before", most, before)
	}
	wg.Wait()
}

// Source: https://github.com/phoenixframework/phoenix/issues/1483 and .../issues/1615
func TestB137_TheLastOfSeveralJoinsCounts(t *testing.T) {
	for _, judged := range []bool{false, true} {
		in := map[bool]codec.Codec{false: codec.JSON, true: codec.Msgpack}[judged]
		for _, script := range []string{
			"join", "join join", "join leave join", "join join leave", "join leave", "leave join", "join join join",
			"join leave join leave join", "leave", "join leave leave join join",
		} {
			t.Run(fmt.Sprint(in, " ", script), func(t *testing.T) {
				e := start(t, func(c *Config) {
					if judged {
						c.Authorizer = late(time.Millisecond)
					}
				})
				c := dial(t, e, in, memory.Options{})
				c.hello("acme/alice")
				joined := false
				var answers []string
				for i, do := range strings.Fields(script) { // without waiting
					c.send(fmt.Sprintf(`{"t":%q,"id":%d,"room":"chat:1"}`, do, i+1))
					want := "ok"
					if do == "leave" && !joined {
						want = "not_joined"
					}
					answers = append(answers, want)
					joined = do == "join"
				}
				// Every request gets its own reply; those that the session refuses may
				// overtake.
				got := make([]string, len(answers))
				for range answers {
					f := c.until("reply")
					var id int
					fmt.Sscan(fmt.Sprint(f["id"]), &id)
					if got[id-1] != "" {
						t.Fatalf("a second reply to %d", id)
					}
					got[id-1] = "ok"
					if code := f.at("err.code"); code != nil {
						got[id-1] = fmt.Sprint(code)
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(answers) {
					t.Fatalf("answers %v, want %v", got, answers)
				}
				e.publish(t, "acme", "chat:1", "message", 1)
				e.publish(t, "acme", "chat:1", "message", 2)
				for i := uint64(1); i <= 2 && joined; i++ {
					if f := c.next(); f.offset() != i {
						t.Fatalf("want event %d: %v", i, f)
					}
				}
				reply, before := c.ask(`{"t":"leave","room":"chat:1"}`)
				if (reply.at("err") == nil) != joined || len(before) > 0 {
					t.Fatalf("joined %v, came %v, leave: %v", joined, before, reply)
				}
			})
		}
	}
}

// Source: https://github.com/centrifugal/centrifuge/issues/372 and
// https://github.com/centrifugal/centrifuge-go/issues/139
func TestB138_JoinsAndLeavesInAnyOrderEndAsTheLastOneSays(t *testing.T) {
	t.Run("by grants", func(t *testing.T) { joinsAndLeaves(t, 500, nil) })
	t.Run("with a slow authorizer", func(t *testing.T) { joinsAndLeaves(t, 500, late(2*time.Millisecond)) })
}

func joinsAndLeaves(t *testing.T, sequences int, authorizer auth.Authorizer) {
	broker := bridgetest.Hostile(membridge.New(membridge.Config{}), 1, bridgetest.HostileOptions{Delay: time.Millisecond})
	t.Cleanup(broker.Close)
	census := &census{rooms: map[string][]string{}}
	e := start(t, func(c *Config) { c.Broker, c.Kinds, c.Authorizer = broker, crossing(48, census), authorizer })
	random := rand.New(rand.NewPCG(138, 1))
	a := newAudit(t, e, "acme/alice", codec.JSON, memory.Options{})
	a.dial()
	for i := range sequences {
		// A room of its own each, so that all joins wait for the room to begin.
		name := fmt.Sprint([]string{"interactive", "bulk", "lossy"}[i%3], ":", i)
		last := ""
		for range 2 + random.IntN(6) {
			switch last = []string{"join", "leave"}[random.IntN(2)]; {
			case last == "join" && random.IntN(2) == 0 && a.rooms[name] != nil:
				a.resume(name, a.rooms[name].pos)
			default:
				a.ask(last, name, "")
			}
			if random.IntN(4) == 0 {
				a.read(1)
			}
		}
		a.read(0)
		if a.failed {
			t.Fatalf("sequence %d", i)
		}
		if in := a.rooms[name] != nil; in != (last == "join") {
			t.Fatalf("sequence %d: the last command was %s, the client is in: %v", i, last, in)
		}
		census.check(t, e, []string{name}, []*audit{a})
		if a.rooms[name] != nil {
			a.ask("leave", name, "")
			a.read(0)
		}
		clear(census.rooms)
	}
	a.cut()
}

// counted counts the reads of a broker.
type counted struct {
	bridge.Broker
	reads atomic.Int64
}

func (c *counted) Read(topic codec.Topic, r bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	c.reads.Add(1)
	c.Broker.Read(topic, r, done)
}

// One room, members who are behind, and members who come back all at once: the
// broker is read as often for 500 of them as for one.
func TestReadsDoNotGrowWithSlowMembers(t *testing.T) {
	const events = 400
	reads := func(t *testing.T, members int) (slow, resumed int64) {
		inner := membridge.New(membridge.Config{})
		t.Cleanup(inner.Close)
		broker := &counted{Broker: inner}
		kind := roomy(events)
		kind.Events = map[string]room.EventPolicy{room.Any: {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive}}
		e := start(t, func(c *Config) {
			c.Broker, c.Kinds = broker, []room.Kind{kind}
			c.Limits.SessionQueueItems = 32
			c.Limits.WriteTimeout = time.Minute
		})
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		all := make([]*client, members)
		o := memory.Options{Window: 4 << 10, WriteTimeout: time.Minute}
		for i := range all {
			all[i] = dial(t, e, codec.JSON, o)
			all[i].hello(fmt.Sprint("acme/m", i), "chat:1")
		}
		var epoch string
		for range events {
			epoch = e.publish(t, "acme", "chat:1", "message", 0).Position.Epoch
		}
		everything := func() {
			var wg sync.WaitGroup
			for i, c := range all {
				wg.Go(func() {
					if err := ascending(ctx, c, events); err != nil {
						t.Errorf("member %d of %d: %v", i, members, err)
					}
				})
			}
			wg.Wait()
		}
		everything()
		slow = broker.reads.Swap(0)
		for _, c := range all {
			c.conn.Cut()
			<-c.conn.Done()
		}
		for i := range all {
			all[i] = dial(t, e, codec.JSON, o)
			all[i].hello(fmt.Sprint("acme/m", i), fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":0}`, epoch))
		}
		everything()
		return slow, broker.reads.Load()
	}
	slow1, resumed1 := reads(t, 1)
	slow500, resumed500 := reads(t, 500)
	t.Logf("reads for members who are behind: %d for one, %d for 500; for those who come back: %d and %d", slow1, slow500, resumed1, resumed500)
	// Who begins anew while nobody else is behind may begin the pages anew.
	if slow500 > slow1+8 || resumed500 > 4*resumed1+8 {
		t.Error("reads grow with the number of members")
	}
}
