package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
)

// The cases of supervision again, with handlers that have state, commands, ticks,
// timers and work under way.

// bank is a handler whose state is a sum. What it does to it outside of Apply is
// lost with it.
type bank struct {
	servant
	balance int
	broken  bool
}

func newBank(t *testing.T, what func(b *bank, ctx *room.Context, c *room.Command) (any, error)) *bank {
	b := &bank{}
	whole := func() {
		if b.broken {
			t.Error("an instance that has panicked is called again")
		}
	}
	b.publish = func(*room.Context, *room.Event) error { whole(); return nil }
	b.apply = func(_ *room.Context, e *room.Applied) {
		whole()
		var n int
		_ = e.Data.Unmarshal(&n)
		b.balance += n
	}
	b.snapshot = func() (any, error) { whole(); return b.balance, nil }
	b.restore = func(d codec.Data, _ codec.Position) error { return d.Unmarshal(&b.balance) }
	b.command = func(ctx *room.Context, c *room.Command) (any, error) { whole(); return what(b, ctx, c) }
	b.tick = func(*room.Context) { whole() }
	return b
}

// ruin changes half of it and panics.
func (b *bank) ruin(*room.Context) {
	b.balance, b.broken = -100, true
	panic("half changed")
}

// B131, lightninglabs/wavelength#1123: the half-changed instance went on after a
// recovered panic. Wherever the panic comes, the next command sees the state that
// the events have led to.
func TestB131_StateAfterAPanicIsThatOfTheEvents(t *testing.T) {
	for _, where := range []string{"command", "later", "timer", "then", "tick"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made atomic.Int64
				var ruinous atomic.Bool
				k := kind("bank", func() room.Handler {
					made.Add(1)
					b := newBank(t, func(b *bank, ctx *room.Context, c *room.Command) (any, error) {
						if c.Name == "balance" {
							return b.balance, nil
						}
						switch where {
						case "later":
							c.Later()
							b.ruin(ctx)
						case "command":
							b.ruin(ctx)
						case "timer":
							_, err := ctx.After(time.Second, b.ruin)
							return nil, err
						case "then":
							return nil, ctx.Go(func(context.Context) (any, error) { time.Sleep(time.Second); return nil, nil },
								func(ctx *room.Context, _ any, _ error) { b.ruin(ctx) })
						}
						ruinous.Store(true)
						return nil, nil
					})
					b.tick = func(ctx *room.Context) {
						if ruinous.CompareAndSwap(true, false) {
							b.ruin(ctx)
						}
					}
					return b
				})
				k.SnapshotEvery, k.Tick = 4, time.Second
				e := start(t, func(c *Config) { c.Kinds = []room.Kind{k} })
				c := join(t, e, "acme/a", "bank:1")
				for range 10 { // beyond snapshots
					e.publish(t, "acme", "bank:1", "message", 7)
				}
				r, _ := c.ask(`{"t":"command","room":"bank:1","name":"ruin"}`)
				if inHand := where == "command" || where == "later"; inHand != (r.at("err.code") == "internal") {
					t.Errorf("the guilty command: %v", r)
				}
				time.Sleep(3 * time.Second)
				if r, _ := c.ask(`{"t":"command","room":"bank:1","name":"balance"}`); fmt.Sprint(r.at("ok.data")) != "70" {
					t.Errorf("the next one: %v", r)
				}
				if r, _ := c.ask(`{"t":"join","room":"bank:1"}`); fmt.Sprint(r.at("ok.data")) != "70" {
					t.Errorf("a member: %v", r)
				}
				if made.Load() != 2 {
					t.Errorf("%d instances", made.Load())
				}
				c.conn.Close(1000)
				<-c.conn.Done()
			})
		})
	}
}

