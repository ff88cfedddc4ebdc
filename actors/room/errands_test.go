package room

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
)

// pass lets time go by, and what is due then happen.
func (s *stage) pass(d time.Duration) {
	s.now += int64(d)
	s.room.mb.Raise(&s.room.own, timed)
	s.run()
}

// until runs the room until something that a goroutine does has come to it.
func (s *stage) until(what string, ok func() bool) {
	s.t.Helper()
	for began := time.Now(); !ok(); runtime.Gosched() {
		if s.run(); time.Since(began) > 10*time.Second {
			s.t.Fatalf("%s: does not come", what)
		}
	}
}

// inside runs f as a command of the room's handler.
func (o *office) inside(f func(ctx *Context)) {
	o.t.Helper()
	o.do = func(ctx *Context, _ *Command) (any, error) { f(ctx); return nil, nil }
	want(o.t, "a command", o.ask(), "null")
}

func TestTimers(t *testing.T) {
	o := newOffice(t, nil)
	var fired []string
	say := func(name string) func(*Context) {
		return func(ctx *Context) { fired = append(fired, name+" in "+ctx.Room()) }
	}
	var stopped, late *Timer
	o.inside(func(ctx *Context) {
		late, _ = ctx.After(300*time.Millisecond, say("late"))
		_, _ = ctx.After(100*time.Millisecond, say("first"))
		_, _ = ctx.After(100*time.Millisecond, say("second"))
		_, _ = ctx.After(-time.Hour, say("at once"))
		stopped, _ = ctx.After(200*time.Millisecond, say("stopped"))
	})
	want(t, "what is due at once", fired, "[at once in chat:1]")
	o.pass(100*time.Millisecond - 1)
	want(t, "nothing early", len(fired), 1)
	o.pass(1)
	want(t, "in the order of their times", fired[1:], "[first in chat:1 second in chat:1]")
	want(t, "stopped elsewhere", stopped.Stop(), false)
	o.inside(func(*Context) {
		want(t, "stopped", fmt.Sprint(stopped.Stop(), stopped.Stop()), "true false")
	})
	o.pass(time.Hour)
	want(t, "the rest", fired[3:], "[late in chat:1]")
	o.inside(func(*Context) { want(t, "stopped after it was called", late.Stop(), false) })
	want(t, "timers set for nothing", o.room.handler.clockAt, 0)
}

func TestTimersMayDoWhatHandlersMay(t *testing.T) {
	o := newOffice(t, nil)
	alice := o.member("alice")
	n := 0
	var again func(ctx *Context)
	again = func(ctx *Context) {
		if n++; n < 3 {
			_, _ = ctx.After(0, again)
		}
		if err := ctx.Broadcast("message", n); err != nil {
			t.Error(err)
		}
	}
	o.inside(again)
	want(t, "events", alice.frames(), "[event 1 event 2 event 3]")
}

func TestTimersAreBounded(t *testing.T) {
	o := newOffice(t, nil)
	var last *Timer
	o.inside(func(ctx *Context) {
		for i := range MaxTimers {
			var err error
			if last, err = ctx.After(time.Hour, func(*Context) {}); err != nil {
				t.Fatalf("timer %d: %v", i, err)
			}
		}
		if _, err := ctx.After(0, func(*Context) {}); err != ErrTooManyTimers {
			t.Errorf("one more: %v", err)
		}
		last.Stop()
		if _, err := ctx.After(0, func(*Context) {}); err != nil {
			t.Errorf("with place again: %v", err)
		}
	})
}

// Nothing that a handler has under way reaches the next one.
func TestAHandlersErrandsEndWithIt(t *testing.T) {
	for name, end := range map[string]func(o *office){
		"failed": func(o *office) {
			o.book.panics["publish"] = 1
			o.member("bob").publish("message", "1")
			o.recovered()
		},
		"lost its history": func(o *office) {
			o.member("bob") // who is owed nothing
			o.broker.fail(2)
			o.broker.events, o.broker.head = nil, 0
			o.broker.sink.Gap(o.broker.position())
			o.run()
		},
		"the room ended": func(o *office) { o.room.Stopping() },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, func(k *Kind) { k.Tick = time.Second })
			o.member("alice").publish("message", "1")
			called := 0
			var life context.Context
			release := make(chan struct{})
			o.inside(func(ctx *Context) {
				_, _ = ctx.After(time.Minute, func(*Context) { called++ })
				err := ctx.Go(func(c context.Context) (any, error) {
					life = c
					release <- struct{}{}
					<-c.Done()
					return nil, c.Err()
				}, func(*Context, any, error) { called++ })
				if err != nil {
					t.Error(err)
				}
			})
			<-release
			made := o.book.made
			end(o)
			<-life.Done()
			if name != "the room ended" {
				if o.book.made != made+1 {
					t.Fatalf("%d handlers made, %d before", o.book.made, made)
				}
				o.until("the end of the work", func() bool { return !o.room.handler.busy() })
			}
			o.pass(time.Hour)
			want(t, "calls of what the first handler had under way", called, 0)
		})
	}
}

