package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// ending is asTold whose credentials end when the token says so: "tenant/subject/ends"
// in ten seconds, "tenant/subject/DURATION" then.
type ending struct{}

func (ending) Authenticate(ctx context.Context, c auth.Credentials) (*auth.Identity, error) {
	parts := strings.SplitN(c.Token, "/", 3)
	if len(parts) < 3 {
		return asTold{}.Authenticate(ctx, c)
	}
	after := 10 * time.Second
	if parts[2] != "ends" {
		var err error
		if after, err = time.ParseDuration(parts[2]); err != nil {
			return nil, err
		}
	}
	return &auth.Identity{
		Tenant: parts[0], Subject: parts[1], Grants: auth.AllowAll(),
		Expires: time.Now().Add(after), Leeway: 5 * time.Second,
	}, nil
}

// lanes is a kind for each lane of buffered events.
func lanes() (kinds []room.Kind) {
	for _, lane := range []backpressure.Lane{backpressure.Interactive, backpressure.Bulk, backpressure.Lossy} {
		kinds = append(kinds, room.Kind{Name: lane.String(), Events: map[string]room.EventPolicy{
			room.Any: {Delivery: room.AtLeastOnce, Lane: lane},
			"fast":   {Delivery: room.Transient, Lane: backpressure.Interactive, Overflow: backpressure.DropOldest},
		}})
	}
	return kinds
}

const keepOnly = `acme/alice/[{\"rooms\":\"interactive:keep\",\"allow\":[\"join\",\"publish\"]},{\"rooms\":\"bulk:*\",\"allow\":[\"publish\"]}]`

// Rooms that the new credentials do not allow are left, after the reply, whatever
// lane they use and however much waits; what else they say counts at once.
func TestRefreshThatLosesRights(t *testing.T) {
	for _, in := range bothCodecs {
		for round := range 10 {
			e := start(t, func(c *Config) { c.Kinds = lanes() })
			c := dial(t, e, in, memory.Options{})
			lost := []string{"bulk:1", "interactive:1", "lossy:1"}
			c.hello("acme/alice", append([]string{"interactive:keep"}, lost...)...)
			for i := range 20 * round { // so that queues are full of other things
				for _, name := range lost {
					e.TryPublish(Event{Tenant: "acme", Room: name, Name: "message", Data: i})
				}
				c.send(`{"t":"ping"}`)
			}
			r, before := c.ask(`{"t":"token","token":"` + keepOnly + `"}`)
			if r.at("ok.resume") == nil || fmt.Sprint(r.at("ok.exp_ms")) != "0" {
				t.Fatalf("%v: reply: %v", in, r)
			}
			for _, f := range before {
				if f.t() == "left" {
					t.Errorf("%v: before the reply: %v", in, f)
				}
			}
			var left []string
			for len(left) < 3 {
				f := c.next()
				if f.t() == "left" && f["reason"] == "forbidden" {
					left = append(left, fmt.Sprint(f["room"]))
				} else if slices.Contains(left, fmt.Sprint(f["room"])) {
					t.Errorf("%v: after left: %v", in, f)
				}
			}
			if slices.Sort(left); !slices.Equal(left, lost) {
				t.Errorf("%v: left %q", in, left)
			}
			for _, name := range append(lost, "interactive:keep") {
				e.publish(t, "acme", name, "message", 1)
			}
			if f := c.until("event"); f["room"] != "interactive:keep" {
				t.Errorf("%v: the next event is %v", in, f)
			}
			for doc, want := range map[string]any{
				`{"t":"join","room":"bulk:1"}`:                                                "forbidden",
				`{"t":"publish","room":"interactive:1","event":"message","data":1}`:           "forbidden",
				`{"t":"publish","room":"bulk:1","event":"message","data":1}`:                  "not_joined",
				`{"t":"publish","room":"interactive:keep","event":"message","data":1}`:        nil,
				`{"t":"join","room":"interactive:keep"}`:                                      nil,
				`{"t":"history","room":"interactive:keep","limit":1}`:                         "forbidden",
				`{"t":"leave","room":"lossy:1"}`:                                              "not_joined",
				`{"t":"command","room":"interactive:keep","name":"c"}`:                        "forbidden",
				`{"t":"publish","room":"lossy:elsewhere","event":"message","data":{"a":[1]}}`: "forbidden",
			} {
				if r, _ := c.ask(doc); r.at("err.code") != want {
					t.Errorf("%v: %s: %v, want %v", in, doc, r, want)
				}
			}
			// What was lost may come back.
			if r, _ := c.ask(`{"t":"token","token":"acme/alice"}`); r.at("ok") == nil {
				t.Errorf("%v: reply: %v", in, r)
			}
			if r, _ := c.ask(`{"t":"join","room":"bulk:1"}`); r.at("ok") == nil {
				t.Errorf("%v: join: %v", in, r)
			}
		}
	}
}