// B136, akka/akka-core#26285, asynkron/protoactor-go#1202: timers that outlive
// their actor. A room with ticks, timers and work has its handler made anew a
// thousand times and then ends: nothing of an older one is ever called.
func TestB136_NothingOfAnOldHandlerIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made, working atomic.Int64
		var old sync.Map
		k := kind("frail", func() room.Handler {
			n := made.Add(1)
			alive := func(what string) {
				if _, failed := old.Load(n); failed {
					t.Errorf("%s of handler %d", what, n)
				}
			}
			return &servant{
				command: func(ctx *room.Context, c *room.Command) (any, error) {
					alive("a command")
					for _, d := range []time.Duration{0, 5 * time.Millisecond, time.Minute} {
						if _, err := ctx.After(d, func(*room.Context) { alive("a timer") }); err != nil {
							t.Error(err)
						}
					}
					_ = ctx.Go(func(life context.Context) (any, error) {
						working.Add(1)
						defer working.Add(-1)
						select {
						case <-life.Done():
						case <-time.After(time.Minute):
							t.Errorf("the work of handler %d was not told", n)
						}
						return nil, nil
					}, func(*room.Context, any, error) { alive("what follows work") })
					if c.Name == "fail" {
						old.Store(n, true)
						panic("handler")
					}
					return nil, nil
				},
				tick: func(*room.Context) { alive("a tick") },
			}
		})
		k.Tick, k.Linger = room.LeastTick, time.Second
		e := start(t, func(c *Config) { c.Kinds = []room.Kind{k}; c.Limits.Ping = time.Hour })
		c := join(t, e, "acme/a", "frail:1")
		for i := 0; made.Load() < 1000; i++ {
			name := "go on"
			if i%2 == 0 {
				name = "fail"
			}
			c.ask(fmt.Sprintf(`{"t":"command","room":"frail:1","name":%q}`, name))
			if i%7 == 0 {
				c.ask(`{"t":"join","room":"frail:1"}`) // it may have been stopped
			}
		}
		c.conn.Close(1000)
		<-c.conn.Done()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := e.rooms(); n != 0 || working.Load() != 0 {
			t.Errorf("%d rooms, %d pieces of work in the end", n, working.Load())
		}
		if n := e.wheel.Armed(); n > 1 {
			t.Errorf("%d timers are set beside the tenant's own", n-1)
		}
	})
}

// B134, lightninglabs/wavelength#394: an actor that is stuck stopped the timers of
// all. Here the handler's own timers are due while it is stuck.
func TestB134_TimersAndTicksOfOthersGoOnBesideAStuckHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, release := make(chan struct{}), make(chan struct{})
		var own, other atomic.Int64
		stuck := kind("stuck", func() room.Handler {
			return &servant{
				command: func(ctx *room.Context, _ *room.Command) (any, error) {
					for range 100 {
						_, _ = ctx.After(0, func(*room.Context) { own.Add(1) })
					}
					close(in)
					<-release
					return nil, nil
				},
				tick: func(*room.Context) { own.Add(1) },
			}
		})
		live := kind("live", func() room.Handler {
			return &servant{tick: func(*room.Context) { other.Add(1) }}
		})
		stuck.Tick, live.Tick = 100*time.Millisecond, 100*time.Millisecond
		stuck.MailboxItems = 1
		e := start(t, func(c *Config) { c.Limits.Workers = 2; c.Kinds = []room.Kind{stuck, live} })
		b := join(t, e, "acme/b", "live:1")
		c := join(t, e, "acme/a", "stuck:1")
		c.request(`{"t":"command","room":"stuck:1","name":"x"}`)
		<-in
		own.Store(0)
		before := other.Load()
		time.Sleep(900*time.Millisecond + 15*time.Millisecond) // not yet taken for one that does not return
		if n := other.Load() - before; n < 8 || n > 10 {
			t.Errorf("%d ticks of the other room in 0.9 s", n)
		}
		if n := own.Load(); n != 0 {
			t.Errorf("%d calls of a handler that is busy", n)
		}
		close(release)
		if r := c.replies(1)[1]; r["ok"] == nil {
			t.Errorf("the command: %v", r)
		}
		time.Sleep(50 * time.Millisecond)
		if n := own.Load(); n != 101 {
			t.Errorf("%d calls afterwards, want 100 timers and one tick", n)
		}
		for _, c := range []*client{b, c} {
			c.conn.Close(1000)
			<-c.conn.Done()
		}
	})
}

// B133, tqwewe/kameo#84: a mailbox of one place, full before its actor has
// started. Commands: they are answered, the first by the handler.
func TestB133_CommandsFillATinyMailboxBeforeItsHandlerIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which the handler is not given up
		making, release := make(chan struct{}), make(chan struct{})
		k := kind("tiny", func() room.Handler {
			close(making)
			<-release
			return &servant{command: echo}
		})
		k.MailboxItems = 1
		e := start(t, func(c *Config) { c.Kinds = []room.Kind{k} })
		first := join(t, e, "acme/a")
		first.request(`{"t":"command","room":"tiny:1","name":"x","data":"first"}`)
		<-making
		var full atomic.Int64
		var wg sync.WaitGroup
		for i := range 20 {
			c := join(t, e, fmt.Sprint("acme/", i))
			wg.Go(func() {
				for range 5 {
					if r, _ := c.ask(`{"t":"command","room":"tiny:1","name":"x"}`); r.at("err.code") == "backpressured" && r.at("err.scope") == "room" {
						full.Add(1)
					}
				}
			})
		}
		wg.Wait()
		close(release)
		if r := first.replies(1)[1]; r.at("ok.data") != "first" || full.Load() != 100 {
			t.Errorf("the first: %v; %d of 100 were told that it is full", r, full.Load())
		}
	})
}

