package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// judge is an Authorizer made of a function.
type judge func(ctx context.Context, a auth.Access) (auth.Decision, error)

func (j judge) Authorize(ctx context.Context, a auth.Access) (auth.Decision, error) { return j(ctx, a) }

// late allows everything, after any time up to so long.
func late(most time.Duration) auth.Authorizer {
	return judge(func(context.Context, auth.Access) (auth.Decision, error) {
		time.Sleep(rand.N(most))
		return auth.Allowed, nil
	})
}

// jury remembers what it was asked, and answers by "right room name".
type jury struct {
	mu    sync.Mutex
	asked []string
	say   map[string]any // auth.Decision or error; what is not there is denied
}

func (b *jury) Authorize(_ context.Context, a auth.Access) (auth.Decision, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what := strings.TrimSpace(fmt.Sprint(a.Right, " ", a.Room, " ", a.Name))
	b.asked = append(b.asked, a.Identity.Subject+" "+what)
	switch said := b.say[what].(type) {
	case auth.Decision:
		return said, nil
	case error:
		return auth.Allowed, said // which counts for nothing beside an error
	}
	var denied auth.Decision
	return denied, nil
}

// took is what was asked since it was called last.
func (b *jury) took() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := strings.Join(b.asked, ", ")
	b.asked = nil
	return asked
}

// set changes an answer.
func (b *jury) set(what string, say any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.say[what] = say
}

func roll(*room.Context, *room.Command) (any, error) { return 6, nil }

// Each request that takes a right is asked about, on every way, and is refused unless
// the answer is a yes; what the grants refuse is not asked about.
// B104: dunglas/mercure#372, #579, #691
func TestB104_AnAuthorizerIsAskedAboutEachRight(t *testing.T) {
	for _, in := range bothCodecs {
		say := &jury{say: map[string]any{}}
		w := startWeb(t, func(c *Config) {
			k := serving("chat", roll)
			k.Presence = true
			c.Kinds = []room.Kind{k, {Name: "open", Publish: room.Grant}, {Name: "board", Publish: room.Server}}
			c.Authorizer = say
			c.Commands = func(context.Context, Command) (any, error) { return "done", nil }
		})
		c := dial(t, w.e, in, memory.Options{})
		c.hello("acme/a")
		asHTTP := "Authorization: Bearer acme/a"
		for _, tt := range []struct {
			what, doc          string
			method, path, body string // of the same over HTTP; empty: it is not there
		}{
			{"join chat:1", `{"t":"join","room":"chat:1"}`, "", "", ""},
			{"history chat:1", `{"t":"history","room":"chat:1"}`, "GET", "/v1/rooms/chat:1/history", ""},
			{"presence chat:1", `{"t":"presence","room":"chat:1"}`, "GET", "/v1/rooms/chat:1/presence", ""},
			{"command chat:1 roll", `{"t":"command","room":"chat:1","name":"roll"}`, "POST", "/v1/rooms/chat:1/commands/roll", "{}"},
			{"command  all", `{"t":"command","name":"all"}`, "", "", ""},
			{"publish open:1 message", `{"t":"publish","room":"open:1","event":"message","data":1}`, "POST", "/v1/rooms/open:1/publish", `{"event":"message","data":1}`},
		} {
			for answer, want := range map[any]string{
				auth.Denied: "forbidden <nil>", errors.New("away"): "unavailable 1000", auth.Decision(9): "forbidden <nil>",
				auth.AllowedOnce: "<nil> <nil>", auth.Allowed: "<nil> <nil>",
			} {
				say.set(tt.what, answer)
				r, _ := c.ask(tt.doc)
				if got := fmt.Sprint(r.at("err.code"), " ", r.at("err.retry_after_ms")); got != want {
					t.Errorf("%v, %s, answered %v: %v", in, tt.what, answer, r)
				}
				if asked := say.took(); asked != "a "+tt.what {
					t.Errorf("%v, %s: asked about %s", in, tt.what, asked)
				}
				if tt.path == "" {
					continue
				}
				resp, f := w.do(tt.method, tt.path, tt.body, asHTTP)
				status := map[string]int{"forbidden <nil>": 403, "unavailable 1000": 503, "<nil> <nil>": 200}[want]
				if got := fmt.Sprint(f.at("err.code"), " ", f.at("err.retry_after_ms")); got != want || resp.StatusCode != status {
					t.Errorf("%s over HTTP, answered %v: %d %v", tt.what, answer, resp.StatusCode, f)
				}
				if asked := say.took(); asked != "a "+tt.what {
					t.Errorf("%s over HTTP: asked about %s", tt.what, asked)
				}
			}
		}
		stranger := dial(t, w.e, in, memory.Options{})
		stranger.hello(`acme/b/[{"rooms":"chat:9","allow":["join"]}]`)
		for _, doc := range []string{
			`{"t":"join","room":"chat:1"}`, `{"t":"join","room":"chat:9","presence":true}`, `{"t":"history","room":"chat:9"}`,
			`{"t":"publish","room":"open:1","event":"message","data":1}`, `{"t":"command","name":"all"}`, `{"t":"command","room":"chat:1","name":"roll"}`,
		} {
			if r, _ := stranger.ask(doc); r.at("err.code") != "forbidden" {
				t.Errorf("%s without a grant: %v", doc, r)
			}
		}
		for _, doc := range []string{
			`{"t":"join","room":"none:1"}`, `{"t":"publish","room":"chat:2","event":"message","data":1}`,
			`{"t":"publish","room":"board:1","event":"message","data":1}`, `{"t":"join","room":"open:1","presence":true}`,
		} {
			if r, _ := c.ask(doc); r["err"] == nil {
				t.Errorf("%s: %v", doc, r)
			}
		}
		if asked := say.took(); asked != "" {
			t.Errorf("asked about what is refused anyway: %s", asked)
		}
	}
}

