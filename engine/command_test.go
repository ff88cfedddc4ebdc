package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// servant is a puppet that takes commands and ticks.
type servant struct {
	puppet
	command func(*room.Context, *room.Command) (any, error)
	tick    func(*room.Context)
}

func (s *servant) Command(ctx *room.Context, c *room.Command) (any, error) { return s.command(ctx, c) }

func (s *servant) Tick(ctx *room.Context) {
	if s.tick != nil {
		s.tick(ctx)
	}
}

// serving is a kind whose rooms answer commands by f.
func serving(name string, f func(*room.Context, *room.Command) (any, error)) room.Kind {
	return kind(name, func() room.Handler { return &servant{command: f} })
}

func echo(_ *room.Context, c *room.Command) (any, error) { return c.Data, nil }

var bothCodecs = []codec.Codec{codec.JSON, codec.Msgpack}

func TestCommandIsAnsweredInBothCodecs(t *testing.T) {
	refusal := &codec.Error{Code: codec.CodeConflict, Message: "taken"}
	refusal.Data, _ = codec.NewData(map[string]any{"by": "bob"})
	e := start(t, func(c *Config) {
		c.Kinds = []room.Kind{serving("desk", func(_ *room.Context, c *room.Command) (any, error) {
			switch c.Name {
			case "echo":
				return c.Data, nil
			case "who":
				return []any{c.From, c.Member != nil, c.Data.IsZero()}, nil
			case "later":
				reply := c.Later()
				go reply.Answer("later", nil)
				return nil, nil
			case "refuse":
				return nil, refusal
			}
			return nil, errors.New("a secret")
		})}
	})
	for _, in := range bothCodecs {
		c := dial(t, e, in, memory.Options{})
		c.hello("acme/alice")
		for _, step := range []struct{ ask, at, want string }{
			{`{"t":"command","room":"desk:1","name":"echo","data":{"a":[1,2.5,"x",null]}}`, "ok", "map[data:map[a:[1 2.5 x <nil>]]]"},
			{`{"t":"command","room":"desk:1","name":"echo"}`, "ok", "map[data:<nil>]"},
			{`{"t":"command","room":"desk:1","name":"who"}`, "ok.data", "[alice false true]"},
			{`{"t":"join","room":"desk:1"}`, "ok.room", "desk:1"},
			{`{"t":"command","room":"desk:1","name":"who","data":1}`, "ok.data", "[alice true false]"},
			{`{"t":"command","room":"desk:1","name":"later"}`, "ok.data", "later"},
			{`{"t":"command","room":"desk:1","name":"refuse"}`, "err", "map[code:conflict data:map[by:bob] message:taken]"},
			{`{"t":"command","room":"desk:1","name":"fail"}`, "err", "map[code:internal message:the command failed]"},
		} {
			if r, _ := c.ask(step.ask); fmt.Sprint(r.at(step.at)) != step.want {
				t.Errorf("%v: %s: %v", in, step.ask, r)
			}
		}
	}
}

func TestCommandsAreRefusedInOrder(t *testing.T) {
	e := start(t, func(c *Config) {
		c.Kinds = []room.Kind{serving("desk", echo), kind("mute", one(&puppet{})), {Name: "plain"}}
	})
	tenants := start(t, func(c *Config) {
		c.Commands = func(context.Context, Command) (any, error) { return nil, nil }
	})
	for _, c := range []struct {
		name, grants, ask, want string
		at                      *Engine
	}{
		{"no right", `[{"rooms":"*","allow":["join","publish","history","presence"]}]`, `"room":"desk:1","name":"x"`, "forbidden", e},
		{"no right, and no such kind", `[]`, `"room":"none:1","name":"x"`, "forbidden", e},
		{"no right, and no time", `[]`, `"room":"desk:1","name":"x","deadline_ms":0`, "forbidden", e},
		{"right elsewhere", `[{"rooms":"desk:2","allow":["command"]}]`, `"room":"desk:1","name":"x"`, "forbidden", e},
		{"no such kind", `[{"rooms":"*","allow":["command"]}]`, `"room":"none:1","name":"x","deadline_ms":0`, "not_found", e},
		{"kind without code", `[{"rooms":"*","allow":["command"]}]`, `"room":"plain:1","name":"x"`, "not_found", e},
		{"handler that takes none", `[{"rooms":"*","allow":["command"]}]`, `"room":"mute:1","name":"x"`, "not_found", e},
		{"no time", `[{"rooms":"*","allow":["command"]}]`, `"room":"desk:1","name":"x","deadline_ms":0`, "deadline_exceeded", e},
		{"a negative time", `[]`, `"room":"desk:1","name":"x","deadline_ms":-1`, "bad_request", e},
		{"no number", `[]`, `"room":"desk:1","name":"x","deadline_ms":"1"`, "bad_request", e},
		{"no name", `[]`, `"room":"desk:1"`, "bad_request", e},
		{"more time than there is", `[{"rooms":"*","allow":["command"]}]`, `"room":"desk:1","name":"x","deadline_ms":9007199254740991`, "", e},
		{"not joined, which is the handler's business", `[{"rooms":"desk:1","allow":["command"]}]`, `"room":"desk:1","name":"x"`, "", e},
		{"of the tenant, by a prefix", `[{"rooms":"desk:*","allow":["command"]}]`, `"name":"x"`, "forbidden", tenants},
		{"of the tenant, without a handler", `[{"rooms":"*","allow":["command"]}]`, `"name":"x"`, "not_found", e},
		{"of the tenant, no right and no handler", `[]`, `"name":"x"`, "forbidden", e},
		{"of the tenant, no time", `[{"rooms":"*","allow":["command"]}]`, `"name":"x","deadline_ms":0`, "deadline_exceeded", tenants},
		{"of the tenant", `[{"rooms":"*","allow":["command"]}]`, `"name":"x"`, "", tenants},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := join(t, c.at, "acme/a/"+c.grants)
			r, _ := cl.ask(`{"t":"command",` + c.ask + `}`)
			if code, _ := r.at("err.code").(string); code != c.want {
				t.Errorf("%v, want %q", r, c.want)
			}
		})
	}
}