func TestWork(t *testing.T) {
	o := newOffice(t, nil)
	var got []string
	then := func(ctx *Context, v any, err error) { got = append(got, fmt.Sprint(ctx.Room(), " ", v, " ", err)) }
	o.inside(func(ctx *Context) {
		for _, do := range []func(context.Context) (any, error){
			func(context.Context) (any, error) { return 7, nil },
			func(context.Context) (any, error) { return nil, errors.New("no") },
			func(context.Context) (any, error) { panic("no") },
			func(context.Context) (any, error) { runtime.Goexit(); return nil, nil },
		} {
			if err := ctx.Go(do, then); err != nil {
				t.Fatal(err)
			}
		}
	})
	o.until("the work's ends", func() bool { return len(got) == 4 })
	slices.Sort(got)
	want(t, "then", strings.Join(got, ", "), "chat:1 7 <nil>, chat:1 <nil> no, "+
		"chat:1 <nil> room: the work panicked, chat:1 <nil> room: the work panicked")
	want(t, "under way", o.room.handler.busy(), false)
}

func TestWorkIsBounded(t *testing.T) {
	o := newOffice(t, nil)
	release := make(chan struct{})
	ended := 0
	o.inside(func(ctx *Context) {
		n, err := 0, error(nil)
		for err == nil {
			err = ctx.Go(func(context.Context) (any, error) { <-release; return nil, nil }, func(*Context, any, error) { ended++ })
			n++
		}
		want(t, "taken", n-1, MaxWork)
		want(t, "one more", err, ErrBusy)
	})
	close(release)
	o.until("their ends", func() bool { return ended == MaxWork })
}

// The pool's share of the tenant is one for all of its rooms.
func TestWorkBeyondTheTenantsShare(t *testing.T) {
	o := newOffice(t, nil)
	release := make(chan struct{})
	for o.pool.Block(o.tenant, func() { <-release }) {
	}
	o.inside(func(ctx *Context) {
		want(t, "work", ctx.Go(nil, nil), ErrBusy)
	})
	want(t, "under way", o.room.handler.busy(), false)
	close(release)
}

// A room stays for what is under way in it, but not for timers.
func TestRoomStaysForWhatIsUnderWay(t *testing.T) {
	linger := func(o *office) int {
		o.now += int64(time.Hour)
		o.room.mb.Raise(&o.room.own, lingered)
		o.run()
		return o.ended
	}
	t.Run("work", func(t *testing.T) {
		o := newOffice(t, nil)
		release := make(chan struct{})
		o.inside(func(ctx *Context) {
			_ = ctx.Go(func(context.Context) (any, error) { <-release; return nil, nil }, func(*Context, any, error) {})
		})
		want(t, "ended", linger(o), 0)
		close(release)
		o.until("its end", func() bool { return !o.room.handler.busy() })
		want(t, "ended", linger(o), 1)
	})
	t.Run("a later answer", func(t *testing.T) {
		o := newOffice(t, nil)
		var reply *Reply
		o.do = func(_ *Context, c *Command) (any, error) { reply = c.Later(); return nil, nil }
		o.ask()
		want(t, "ended", linger(o), 0)
		reply.Answer(nil, nil)
		want(t, "ended", linger(o), 1)
	})
	t.Run("a command that the broker is asked about", func(t *testing.T) {
		o := newOffice(t, nil)
		o.command(func(c *message.Command) { c.DedupKey = "k" })
		o.run()
		want(t, "ended", linger(o), 0)
	})
	t.Run("a timer", func(t *testing.T) {
		o := newOffice(t, nil)
		o.inside(func(ctx *Context) { _, _ = ctx.After(2*time.Hour, func(*Context) {}) })
		want(t, "ended", linger(o), 1)
	})
}

func TestTicks(t *testing.T) {
	o := newOffice(t, func(k *Kind) { k.Tick = 100 * time.Millisecond })
	n, takes := 0, time.Duration(0)
	o.tick = func(*Context) { n++; o.now += int64(takes) }
	o.pass(time.Second)
	want(t, "without members", n, 0)
	alice := o.member("alice")
	o.pass(100*time.Millisecond - 1)
	want(t, "before the first", n, 0)
	o.pass(1)
	want(t, "the first", n, 1)
	o.pass(time.Second)
	want(t, "late ones are not made up for", n, 2)
	o.pass(50 * time.Millisecond)
	want(t, "out of their row", n, 2)
	o.pass(50 * time.Millisecond)
	want(t, "in their row", n, 3)
	takes = 130 * time.Millisecond
	o.pass(100 * time.Millisecond)
	o.pass(70 * time.Millisecond)
	want(t, "one that takes longer than the interval costs one", n, 5)
	takes = 0
	alice.leave()
	o.pass(time.Second)
	want(t, "when the last has left", n, 5)
	want(t, "timers set for nothing", o.room.handler.clockAt, 0)
	o.member("bob")
	o.pass(100 * time.Millisecond)
	want(t, "with members again", n, 6)
}