// What a member may publish is asked about once for each membership, if the answer
// is for all of it, and anew under other credentials.
func TestAMembersPublishesAreAskedAboutOnce(t *testing.T) {
	say := &jury{say: map[string]any{"join chat:1": auth.Allowed, "join chat:2": auth.Allowed}}
	e := start(t, func(c *Config) { c.Authorizer = say })
	c := join(t, e, "acme/a", "chat:1")
	publishes := func(event string, answer any, want string, asked string) {
		t.Helper()
		say.took()
		say.set("publish chat:1 "+event, answer)
		r, _ := c.ask(fmt.Sprintf(`{"t":"publish","room":"chat:1","event":%q,"data":1}`, event))
		if got := fmt.Sprint(r.at("err.code")); got != want {
			t.Errorf("%s: %v", event, r)
		}
		if got := say.took(); got != asked {
			t.Errorf("%s: asked about %q, want %q", event, got, asked)
		}
	}
	publishes("a", auth.Denied, "forbidden", "a publish chat:1 a")
	publishes("a", auth.Denied, "forbidden", "a publish chat:1 a")
	publishes("b", auth.AllowedOnce, "<nil>", "a publish chat:1 b")
	publishes("b", auth.AllowedOnce, "<nil>", "a publish chat:1 b")
	publishes("b", errors.New("away"), "unavailable", "a publish chat:1 b")
	publishes("c", auth.Allowed, "<nil>", "a publish chat:1 c")
	for range 3 {
		publishes("c", auth.Denied, "<nil>", "")
		publishes("a", auth.Denied, "<nil>", "")
	}
	if r, _ := c.ask(`{"t":"join","room":"chat:1"}`); r["ok"] == nil {
		t.Fatal(r)
	}
	publishes("c", auth.Denied, "forbidden", "a publish chat:1 c")
	publishes("c", auth.Allowed, "<nil>", "a publish chat:1 c")
	if r, _ := c.ask(`{"t":"token","token":"acme/a"}`); r["ok"] == nil {
		t.Fatal(r)
	}
	publishes("c", auth.Denied, "forbidden", "a publish chat:1 c")
	c.ask(`{"t":"leave","room":"chat:1"}`)
	publishes("c", auth.Allowed, "not_joined", "")
}

// Of the hello each room is asked about, all at the same time, and what gets no answer
// keeps the others waiting no longer than a room might.
func TestAnAuthorizerAndTheRoomsOfAHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) {
			c.Authorizer = judge(func(ctx context.Context, a auth.Access) (auth.Decision, error) {
				switch a.Room {
				case "chat:no":
					return auth.Denied, nil
				case "chat:never":
					<-ctx.Done()
					return auth.Denied, ctx.Err()
				}
				time.Sleep(100 * time.Millisecond)
				return auth.Allowed, nil
			})
		})
		began := time.Now()
		w := dial(t, e, codec.JSON, memory.Options{}).hello("acme/a", "chat:1", "chat:no", "chat:2", "chat:1", "chat:3", "chat:4")
		got := fmt.Sprintln(w.at("rooms.0.ok.room"), w.at("rooms.1.err.code"), w.at("rooms.2.ok.room"), w.at("rooms.3.ok.room"), w.at("rooms.5.ok.room"))
		if got != "chat:1 forbidden chat:2 chat:1 chat:4\n" {
			t.Errorf("welcome: %v", w)
		}
		if took := time.Since(began); took > 250*time.Millisecond {
			t.Errorf("took %v", took)
		}
		began = time.Now()
		c := dial(t, e, codec.JSON, memory.Options{})
		w = c.hello("acme/b", "chat:1", "chat:never", "chat:2")
		if took := time.Since(began); w.at("rooms.0.ok.room") != "chat:1" || w.at("rooms.1.err.code") != "unavailable" || w.at("rooms.1.err.retry_after_ms") == nil ||
			w.at("rooms.2.ok.room") != "chat:2" || took < 2*time.Second || took > 3*time.Second {
			t.Errorf("after %v: %v", took, w)
		}
		time.Sleep(10 * time.Second)
		e.publish(t, "acme", "chat:never", "message", 1)
		if _, before := c.ask(`{"t":"leave","room":"chat:1"}`); len(before) > 0 {
			t.Errorf("a member after all: %v", before)
		}
	})
}