// A token that is not taken leaves the old credentials in place.
func TestRefreshThatIsRefused(t *testing.T) {
	for _, in := range bothCodecs {
		e := start(t, func(c *Config) {
			c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
				switch cr.Token {
				case "fails":
					return nil, errors.New("the issuer is down")
				case "panics":
					panic("authenticator")
				case "nobody":
					return &auth.Identity{}, nil
				}
				if !strings.HasPrefix(cr.Protocol, "pulse.v1.") || cr.Source != auth.Hello || cr.Remote != "127.0.0.1" {
					t.Errorf("asked with %+v", cr)
				}
				return asTold{}.Authenticate(ctx, cr)
			})
		})
		c := dial(t, e, in, memory.Options{})
		w := c.hello(`acme/alice/[{"rooms":"chat:1","allow":["join","publish"]}]`, "chat:1")
		for token, want := range map[string]string{
			"acme/mallory": "forbidden", "evil/alice": "forbidden", "bad": "unauthenticated", "": "unauthenticated",
			"fails": "unavailable", "panics": "unavailable", "nobody": "unavailable",
		} {
			r, before := c.ask(fmt.Sprintf(`{"t":"token","token":%q}`, token))
			if r.at("err.code") != want || len(before) > 0 || (r.at("err.retry_after_ms") != nil) != (want == "unavailable") {
				t.Errorf("%v: %q: %v, want %s", in, token, r, want)
			}
			if r, _ := c.ask(`{"t":"publish","room":"chat:1","event":"message","data":1}`); r.at("ok") == nil {
				t.Errorf("%v: after %q: %v", in, token, r)
			}
			c.until("event")
			if r, _ := c.ask(`{"t":"join","room":"chat:2"}`); r.at("err.code") != "forbidden" {
				t.Errorf("%v: after %q: %v", in, token, r)
			}
		}
		c.cut()
		if _, again := resume(t, e, in, "acme/alice", w["resume"]); again["resumed"] != true {
			t.Errorf("%v: welcome: %v", in, again)
		}
	}
}

// Requests for new credentials are looked at one at a time, in order, and each has
// its one reply, however many come at once.
func TestRefreshesAreAnsweredOneByOne(t *testing.T) {
	const requests = 40
	var busy, most atomic.Int32
	var mu sync.Mutex
	var asked []string
	e := start(t, func(c *Config) {
		c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
			if n := busy.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer busy.Add(-1)
			mu.Lock()
			asked = append(asked, cr.Token)
			mu.Unlock()
			return asTold{}.Authenticate(ctx, cr)
		})
	})
	c := dial(t, e, codec.JSON, memory.Options{})
	// The first come before the welcome.
	c.send(`{"t":"hello","token":"acme/alice","rooms":[{"room":"chat:1"}]}`)
	want := []string{"acme/alice"}
	for i := range requests {
		token := "acme/alice"
		if i%3 == 2 {
			token = "acme/mallory"
		}
		want = append(want, token)
		c.send(fmt.Sprintf(`{"t":"token","id":%d,"token":%q}`, i+1, token))
	}
	if w := c.next(); w.t() != "welcome" {
		t.Fatalf("first: %v", w)
	}
	replies := map[string]int{}
	for range requests {
		f := c.next()
		replies[fmt.Sprint(f["id"])]++
		var id int
		fmt.Sscan(fmt.Sprint(f["id"]), &id)
		if (f.at("ok") != nil) != (id%3 != 0) {
			t.Errorf("reply: %v", f)
		}
	}
	if r, before := c.ask(`{"t":"leave","room":"chat:1"}`); r.at("ok") == nil || len(before) > 0 {
		t.Errorf("after all: %v, before it %v", r, before)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(replies) != requests || most.Load() != 1 || !slices.Equal(asked, want) {
		t.Errorf("%d replies, %d at once, asked %q", len(replies), most.Load(), asked)
	}
}

// An authenticator that does not answer in time is given up, and what it says then
// counts for nothing.
func TestRefreshThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		e := start(t, func(c *Config) {
			c.Limits.HandshakeTimeout = 3 * time.Second
			c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
				if strings.HasSuffix(cr.Token, "[]") {
					<-late
				}
				return asTold{}.Authenticate(ctx, cr)
			})
		})
		c := join(t, e, "acme/alice", "chat:1")
		began := time.Now()
		r, _ := c.ask(`{"t":"token","token":"acme/alice/[]"}`)
		if took := time.Since(began); r.at("err.code") != "unavailable" || took < 3*time.Second || took > 3100*time.Millisecond {
			t.Errorf("after %v: %v", took, r)
		}
		if r, _ := c.ask(`{"t":"token","token":"acme/alice"}`); r.at("ok") == nil {
			t.Errorf("the next: %v", r)
		}
		close(late)
		synctest.Wait()
		if r, before := c.ask(`{"t":"publish","room":"chat:1","event":"typing","data":1}`); r.at("ok") == nil {
			t.Errorf("after the late answer: %v %v", r, before)
		}
	})
}