// A command that is not answered by its deadline is answered then, once, whatever
// comes later. Virtual time.
func TestCommandDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var replies []*room.Reply
		var contexts []context.Context
		e := start(t, func(c *Config) {
			c.Limits.Ping = time.Hour
			c.Kinds = []room.Kind{serving("desk", func(_ *room.Context, c *room.Command) (any, error) {
				replies, contexts = append(replies, c.Later()), append(contexts, c.Context())
				return nil, nil
			})}
		})
		c := join(t, e, "acme/a")
		began := time.Now()
		c.request(`{"t":"command","room":"desk:1","name":"default"}`)
		c.request(`{"t":"command","room":"desk:1","name":"long","deadline_ms":40000}`)
		c.request(`{"t":"command","room":"desk:1","name":"short","deadline_ms":1500}`)
		c.request(`{"t":"command","room":"desk:1","name":"answered","deadline_ms":2000}`)
		synctest.Wait()
		for i, ctx := range contexts {
			if ctx.Err() != nil {
				t.Errorf("context %d has ended: %v", i, ctx.Err())
			}
		}
		replies[3].Answer("in time", nil)
		for _, step := range []struct {
			id   int
			want string
			at   time.Duration
		}{{4, "in time", 0}, {3, "deadline_exceeded", 1500 * time.Millisecond}, {1, "deadline_exceeded", 30 * time.Second}, {2, "deadline_exceeded", 40 * time.Second}} {
			r := c.nextWithin(time.Minute)
			got := fmt.Sprint(r["id"], r.at("ok.data"), r.at("err.code"))
			if want := fmt.Sprint(step.id, "<nil>", step.want); step.id != 4 && got != want || step.id == 4 && r.at("ok.data") != "in time" {
				t.Fatalf("%v, want %v", r, step)
			}
			if late := time.Since(began) - step.at; late < 0 || late > 30*time.Millisecond {
				t.Errorf("%d: %v late", step.id, late)
			}
			if i := step.id - 1; contexts[i].Err() == nil {
				t.Errorf("the context of %d goes on", step.id)
			}
		}
		for _, r := range replies {
			if r.Answer("late", nil) {
				t.Error("a late answer counts")
			}
		}
		if r, _ := c.ask(`{"t":"join","room":"desk:1"}`); r.at("ok.room") != "desk:1" {
			t.Errorf("next came %v", r)
		}
		c.conn.Close(1000)
		<-c.conn.Done()
	})
}

// nextWithin is next, in virtual time.
func (c *client) nextWithin(d time.Duration) frame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	f, err := c.recv(ctx)
	if err != nil {
		c.t.Fatalf("recv: %v", err)
	}
	return f
}