// An Authorizer that does not return has its time, and holds up nothing but what it
// was asked about.
func TestAnAuthorizerThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		e := start(t, func(c *Config) {
			c.Authorizer = judge(func(_ context.Context, a auth.Access) (auth.Decision, error) {
				switch a.Room {
				case "chat:stuck":
					<-free
				case "chat:panic":
					panic("authorizer")
				}
				return auth.Allowed, nil
			})
		})
		c := join(t, e, "acme/a", "chat:1")
		began := time.Now()
		c.send(`{"t":"join","id":1000,"room":"chat:stuck"}`)
		c.send(`{"t":"publish","id":1001,"room":"chat:stuck","event":"message","data":1}`) // behind it
		if r, _ := c.ask(`{"t":"publish","room":"chat:1","event":"message","data":1}`); r["ok"] == nil {
			t.Errorf("a publish to another room: %v", r)
		}
		if r, _ := c.ask(`{"t":"join","room":"chat:panic"}`); r.at("err.code") != "unavailable" {
			t.Errorf("a panic: %v", r)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it waited %v", took)
		}
		first, second := c.until("reply"), c.until("reply")
		if first.at("err.code") != "unavailable" || first.at("err.retry_after_ms") == nil || second.at("err.code") != "not_joined" {
			t.Errorf("%v, %v", first, second)
		}
		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("answered after %v", took)
		}
		close(free)
		synctest.Wait()
		if r, before := c.ask(`{"t":"leave","room":"chat:stuck"}`); r.at("err.code") != "not_joined" || len(before) > 0 {
			t.Errorf("it is a member by an answer that came too late: %v %v", r, before)
		}
	})
}

// Source: https://github.com/socketio/socket.io/issues/4380
func TestB086_JoinThatIsAuthorizedAfterTheDisconnectLeavesNoGhost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openKind
		k.Linger = 10 * time.Millisecond
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{k}
			c.Authorizer = judge(func(context.Context, auth.Access) (auth.Decision, error) {
				time.Sleep(500 * time.Millisecond)
				return auth.Allowed, nil
			})
		})
		for i := range 200 {
			c := dial(t, e, codec.JSON, memory.Options{})
			if i%2 == 0 {
				c.send(`{"t":"hello","token":"acme/a","rooms":[{"room":"slow:1"}]}`)
			} else {
				c.hello("acme/a")
				c.send(`{"t":"join","id":1,"room":"slow:1"}`)
			}
			time.Sleep(100 * time.Millisecond)
			c.conn.Cut()
			<-c.conn.Done()
		}
		time.Sleep(time.Second)
		if e.rooms() != 0 || e.system.Live() != 1 {
			t.Errorf("%d rooms, %d actors", e.rooms(), e.system.Live())
		}
	})
}