// Source: https://github.com/centrifugal/centrifuge-js/issues/76
func TestB107_AnswerForAnOldConnectionIsNotTheNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) {
			c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
				if cr.Token == "acme/alice" {
					time.Sleep(2 * time.Second)
				}
				return asTold{}.Authenticate(ctx, cr)
			})
		})
		const chat = `acme/alice/[{"rooms":"chat:1","allow":["join"]}]`
		older := dial(t, e, codec.JSON, memory.Options{})
		w := older.hello(chat, "chat:1")
		older.send(`{"t":"token","id":1,"token":"acme/alice"}`) // all rights
		time.Sleep(time.Second)
		newer, again := resume(t, e, codec.JSON, chat, w["resume"], `{"room":"chat:1"}`)
		if again["resumed"] != true {
			t.Fatalf("welcome: %v", again)
		}
		if code := older.closed(); code != 4409 {
			t.Errorf("the older is closed %d", code)
		}
		for range 3 {
			if r, before := newer.ask(`{"t":"join","room":"chat:2"}`); r.at("err.code") != "forbidden" || len(before) > 0 {
				t.Errorf("the newer: %v, before it %v", r, before)
			}
			time.Sleep(time.Second)
		}
	})
}

// New credentials move their end, and the word of it.
func TestRefreshMovesTheEndOfTheCredentials(t *testing.T) {
	for _, in := range bothCodecs {
		synctest.Test(t, func(t *testing.T) {
			e := start(t, func(c *Config) {
				c.Authenticator = ending{}
				c.Limits.Ping = time.Hour
			})
			c := dial(t, e, in, memory.Options{})
			began := time.Now()
			after := func(what string, d time.Duration) {
				t.Helper()
				if took := time.Since(began); took < d || took > d+100*time.Millisecond {
					t.Errorf("%v: %s after %v, want %v", in, what, took, d)
				}
			}
			c.hello("acme/alice/60s")
			time.Sleep(29 * time.Second)
			if f := c.until("expiring"); fmt.Sprint(f["in_ms"]) > "30000" {
				t.Errorf("%v: %v", in, f)
			}
			after("the first word", 30*time.Second)
			exp := time.Now().Add(100 * time.Second).UnixMilli()
			r, _ := c.ask(`{"t":"token","token":"acme/alice/100s"}`)
			if fmt.Sprint(r.at("ok.exp_ms")) != fmt.Sprint(exp) {
				t.Errorf("%v: reply: %v, want exp_ms %d", in, r, exp)
			}
			time.Sleep(69 * time.Second)
			c.until("expiring")
			after("the second word", 100*time.Second)
			c.ask(`{"t":"token","token":"acme/alice/20s"}`)
			if f := c.next(); f.t() != "expiring" || fmt.Sprint(f["in_ms"]) > "20000" || fmt.Sprint(f["in_ms"]) < "19900" {
				t.Errorf("%v: less is left than the word is given before: %v", in, f)
			}
			after("the third word", 100*time.Second)
			time.Sleep(24 * time.Second)
			if code := c.closed(); code != 4401 {
				t.Errorf("%v: closed %d", in, code)
			}
			after("the end, with its leeway", 125*time.Second)
			// Credentials without an end take the last one back.
			c = dial(t, e, in, memory.Options{})
			c.hello("acme/alice/ends")
			c.until("expiring")
			c.ask(`{"t":"token","token":"acme/alice"}`)
			time.Sleep(time.Minute)
			if r, before := c.ask(`{"t":"join","room":"chat:1"}`); r.at("ok") == nil || len(before) > 0 {
				t.Errorf("%v: a minute later: %v, before it %v", in, r, before)
			}
		})
	}
}

// A refresh brings a resume token too, for a connection that outlives the first.
func TestRefreshBringsAResumeToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) { c.Limits.Ping = 48 * time.Hour })
		c := dial(t, e, codec.JSON, memory.Options{})
		w := c.hello("acme/alice")
		time.Sleep(23 * time.Hour)
		r, _ := c.ask(`{"t":"token","token":"acme/alice"}`)
		time.Sleep(2 * time.Hour)
		c.cut()
		c, again := resume(t, e, codec.JSON, "acme/alice", w["resume"])
		if again["resumed"] != false {
			t.Errorf("a token of 25 hours: %v", again)
		}
		if _, again = resume(t, e, codec.JSON, "acme/alice", r.at("ok.resume")); again["resumed"] != true || again["session"] != w["session"] {
			t.Errorf("one of 2 hours: %v", again)
		}
		c.cut()
	})
}

// However much of the control lane waits before the reply, no room is left before it.
func TestRefreshIsAnsweredBeforeRoomsAreLeft(t *testing.T) {
	for _, in := range bothCodecs {
		synctest.Test(t, func(t *testing.T) {
			e := start(t, func(c *Config) { c.Kinds = lanes() })
			c := dial(t, e, in, memory.Options{Window: 64})
			c.hello("acme/alice", "bulk:1", "interactive:1", "lossy:1")
			for range 60 { // whose pongs wait for the client to read
				c.send(`{"t":"ping"}`)
			}
			c.send(`{"t":"token","id":7,"token":"acme/alice/[]"}`)
			synctest.Wait()
			for left := 0; left < 3; {
				switch f := c.next(); f.t() {
				case "left":
					t.Fatalf("%v: left before the reply: %v", in, f)
				case "reply":
					for ; left < 3; left++ {
						c.until("left")
					}
				}
			}
		})
	}
}
