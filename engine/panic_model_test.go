package engine

import (
	"context"
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
)

// chaos decides where a handler panics, and knows what its state must be: the sum
// of all events but those in whose Apply it did.
type chaos struct {
	mu      sync.Mutex
	random  *rand.Rand
	panics  map[string]int  // by callback
	row     int             // panics since something asked was served
	skipped map[uint64]bool // offsets whose Apply has panicked
	happens map[uint64]int  // offset to value, as published
}

// strike panics in one of ten calls; in one of a hundred of Apply, which is called
// again for what the last instance had. It does so no more often in a row than a room
// survives.
func (c *chaos) strike(in string, offset uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	odds := 10
	if in == "apply" {
		odds = 100
	}
	if c.random.IntN(odds) > 0 || c.row == 8 {
		switch in {
		case "publish", "join", "command", "tick", "timer", "then":
			c.row = 0
		}
		return
	}
	c.row++
	c.panics[in]++
	if in == "apply" {
		c.skipped[offset] = true
	}
	panic("chaos: " + in)
}

// tally is the state: the sum of the events and how many they are.
type tally struct{ Sum, Events int }

// upTo is the tally at an offset.
func (c *chaos) upTo(offset uint64) (s tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, n := range c.happens {
		if at <= offset && !c.skipped[at] {
			s.Sum += n
			s.Events++
		}
	}
	return s
}

func (c *chaos) handler() room.Handler {
	c.strike("new", 0)
	s := tally{}
	h := &servant{}
	h.publish = func(*room.Context, *room.Event) error { c.strike("publish", 0); return nil }
	h.join = func(*room.Context, *room.Member) error { c.strike("join", 0); return nil }
	h.leave = func(*room.Context, *room.Member) { c.strike("leave", 0) }
	h.apply = func(_ *room.Context, e *room.Applied) {
		c.strike("apply", e.Position.Offset)
		var n int
		_ = e.Data.Unmarshal(&n)
		s.Sum += n
		s.Events++
	}
	h.snapshot = func() (any, error) { c.strike("snapshot", 0); return s, nil }
	h.restore = func(d codec.Data, _ codec.Position) error { c.strike("restore", 0); return d.Unmarshal(&s) }
	h.command = func(ctx *room.Context, cmd *room.Command) (any, error) {
		c.strike("command", 0)
		_, _ = ctx.After(time.Duration(len(cmd.Name))*time.Second, func(*room.Context) { c.strike("timer", 0) })
		_ = ctx.Go(func(context.Context) (any, error) { return nil, nil }, func(*room.Context, any, error) { c.strike("then", 0) })
		return map[string]any{"at": ctx.Position().Offset, "state": s}, nil
	}
	h.tick = func(*room.Context) { c.strike("tick", 0) }
	return h
}

// A handler that panics at random, in every callback that there is, for an hour: no
// accepted event is lost to a member, the epoch stays, and state and snapshots are
// those of a handler that never panicked, but for the guilty events. Virtual time.
func TestAnHourOfPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chaos{
			random: rand.New(rand.NewPCG(1, 2)), panics: map[string]int{},
			skipped: map[uint64]bool{}, happens: map[uint64]int{},
		}
		k := kind("bank", c.handler)
		k.Tick, k.SnapshotEvery = 3*time.Second, 16
		e := start(t, func(cfg *Config) { cfg.Kinds = []room.Kind{k}; cfg.Limits.Ping = 24 * time.Hour })

		const members = 3
		var seen [members]atomic.Uint64
		var epoch string
		var wg sync.WaitGroup
		clients := make([]*client, members)
		for i := range clients {
			clients[i] = join(t, e, fmt.Sprint("acme/m", i))
			for reply, _ := clients[i].ask(`{"t":"join","room":"bank:1"}`); reply["ok"] == nil; {
				reply, _ = clients[i].ask(`{"t":"join","room":"bank:1"}`)
			}
		}
		for i, cl := range clients {
			wg.Go(func() {
				for {
					f, err := cl.recv(context.Background())
					switch {
					case err != nil:
						return
					case f.t() != "event":
						t.Errorf("member %d: %v", i, f)
						return
					case f.offset() != seen[i].Load()+1:
						t.Errorf("member %d: %d after %d", i, f.offset(), seen[i].Load())
					}
					seen[i].Store(f.offset())
				}
			})
		}
		guest := join(t, e, "acme/guest")
		check := func(at uint64, state any) {
			t.Helper()
			want := c.upTo(at)
			if got := fmt.Sprint(state); got != fmt.Sprintf("map[Events:%d Sum:%d]", want.Events, want.Sum) {
				t.Fatalf("state at %d: %v, want %+v", at, state, want)
			}
		}
		random := rand.New(rand.NewPCG(3, 4))
		refused, joined, asked := 0, 0, 0
		for began := time.Now(); time.Since(began) < time.Hour; time.Sleep(time.Duration(500+random.IntN(2500)) * time.Millisecond) {
			n := random.IntN(1000)
			r, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "bank:1", Name: "message", Data: n})
			var refusal *codec.Error
			switch {
			case err == nil:
				c.mu.Lock()
				c.happens[r.Position.Offset] = n
				c.mu.Unlock()
				if epoch == "" {
					epoch = r.Position.Epoch
				}
				if r.Position.Epoch != epoch {
					t.Fatalf("epoch %q became %q", epoch, r.Position.Epoch)
				}
			case errors.As(err, &refusal) && refusal.Code == codec.CodeInternal:
				refused++
			default:
				t.Fatal(err)
			}
			switch n % 3 {
			case 0:
				f, _ := guest.ask(fmt.Sprintf(`{"t":"command","room":"bank:1","name":%q}`, "state"[:1+n%5]))
				if f["ok"] != nil {
					at, _ := f.at("ok.data.at").(interface{ Int64() (int64, error) }).Int64()
					check(uint64(at), f.at("ok.data.state"))
					asked++
				}
			case 1:
				if f, _ := guest.ask(`{"t":"join","room":"bank:1"}`); f["ok"] != nil {
					if state := f.at("ok.data"); state != nil {
						at, _ := f.at("ok.offset").(interface{ Int64() (int64, error) }).Int64()
						check(uint64(at), state)
						joined++
					}
					guest.ask(`{"t":"leave","room":"bank:1"}`)
				}
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range seen {
			if got := seen[i].Load(); got != uint64(len(c.happens)) {
				t.Errorf("member %d has seen %d of %d accepted events", i, got, len(c.happens))
			}
		}
		for _, in := range []string{"new", "publish", "join", "leave", "apply", "snapshot", "restore", "command", "timer", "then", "tick"} {
			if c.panics[in] == 0 {
				t.Errorf("no panic in %s: %v", in, c.panics)
			}
		}
		if refused == 0 || len(c.skipped) == 0 || joined < 100 || asked < 100 {
			t.Errorf("%d publishes refused, %d events skipped, %d states of joins and %d of commands compared", refused, len(c.skipped), joined, asked)
		}
		for _, cl := range append(clients, guest) {
			cl.conn.Close(1000)
			<-cl.conn.Done()
		}
		wg.Wait()
	})
}