// An answer is of the credentials and of the connection that it was asked for.
// Source: https://github.com/centrifugal/centrifuge-js/issues/76
func TestB107_AnAuthorizersLateAnswerIsNotTheNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		e := start(t, func(c *Config) {
			c.Authorizer = judge(func(_ context.Context, a auth.Access) (auth.Decision, error) {
				if asked.Add(1); a.Room != "chat:2" {
					return auth.Allowed, nil
				}
				if a.Identity.Grants.Allows(auth.Command, a.Room) { // the older credentials
					time.Sleep(2 * time.Second)
					return auth.Allowed, nil
				}
				return auth.Denied, nil
			})
		})
		const lesser = `acme/alice/[{\"rooms\":\"*\",\"allow\":[\"join\"]}]`
		// Refreshed meanwhile.
		c := dial(t, e, codec.JSON, memory.Options{})
		w := c.hello("acme/alice")
		c.send(`{"t":"join","id":1000,"room":"chat:2"}`)
		time.Sleep(time.Second)
		if r, before := c.ask(`{"t":"token","token":"` + lesser + `"}`); r["ok"] == nil || len(before) > 0 {
			t.Fatalf("token: %v, before it %v", r, before)
		}
		if r := c.until("reply"); r.at("err.code") != "forbidden" || asked.Load() != 2 {
			t.Errorf("with other credentials: %v, asked %d times", r, asked.Load())
		}
		// On another connection meanwhile.
		c.ask(`{"t":"token","token":"acme/alice"}`)
		c.send(`{"t":"join","id":1001,"room":"chat:2"}`)
		time.Sleep(time.Second)
		newer, again := resume(t, e, codec.JSON, strings.ReplaceAll(lesser, `\`, ""), w["resume"], `{"room":"chat:2"}`)
		if again["resumed"] != true || again.at("rooms.0.err.code") != "forbidden" {
			t.Errorf("resume: %v", again)
		}
		time.Sleep(5 * time.Second)
		e.publish(t, "acme", "chat:2", "message", 1)
		if r, before := newer.ask(`{"t":"join","room":"chat:2"}`); r.at("err.code") != "forbidden" || len(before) > 0 {
			t.Errorf("the newer: %v, before it %v", r, before)
		}
	})
}

// New credentials are taken with an answer for each room that the session is in, or
// not at all: while there is none the old ones go on.
func TestARefreshAsksAnAuthorizerAboutEachRoom(t *testing.T) {
	for _, way := range []string{"frame", "HTTP"} {
		t.Run(way, func(t *testing.T) {
			say := &jury{say: map[string]any{"join chat:1": auth.Allowed, "join chat:2": auth.Allowed, "join chat:3": auth.Allowed, "presence chat:3": auth.Allowed}}
			w := startWeb(t, func(c *Config) {
				k := openKind
				k.Presence = true
				c.Kinds, c.Authorizer = []room.Kind{k}, say
			})
			c := dial(t, w.e, codec.JSON, memory.Options{})
			welcome := c.hello("acme/a", "chat:1", "chat:2", `{"room":"chat:3","presence":true}`)
			session := fmt.Sprint("Pulse-Session: ", welcome["session"])
			refresh := func() (code string) {
				t.Helper()
				if way == "frame" {
					r, _ := c.ask(`{"t":"token","token":"acme/a"}`)
					return fmt.Sprint(r.at("err.code"))
				}
				_, f := w.do("POST", "/v1/session/token", "", asTold1, session)
				return fmt.Sprint(f.at("err.code"))
			}
			say.took()
			if code := refresh(); code != "<nil>" {
				t.Fatalf("refused: %s", code)
			}
			for _, what := range []string{"a join chat:1", "a join chat:2", "a join chat:3", "a presence chat:3"} {
				if asked := say.took(); !strings.Contains(asked, what) {
					say.asked = append(say.asked, asked)
					t.Errorf("not asked: %s, but %s", what, asked)
				} else {
					say.asked = strings.Split(asked, ", ")
				}
			}
			say.set("join chat:2", auth.Denied)
			say.set("presence chat:3", errors.New("away"))
			if code := refresh(); code != "unavailable" {
				t.Errorf("without an answer: %s", code)
			}
			for _, room := range []string{"chat:1", "chat:2", "chat:3"} {
				w.e.publish(t, "acme", room, "message", room)
				if f := c.until("event"); f["room"] != room {
					t.Errorf("then: %v", f)
				}
			}
			say.set("presence chat:3", auth.Denied)
			if code := refresh(); code != "<nil>" {
				t.Errorf("refused: %s", code)
			}
			left := map[any]any{}
			for range 2 {
				f := c.until("left")
				left[f["room"]] = f["reason"]
			}
			if left["chat:2"] != "forbidden" || left["chat:3"] != "forbidden" {
				t.Errorf("left %v", left)
			}
			w.e.publish(t, "acme", "chat:1", "message", 1)
			if f := c.until("event"); f["room"] != "chat:1" {
				t.Errorf("then: %v", f)
			}
		})
	}
}

const asTold1 = "Authorization: Bearer acme/a"

// What waits to be asked about is bounded, in requests and in bytes, and given back;
// what goes beyond it is refused.
func TestWhatWaitsForAnAuthorizerIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		id             bool
		requests, size int
		most           int32 // that wait
	}{
		"requests":             {true, 200, 10, 64},
		"requests without ids": {false, 200, 10, 64},
		"bytes":                {true, 40, 30 << 10, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				free := make(chan struct{})
				var asked atomic.Int32
				e := start(t, func(c *Config) {
					c.Kinds = []room.Kind{{Name: "chat", Publish: room.Grant, MailboxItems: 1024}}
					c.Authorizer = judge(func(context.Context, auth.Access) (auth.Decision, error) {
						<-free
						asked.Add(1)
						return auth.AllowedOnce, nil
					})
				})
				c := join(t, e, "acme/a")
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for i := range tt.requests {
						id := ""
						if tt.id {
							id = fmt.Sprintf(`"id":%d,`, i+1)
						}
						c.send(fmt.Sprintf(`{"t":"publish",%s"room":"chat:%d","event":"message","data":%q}`, id, i, strings.Repeat("x", tt.size)))
					}
					c.send(`{"t":"leave","id":1000,"room":"none:1"}`)
				}()
				var refused frame
				for f := c.next(); whole(f["id"]) != 1000; f = c.next() {
					if refused = f; f["code"] != "rate_limited" && f.at("err.code") != "rate_limited" {
						t.Fatal(f)
					}
				}
				if <-sent; refused == nil {
					t.Error("nothing was refused")
				}
				close(free)
				settled(t, "all that waited is asked about", func() bool { return asked.Load() >= tt.most })
				c.id = 2000
				if r, _ := c.ask(`{"t":"join","room":"chat:0"}`); r["ok"] == nil || asked.Load() != tt.most+1 {
					t.Errorf("%d were asked about, want %d; then %v", asked.Load(), tt.most+1, r)
				}
			})
		})
	}
}

// A room that is joined while new credentials are looked at is asked about for those.
func TestAJoinWaitsForARefreshUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, free := make(chan struct{}), make(chan struct{})
		e := start(t, func(c *Config) {
			c.Authorizer = judge(func(_ context.Context, a auth.Access) (auth.Decision, error) {
				older := a.Identity.Grants.Allows(auth.Command, a.Room)
				if a.Room == "chat:1" && !older {
					close(under)
					<-free
				}
				if a.Room == "chat:2" && !older {
					return auth.Denied, nil
				}
				return auth.Allowed, nil
			})
		})
		c := join(t, e, "acme/a", "chat:1")
		c.send(`{"t":"token","id":1000,"token":"acme/a/[{\"rooms\":\"*\",\"allow\":[\"join\"]}]"}`)
		<-under
		c.send(`{"t":"join","id":1001,"room":"chat:2"}`)
		for range 50 {
			if r, before := c.ask(`{"t":"history","room":"chat:3"}`); r["ok"] == nil || len(before) > 0 {
				t.Errorf("another request: %v, before it %v", r, before)
			}
		}
		close(free)
		if first, second := c.until("reply"), c.until("reply"); whole(first["id"]) != 1000 || first["ok"] == nil || second.at("err.code") != "forbidden" {
			t.Errorf("%v, %v", first, second)
		}
	})
}

// A hello that names more rooms than a session may be in has no more questions asked.
func TestAnAuthorizerIsAskedAboutAsManyRoomsAsThereMayBe(t *testing.T) {
	var asked atomic.Int32
	e := start(t, func(c *Config) {
		c.Limits.SessionMaxRooms = 3
		c.Authorizer = judge(func(context.Context, auth.Access) (auth.Decision, error) {
			asked.Add(1)
			return auth.Allowed, nil
		})
	})
	w := dial(t, e, codec.JSON, memory.Options{}).hello("acme/a", "chat:1", "chat:2", "chat:3", "chat:4", "chat:5")
	if w.at("rooms.2.ok.room") != "chat:3" || w.at("rooms.3.err.code") != "quota_exceeded" || w.at("rooms.4.err.code") != "quota_exceeded" || asked.Load() != 3 {
		t.Errorf("asked %d times: %v", asked.Load(), w)
	}
}

// However many ask at once, who finds no place for their question is not refused, but
// asked about when there is.
func TestAnAuthorizerWithManyQuestions(t *testing.T) {
	var most, now atomic.Int32
	e := start(t, func(c *Config) {
		c.Limits.BlockingWorkers = 4
		c.Authorizer = judge(func(context.Context, auth.Access) (auth.Decision, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Millisecond)
			return auth.Allowed, nil
		})
	})
	var wg sync.WaitGroup
	for i := range 300 {
		c := join(t, e, fmt.Sprint("acme/m", i))
		wg.Go(func() {
			if r, _ := c.ask(`{"t":"join","room":"chat:1"}`); r["ok"] == nil {
				t.Errorf("%v", r)
			}
		})
	}
	wg.Wait()
	if most.Load() > 2 {
		t.Errorf("%d at once, of a tenant that may have 2", most.Load())
	}
}