// A handler whose ticks take most of the room's time is named, once.
func TestTicksThatTakeLongAreLogged(t *testing.T) {
	var log strings.Builder
	o := newOffice(t, func(k *Kind) { k.Tick = 100 * time.Millisecond })
	o.room.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.member("alice")
	takes := 51 * time.Millisecond
	o.tick = func(*Context) { o.now += int64(takes) }
	ticks := func(n int) int {
		for range n {
			o.pass(100 * time.Millisecond)
		}
		return strings.Count(log.String(), "more than half")
	}
	want(t, "not in a row", ticks(heavyTicks-1), 0)
	takes = 50 * time.Millisecond
	want(t, "half is fine", ticks(1), 0)
	takes = 51 * time.Millisecond
	want(t, "not in a row yet", ticks(heavyTicks-1), 0)
	want(t, "in a row", ticks(1), 1)
	want(t, "once", ticks(3*heavyTicks), 1)
}

// A panic in what the handler has asked for costs that call alone.
func TestPanicInAnErrand(t *testing.T) {
	for name, begin := range map[string]func(o *office){
		"timer": func(o *office) {
			o.inside(func(ctx *Context) { _, _ = ctx.After(0, func(*Context) { panic("timer") }) })
		},
		"tick": func(o *office) { o.book.panics["tick"] = 1; o.pass(time.Second) },
		"then": func(o *office) {
			o.inside(func(ctx *Context) {
				_ = ctx.Go(func(context.Context) (any, error) { return nil, nil }, func(*Context, any, error) { panic("then") })
			})
			o.until("the panic", func() bool { return o.room.handler.waiting })
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, func(k *Kind) { k.Tick = time.Second })
			alice := o.member("alice")
			o.publishAll(alice, 1, 3)
			alice.frames()
			begin(o)
			waits := alice.publishing("message", "100")
			o.run()
			want(t, "requests wait for the next handler", waits.n, 0)
			o.recovered()
			want(t, "and are served by it", waits, "accepted")
			want(t, "alice", alice.frames(), "[event 4]")
			want(t, "state", o.peer("bob", 64).join(), "[joined 4 [106,4]]")
			want(t, "handlers made", o.book.made, 2)
			o.do = func(*Context, *Command) (any, error) { return "served", nil }
			want(t, "commands", o.ask(), `"served"`)
		})
	}
}

// Where requests and errands are slow neither starves the other.
func TestErrandsAndRequestsTakeTurns(t *testing.T) {
	o := newOffice(t, nil)
	var order []string
	slow := func(what string) {
		order = append(order, what)
		o.now += int64(2 * time.Millisecond) // longer than a batch may take
	}
	o.do = func(ctx *Context, c *Command) (any, error) {
		for range 4 {
			_, _ = ctx.After(0, func(*Context) { slow("errand") })
		}
		return nil, nil
	}
	o.command(nil)
	o.pool.Step()
	o.do = func(*Context, *Command) (any, error) { slow("request"); return nil, nil }
	for range 4 {
		o.command(nil)
	}
	o.run()
	turns := 0
	for i := 1; i < len(order); i++ {
		if order[i] != order[i-1] {
			turns++
		}
	}
	if len(order) != 8 || turns < 5 {
		t.Errorf("%v", order)
	}
}

func TestContextOfErrandsEndsWithTheCallback(t *testing.T) {
	o := newOffice(t, nil)
	var kept *Context
	var cmd *Command
	o.do = func(ctx *Context, c *Command) (any, error) { kept, cmd = ctx, c; return nil, nil }
	o.ask()
	for name, use := range map[string]func(){
		"After": func() { _, _ = kept.After(0, nil) }, "Go": func() { _ = kept.Go(nil, nil) },
		"Later": func() { cmd.Later() }, "Context": func() { cmd.Context() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s works after its callback", name)
				}
			}()
			use()
		}()
	}
}

func TestSnapshotEvery(t *testing.T) {
	for every, applied := range map[int]string{0: "[1 2 3 4 5 6 7 8 9 10]", 4: "[9 10]", 100: "[1 2 3 4 5 6 7 8 9 10]"} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			o := newOffice(t, func(k *Kind) { k.SnapshotEvery = every })
			alice := o.member("alice")
			o.publishAll(alice, 1, 10)
			o.book.panics["publish"] = 1
			alice.publish("message", "1")
			o.recovered()
			want(t, "the next handler applied", o.book.applied, applied)
			want(t, "state", o.peer("bob", 64).join(), "[joined 10 [55,10]]")
		})
	}
}
