package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// What no post may ever do is wait. Random topologies of tenants, rooms with
// mailboxes of a few places, sessions with small queues, readers that dawdle,
// handlers that panic, refuse, broadcast and publish into each other: whatever
// becomes of a request it is answered once, and everything comes to rest.
func TestNothingDeadlocksOnRandomTopologies(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runTopology(t, seed, 400) })
	}
}

// A client that says more than a session can owe before its rooms have answered
// the hello waits, and is then served; its session stays in hand all the time.
func TestMoreRequestsBeforeTheWelcomeThanASessionCanOwe(t *testing.T) {
	for _, end := range []string{"answered", "cut", "disconnected"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in which the handler is not given up
				release := make(chan struct{})
				e := start(t, func(c *Config) {
					c.Kinds = []room.Kind{kind("chat", func() room.Handler { <-release; return &puppet{} })}
				})
				c := dial(t, e, codec.JSON, memory.Options{})
				c.send(`{"t":"hello","token":"acme/a","rooms":[{"room":"chat:1"}]}`)
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for range 1000 {
						c.id++
						if c.conn.Send([]byte(fmt.Sprintf(`{"t":"publish","id":%d,"room":"chat:1","event":"typing","data":1}`, c.id))) != nil {
							return
						}
					}
				}()
				synctest.Wait()
				if e.Health().Sessions == 0 || e.queue.Used() < 4<<10 {
					t.Fatal("its queues are not full")
				}
				switch end {
				case "answered":
					close(release)
					if f := c.next(); f.t() != "welcome" {
						t.Errorf("first came %v", f)
					}
					c.replies(1000)
					<-sent
					return
				case "cut":
					c.conn.Cut()
				case "disconnected":
					if n, err := e.Disconnect(t.Context(), "acme", ""); n != 1 || err != nil {
						t.Errorf("disconnect: %d, %v", n, err)
					}
					if code := c.closed(); code != 1000 {
						t.Errorf("closed with %d", code)
					}
				}
				<-c.conn.Done()
				<-sent
				close(release)
			})
		})
	}
}

func runTopology(t *testing.T, seed uint64, requests int) {
	random := rand.New(rand.NewPCG(seed, 7))
	var e *Engine
	var answers [2]atomic.Int64
	handler := func(salt uint64) func() room.Handler {
		return func() room.Handler {
			r := rand.New(rand.NewPCG(seed, salt))
			meddle := func(c *room.Context) error {
				switch r.IntN(20) {
				case 0:
					panic("handler")
				case 1:
					return errors.New("no")
				case 2, 3:
					_ = c.Broadcast([]string{"message", "typing", "news"}[r.IntN(3)], r.IntN(9))
				case 4:
					for _, m := range c.Members() {
						_ = c.Send(m.Session, "news", 1)
					}
				case 5, 6:
					ev := Event{Tenant: c.Tenant(), Room: fmt.Sprint("chain:", r.IntN(3)), Name: "message", Data: 1}
					if _, err := e.TryPublish(ev); err != nil && !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
				}
				return nil
			}
			return &puppet{
				publish: func(c *room.Context, _ *room.Event) error { return meddle(c) },
				join:    func(c *room.Context, _ *room.Member) error { return meddle(c) },
				leave:   func(c *room.Context, _ *room.Member) { _ = meddle(c) },
			}
		}
	}
	e = start(t, func(c *Config) {
		c.Limits.SessionQueueItems = 4 + random.IntN(60)
		c.Limits.Workers = 1 + random.IntN(4)
		c.TenantDefaults.MaxRooms = 2 + random.IntN(6)
		c.TenantDefaults.QueueBytes = int64(32<<10 + random.IntN(1<<20))
		c.TenantDefaults.ReplayBytes = int64(random.IntN(64 << 10))
		for i, name := range []string{"chain", "loop", "chat"} {
			k := kind(name, handler(uint64(i)))
			k.MailboxItems = 1 + random.IntN(8)
			k.Linger = time.Duration(1+random.IntN(30)) * time.Millisecond
			k.History.Events = 1 + random.IntN(40)
			c.Kinds = append(c.Kinds, k)
		}
	})
	var clients sync.WaitGroup
	for i := range 4 + random.IntN(12) {
		salt := random.Uint64()
		clients.Go(func() {
			c := &walker{t: t, random: rand.New(rand.NewPCG(seed, salt)), answers: &answers}
			for life := range 2 {
				c.live(e, fmt.Sprintf("t%d/s%d", i%3, i), requests/2, life == 0 && i%3 == 0)
			}
		})
	}
	bounded(t, 60*time.Second, "all requests answered", clients.Wait)
	t.Logf("%d granted, %d refused", answers[0].Load(), answers[1].Load())
	if answers[0].Load() == 0 || answers[1].Load() == 0 {
		t.Error("the topology tries nothing")
	}
}