// B129, tqwewe/kameo#351: a parent that stops waits for a child that waits for it.
// Here handlers wait for the engine, with commands open and work under way that
// nobody ends.
func TestB129_CommandsUnderWayWhileTheirTenantStops(t *testing.T) {
	var e *Engine
	var begun atomic.Int64
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	k := serving("desk", func(ctx *room.Context, c *room.Command) (any, error) {
		reply := c.Later()
		begun.Add(1)
		switch c.Name {
		case "asks":
			return nil, ctx.Go(func(life context.Context) (any, error) {
				return e.Publish(life, Event{Tenant: "acme", Room: "desk:2", Name: "message", Data: 1})
			}, func(_ *room.Context, v any, err error) { reply.Answer(nil, err) })
		case "waits":
			return nil, ctx.Go(func(life context.Context) (any, error) { <-life.Done(); return nil, life.Err() },
				func(_ *room.Context, _ any, err error) { reply.Answer(nil, err) })
		}
		return nil, nil
	})
	e = start(t, func(c *Config) { c.Kinds = []room.Kind{k} })
	for i := range 8 {
		c := join(t, e, fmt.Sprint("acme/", i), "desk:1")
		for j := range 8 {
			c.send(fmt.Sprintf(`{"t":"command","id":%d,"room":"desk:%d","name":%q}`, j+1, j%3, []string{"asks", "waits", "never"}[j%3]))
		}
		go func() {
			for _, err := c.recv(context.Background()); err == nil; _, err = c.recv(context.Background()) {
			}
		}()
	}
	settled(t, "all are under way", func() bool { return begun.Load() == 64 })
	e.closeWithin(t, 5*time.Second)
}

// Close does not wait for work that does not return longer than for a handler.
func TestCloseDoesNotWaitForWorkThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{serving("desk", func(ctx *room.Context, c *room.Command) (any, error) {
				return nil, ctx.Go(func(context.Context) (any, error) { <-release; return nil, nil }, func(*room.Context, any, error) {
					t.Error("what follows work is called in a room that has ended")
				})
			})}
		})
		c := join(t, e, "acme/a")
		c.ask(`{"t":"command","room":"desk:1","name":"x"}`)
		c.conn.Close(1000)
		<-c.conn.Done()
		began := time.Now()
		e.closeWithin(t, 10*time.Second)
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("close took %v", d)
		}
		close(release)
		synctest.Wait()
	})
}

// B135, asynkron/protoactor-go#111, Tochemey/goakt#382: spawning and stopping at
// once. Rooms with ticks, timers and work, made and ended by the thousand.
func TestB135_RoomsWithErrandsMadeAndEndedLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kind("brief", func() room.Handler {
			return &servant{
				command: func(ctx *room.Context, c *room.Command) (any, error) {
					_, _ = ctx.After(time.Hour, func(*room.Context) {})
					_ = ctx.Go(func(context.Context) (any, error) { return nil, nil }, func(*room.Context, any, error) {})
					return nil, nil
				},
				tick: func(*room.Context) {},
			}
		})
		k.Tick, k.Linger = room.LeastTick, 20*time.Millisecond
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{k}
			c.TenantDefaults.NewRooms = -1
			c.Limits.Ping = time.Hour
		})
		var wg sync.WaitGroup
		for i := range 16 {
			c := join(t, e, fmt.Sprint("acme/", i))
			wg.Go(func() {
				for j := range 64 {
					name := fmt.Sprintf("brief:%d-%d", i, j)
					c.ask(fmt.Sprintf(`{"t":"join","room":%q}`, name))
					if r, _ := c.ask(fmt.Sprintf(`{"t":"command","room":%q,"name":"x"}`, name)); r["ok"] == nil {
						t.Errorf("%v", r)
					}
					c.ask(fmt.Sprintf(`{"t":"leave","room":%q}`, name))
				}
				c.conn.Close(1000)
				<-c.conn.Done()
			})
		}
		wg.Wait()
		time.Sleep(time.Minute / 2)
		synctest.Wait()
		if n := e.rooms(); n != 0 {
			t.Errorf("%d rooms", n)
		}
		if n := e.wheel.Armed(); n > 1 {
			t.Errorf("%d timers are set beside the tenant's own", n-1)
		}
	})
}