// With its session a command ends: what waits is not begun, what runs is told.
func TestCommandsEndWithTheirSession(t *testing.T) {
	for _, how := range []string{"cut", "closed"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in which the handler is not given up
				in, release := make(chan struct{}), make(chan struct{})
				started := atomic.Int64{}
				contexts := make(chan context.Context, 8)
				e := start(t, func(c *Config) {
					c.Kinds = []room.Kind{serving("desk", func(ctx *room.Context, c *room.Command) (any, error) {
						started.Add(1)
						switch c.Name {
						case "later":
							c.Later()
							contexts <- c.Context()
						case "slow":
							close(in)
							<-release
						}
						return nil, nil
					})}
				})
				c := join(t, e, "acme/a")
				other := join(t, e, "acme/b", "desk:1")
				c.request(`{"t":"command","room":"desk:1","name":"later","deadline_ms":3600000}`)
				c.request(`{"t":"command","room":"desk:1","name":"later","deadline_ms":3600000,"dedup_key":"k"}`)
				plain, keyed := <-contexts, <-contexts
				c.request(`{"t":"command","room":"desk:1","name":"slow"}`)
				<-in
				for range 5 {
					c.request(`{"t":"command","room":"desk:1","name":"never"}`)
				}
				c.request(`{"t":"ping"}`)
				c.until("pong") // so all of them are with the room
				if how == "cut" {
					c.conn.Cut()
				} else {
					c.conn.Close(1000)
				}
				<-c.conn.Done()
				bounded(t, 10*time.Second, "the command's context", func() { <-plain.Done() })
				// What is left: the tenant, the room and the other session.
				settled(t, "the session's actor has ended", func() bool { return e.system.Live() == 3 })
				close(release)
				if r, _ := other.ask(`{"t":"publish","room":"desk:1","event":"message","data":1}`); r["ok"] == nil {
					t.Errorf("%v", r)
				}
				if n := started.Load(); n != 3 {
					t.Errorf("%d commands were begun, want 3", n)
				}
				if keyed.Err() != nil {
					t.Error("one with a dedup key, whose result somebody may come for, has ended too")
				}
			})
		})
	}
}

// PROTOCOL section 6, Repeats: of the commands with one key one is done; those that
// come while it is wait for it, later ones get its result, whoever asks.
func TestRepeatedCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		answers := make(chan *room.Reply, 16)
		handler := func(_ *room.Context, c *room.Command) (any, error) {
			n := ran.Add(1)
			switch c.Name {
			case "later":
				answers <- c.Later()
			case "fail":
				return nil, room.Refuse(codec.CodeConflict, "no")
			}
			return n, nil
		}
		off := serving("off", handler)
		off.DedupWindow = -1
		e := start(t, func(c *Config) {
			c.Limits.Ping = time.Hour
			c.Kinds = []room.Kind{serving("desk", handler), off}
		})
		a, again, b := join(t, e, "acme/a"), join(t, e, "acme/a"), join(t, e, "acme/b")
		ask := func(c *client, room, name, key string) string {
			r, _ := c.ask(fmt.Sprintf(`{"t":"command","room":%q,"name":%q,"dedup_key":%q,"data":%d}`, room, name, key, ran.Load()))
			return fmt.Sprint(r.at("ok.data"), " ", r.at("ok.duplicate"), " ", r.at("err.code"))
		}
		check := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		check("the first", ask(a, "desk:1", "do", "k"), "1 <nil> <nil>")
		check("its repeat", ask(a, "desk:1", "do", "k"), "1 true <nil>")
		check("on another connection", ask(again, "desk:1", "do", "k"), "1 true <nil>")
		check("by another subject", ask(b, "desk:1", "do", "k"), "2 <nil> <nil>")
		check("in another room", ask(a, "desk:2", "do", "k"), "3 <nil> <nil>")
		check("one that fails", ask(a, "desk:1", "fail", "f"), "<nil> <nil> conflict")
		check("what was not done is done again", ask(a, "desk:1", "do", "f"), "5 <nil> <nil>")
		check("without a window", ask(a, "off:1", "do", "k")+", "+ask(a, "off:1", "do", "k"), "6 <nil> <nil>, 7 <nil> <nil>")

		// While the first waits, on the same connection and on another.
		for range 3 {
			a.request(`{"t":"command","room":"desk:1","name":"later","dedup_key":"l"}`)
			again.request(`{"t":"command","room":"desk:1","name":"later","dedup_key":"l"}`)
		}
		synctest.Wait()
		(<-answers).Answer("once", nil)
		duplicates := 0
		for _, c := range []*client{a, again} {
			for id, r := range c.replies(3) {
				if r.at("ok.data") != "once" {
					t.Errorf("%d: %v", id, r)
				}
				if r.at("ok.duplicate") == true {
					duplicates++
				}
			}
		}
		if n := ran.Load(); n != 8 || duplicates != 5 {
			t.Errorf("ran %d times, %d duplicates", n, duplicates)
		}

		// Its client does not live to see the result; who repeats it does.
		again.request(`{"t":"command","room":"desk:1","name":"later","dedup_key":"m"}`)
		reply := <-answers
		again.conn.Cut()
		<-again.conn.Done()
		synctest.Wait()
		if !reply.Answer("still", nil) {
			t.Error("a result with a key is for nobody")
		}
		check("the repeat after a lost connection", ask(a, "desk:1", "later", "m"), "still true <nil>")

		// The same after its deadline.
		a.request(`{"t":"command","room":"desk:1","name":"later","dedup_key":"n","deadline_ms":100}`)
		if r := a.next(); r.at("err.code") != "deadline_exceeded" {
			t.Errorf("%v", r)
		}
		id := a.request(`{"t":"command","room":"desk:1","name":"later","dedup_key":"n"}`)
		synctest.Wait()
		(<-answers).Answer("late", nil)
		if r := a.replies(1)[id]; r.at("ok.data") != "late" || r.at("ok.duplicate") != true {
			t.Errorf("the repeat after a deadline: %v", r)
		}

		time.Sleep(3 * time.Minute) // virtual
		check("after the window", ask(a, "desk:1", "do", "k"), "11 <nil> <nil>")
		for _, c := range []*client{a, b} {
			c.conn.Close(1000)
			<-c.conn.Done()
		}
	})
}

func TestCommandsOfTheTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		release := make(chan struct{})
		ended := make(chan error, 8)
		e := start(t, func(c *Config) {
			c.Limits.Ping = time.Hour
			c.Commands = func(ctx context.Context, c Command) (any, error) {
				n := ran.Add(1)
				switch c.Name {
				case "who":
					return fmt.Sprint(c.Tenant, " ", c.From, " ", c.Session != "", " ", string(c.Data.In(codec.JSON))), nil
				case "refuse":
					return nil, room.Refuse(codec.CodeConflict, "no")
				case "fail":
					return nil, errors.New("a secret")
				case "panic":
					panic("a secret")
				case "block":
					<-ctx.Done()
					ended <- ctx.Err()
				case "wait":
					<-release
				}
				return n, nil
			}
		})
		c := join(t, e, "acme/a")
		for _, step := range []struct{ ask, at, want string }{
			{`"name":"who","data":[1]`, "ok.data", "acme a true [1]"},
			{`"name":"refuse"`, "err.code", "conflict"},
			{`"name":"fail"`, "err.message", "the command failed"},
			{`"name":"panic"`, "err.message", "the command failed"},
			{`"name":"block","deadline_ms":50`, "err.code", "deadline_exceeded"},
			{`"name":"do","dedup_key":"k"`, "ok", "map[data:6]"},
			{`"name":"do","dedup_key":"k"`, "ok", "map[data:6 duplicate:true]"},
			{`"name":"refuse","dedup_key":"l"`, "err.code", "conflict"},
			{`"name":"do","dedup_key":"l"`, "ok", "map[data:8]"},
			{`"name":"panic","dedup_key":"m"`, "err.code", "internal"},
			{`"name":"do","dedup_key":"m"`, "ok", "map[data:10]"},
		} {
			if r, _ := c.ask(`{"t":"command",` + step.ask + `}`); fmt.Sprint(r.at(step.at)) != step.want {
				t.Errorf("%s: %v", step.ask, r)
			}
		}
		<-ended
		synctest.Wait() // a command may be answered before its worker is free again

		// Beyond the tenant's share of the blocking pool.
		other := join(t, e, "acme/b")
		for range 50 {
			c.request(`{"t":"command","name":"wait"}`)
			other.request(`{"t":"command","name":"wait"}`)
		}
		synctest.Wait()
		busy, done := 0, 0
		close(release)
		for _, cl := range []*client{c, other} {
			for _, r := range cl.replies(50) {
				switch {
				case r["ok"] != nil:
					done++
				case r.at("err.code") == "backpressured" && r.at("err.scope") == "tenant" && r.at("err.retry_after_ms") != nil:
					busy++
				default:
					t.Errorf("%v", r)
				}
			}
		}
		if busy != 4 || done != 96 { // 32 at work, 64 in line
			t.Errorf("%d were done, %d were too many", done, busy)
		}

		c.request(`{"t":"command","name":"block"}`)
		synctest.Wait()
		c.conn.Cut()
		<-ended
		<-c.conn.Done()

		// What somebody may come for goes on until the engine ends.
		other.request(`{"t":"command","name":"block","dedup_key":"z"}`)
		synctest.Wait()
		other.conn.Close(1000)
		<-other.conn.Done()
		synctest.Wait()
		if len(ended) != 0 {
			t.Error("a command with a key ended with its session")
		}
		e.closeWithin(t, 10*time.Second)
		<-ended
	})
}