// walker is a client that asks for random things without waiting.
type walker struct {
	t       *testing.T
	random  *rand.Rand
	answers *[2]atomic.Int64 // granted, refused; of all walkers
}

// live is one connection: n requests, each of which must be answered once,
// unless the connection is cut in the middle.
func (w *walker) live(e *Engine, token string, n int, cut bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	conn := memory.Dial(e, protocol(codec.JSON), memory.Options{Window: 1 << (8 + w.random.IntN(8))})
	defer func() { conn.Cut(); <-conn.Done() }()
	var asked sync.Map // id to request, for reports
	send := func(format string, args ...any) bool {
		if doc := fmt.Sprintf(format, args...); conn.Send([]byte(doc)) == nil {
			asked.Store(args[0], doc)
			return true
		}
		return false
	}
	if !send(`{"t":"hello","token":%q,"rooms":[{"room":"chat:1"},{"room":"loop:1"}]}`, token) {
		w.t.Error("hello: the connection has ended")
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for id := 1; id <= n; id++ {
			if cut && id == n/2 {
				conn.Cut()
				return
			}
			name := fmt.Sprintf("%s:%d", []string{"chain", "loop", "chat"}[w.random.IntN(3)], w.random.IntN(3))
			ok := true
			switch w.random.IntN(12) {
			case 0, 1:
				ok = send(`{"t":"join","id":%d,"room":%q}`, id, name)
			case 2:
				ok = send(`{"t":"join","id":%d,"room":%q,"epoch":"x","offset":%d}`, id, name, w.random.IntN(9))
			case 3, 4:
				ok = send(`{"t":"leave","id":%d,"room":%q}`, id, name)
			case 5:
				ok = send(`{"t":"history","id":%d,"room":%q}`, id, name)
			default:
				event := []string{"message", "typing", "cursor", "news"}[w.random.IntN(4)]
				ok = send(`{"t":"publish","id":%d,"room":%q,"event":%q,"data":%d}`, id, name, event, id) &&
					send(`{"t":"publish","room":%q,"event":%q,"data":0}`, name, event)
			}
			if !ok {
				return // the reader says why
			}
		}
	})
	defer wg.Wait()
	answered := make(map[int64]bool, n)
	for len(answered) < n {
		raw, err := conn.Recv(ctx)
		if err != nil {
			if !cut {
				w.t.Errorf("%s: %v after %d of %d answers", token, err, len(answered), n)
				for id := 1; id <= n && len(answered) > 0; id++ {
					if doc, ok := asked.Load(id); ok && !answered[int64(id)] {
						w.t.Logf("not answered: %s", doc)
					}
				}
				conn.Cut()
			}
			return
		}
		var f struct {
			T   string
			ID  int64
			OK  json.RawMessage
			Err json.RawMessage
		}
		if err := json.Unmarshal(raw, &f); err != nil {
			w.t.Errorf("%s: %v", raw, err)
		}
		if f.T != "reply" {
			continue
		}
		if answered[f.ID] || (f.OK == nil) == (f.Err == nil) {
			w.t.Errorf("%s: %d answered again, or not well: %s", token, f.ID, raw)
		}
		answered[f.ID] = true
		if f.OK != nil {
			w.answers[0].Add(1)
		} else {
			w.answers[1].Add(1)
		}
	}
}
