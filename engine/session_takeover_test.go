package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// A newer connection takes the session over: the older is closed 4409 at once and
// what it had queued is dropped; the newer misses nothing.
func TestTakeoverClosesTheOlderConnection4409(t *testing.T) {
	for _, in := range bothCodecs {
		const events = 200 // beyond what one write may have taken already, of 64 KiB
		e := start(t, nil)
		older := dial(t, e, in, memory.Options{Window: 8 << 10})
		w := older.hello("acme/alice", "chat:1")
		for range events {
			e.publish(t, "acme", "chat:1", "message", strings.Repeat("x", 1<<10))
		}
		newer, again := resume(t, e, in, "acme/alice", w["resume"],
			fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":0}`, w.at("rooms.0.ok.epoch")))
		if again["resumed"] != true || again["session"] != w["session"] {
			t.Fatalf("%v: welcome: %v", in, again)
		}
		got := 0
		for {
			f, err := older.recv(t.Context())
			var end *memory.CloseError
			if errors.As(err, &end) {
				if end.Code != 4409 {
					t.Errorf("%v: closed %d", in, end.Code)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.t() == "event" {
				got++
			}
		}
		if got >= events/2 {
			t.Errorf("%v: the older was sent %d of %d events", in, got, events)
		}
		for i := range uint64(events) {
			if f := newer.next(); f.offset() != i+1 {
				t.Fatalf("%v: the newer is sent %v, want event %d", in, f, i+1)
			}
		}
		if n := e.Health().Sessions; n > 2 {
			t.Errorf("%d sessions", n)
		}
	}
}

// Two tabs with the same token: who comes first has it. The one that was taken
// over and comes back with what it holds gets a session of its own.
func TestDuplicatedTabTakesOverOnceAndNotBack(t *testing.T) {
	e := start(t, nil)
	first := dial(t, e, codec.JSON, memory.Options{})
	w := first.hello("acme/alice", "chat:1")
	second, stolen := resume(t, e, codec.JSON, "acme/alice", w["resume"], `{"room":"chat:1"}`)
	if stolen["resumed"] != true {
		t.Fatalf("the second: %v", stolen)
	}
	if code := first.closed(); code != 4409 {
		t.Errorf("the first is closed %d", code)
	}
	first, own := resume(t, e, codec.JSON, "acme/alice", w["resume"], `{"room":"chat:1"}`)
	if own["resumed"] != false || own["session"] == w["session"] {
		t.Errorf("the first comes back: %v", own)
	}
	e.publish(t, "acme", "chat:1", "message", 1)
	for _, c := range []*client{first, second} {
		if f := c.next(); f.t() != "event" {
			t.Errorf("after that: %v", f)
		}
	}
}

// Any node resumes any session, without a goodbye from the one that had it, which
// hears of it at once, or at its next renewal.
func TestAnyNodeResumesAnySession(t *testing.T) {
	for _, mute := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := deploy(t)
			one, two := &faults{mute: mute}, &faults{}
			ttl := func(c *Config) { c.Limits.ResumeTTL = 3 * time.Minute }
			a, b := d.node(t, "one", one, ttl), d.node(t, "two", two, ttl)
			older := dial(t, a, codec.JSON, memory.Options{})
			w := older.hello("acme/alice", "chat:1")
			synctest.Wait()
			newer, again := resume(t, b, codec.JSON, "acme/alice", w["resume"],
				fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":0}`, w.at("rooms.0.ok.epoch")))
			if again["resumed"] != true || again["session"] != w["session"] || again["node"] != "two" {
				t.Fatalf("welcome: %v", again)
			}
			began := time.Now()
			if code := older.closed(); code != 4409 {
				t.Errorf("the older is closed %d", code)
			}
			if took := time.Since(began); !mute && took > 0 || took > 70*time.Second {
				t.Errorf("the older is closed after %v", took)
			}
			<-older.conn.Done()
			a.publish(t, "acme", "chat:1", "message", 1)
			if f := newer.next(); f.offset() != 1 {
				t.Errorf("the newer gets %v", f)
			}
			if o, _ := d.holder("acme", fmt.Sprint(w["session"])); o.Node != "two" || o.Generation != 2 {
				t.Errorf("held by %v", o)
			}
			// And back again.
			newer.cut()
			if _, back := resume(t, a, codec.JSON, "acme/alice", again["resume"]); back["resumed"] != true || back["session"] != w["session"] {
				t.Errorf("back on the first node: %v", back)
			}
		})
	}
}

// While the store is away nobody is refused: a resume is answered by a new session,
// whose lease is written when the store is back.
func TestStoreThatIsAwayRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy(t)
		f := &faults{}
		e := d.node(t, "one", f, func(c *Config) { c.Limits.ResumeTTL = 3 * time.Minute })
		owner := dial(t, e, codec.JSON, memory.Options{})
		w := owner.hello("acme/alice", "chat:1")
		other := dial(t, e, codec.JSON, memory.Options{})
		kept := other.hello("acme/bob", "chat:1")
		owner.cut()
		synctest.Wait()
		f.set(true, false)
		began := time.Now()
		owner, again := resume(t, e, codec.JSON, "acme/alice", w["resume"],
			fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":0}`, w.at("rooms.0.ok.epoch")))
		if again["resumed"] != false || again.at("rooms.0.ok.recovered") != true || time.Since(began) > 0 {
			t.Fatalf("after %v: %v", time.Since(began), again)
		}
		time.Sleep(10 * time.Minute) // longer than any lease
		e.publish(t, "acme", "chat:1", "message", 1)
		for _, c := range []*client{owner, other} { // nobody was ended for it
			if f := c.next(); f.t() != "event" {
				t.Errorf("while the store is away: %v", f)
			}
		}
		f.set(false, false)
		time.Sleep(10 * time.Second) // a tick
		owner.cut()
		other.cut()
		time.Sleep(2 * time.Minute)
		for token, from := range map[string]frame{"acme/alice": again, "acme/bob": kept} {
			if _, back := resume(t, e, codec.JSON, token, from["resume"]); back["resumed"] != true || back["session"] != from["session"] {
				t.Errorf("%s, when it is back: %v", token, back)
			}
		}
	})
}

// Source: https://github.com/semaphore-chat/semaphore-chat/issues/270
func TestB144_LeaseThatTheStoreLostIsWrittenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy(t)
		e := d.node(t, "one", &faults{}, func(c *Config) { c.Limits.ResumeTTL = 3 * time.Minute })
		c := dial(t, e, codec.JSON, memory.Options{})
		w := c.hello("acme/alice", "chat:1")
		time.Sleep(time.Second)
		for range 3 {
			d.store.Lose()
			time.Sleep(67 * time.Second) // a third, and a tick
			if o, _ := d.holder("acme", fmt.Sprint(w["session"])); o.Node != "one" || o.Generation != 1 {
				t.Errorf("held by %v", o)
			}
		}
		e.publish(t, "acme", "chat:1", "message", 1)
		if f := c.next(); f.offset() != 1 {
			t.Errorf("the session gets %v", f)
		}
		c.cut()
		if _, again := resume(t, e, codec.JSON, "acme/alice", w["resume"]); again["resumed"] != true {
			t.Errorf("welcome: %v", again)
		}
	})
}

// Close ends no session: each may be resumed on another node, for resume_ttl from
// then on.
func TestCloseLeavesSessionsToBeResumed(t *testing.T) {
	for _, c := range []struct {
		away    time.Duration
		resumed bool
	}{{59 * time.Second, true}, {61 * time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			d := deploy(t)
			ttl := func(c *Config) { c.Limits.ResumeTTL = time.Minute }
			one, two := d.node(t, "one", &faults{}, ttl), d.node(t, "two", &faults{}, ttl)
			var clients []*client
			var welcomes []frame
			for range 5 {
				c := dial(t, one, codec.JSON, memory.Options{})
				clients = append(clients, c)
				welcomes = append(welcomes, c.hello("acme/alice"))
			}
			time.Sleep(15 * time.Second)
			for _, c := range clients {
				go c.swallow()
			}
			if err := one.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(c.away)
			for _, w := range welcomes {
				if _, again := resume(t, two, codec.JSON, "acme/alice", w["resume"]); again["resumed"] != c.resumed {
					t.Errorf("%v after Close: %v", c.away, again)
				}
			}
		})
	}
}

// The store that does not answer does not keep Close.
func TestCloseDoesNotWaitForAStoreThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy(t)
		f := &faults{}
		e := d.node(t, "one", f, nil)
		c := join(t, e, "acme/alice")
		f.set(true, false)
		go c.swallow()
		began := time.Now()
		e.closeWithin(t, time.Minute)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("closed after %v", took)
		}
	})
}

// A store that does not answer costs a client its session, and two seconds.
func TestStoreThatDoesNotAnswerRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy(t)
		f := &faults{}
		e := d.node(t, "one", f, nil)
		c := dial(t, e, codec.JSON, memory.Options{})
		w := c.hello("acme/alice")
		c.cut()
		synctest.Wait()
		f.mu.Lock()
		f.hung = true
		f.mu.Unlock()
		began := time.Now()
		_, again := resume(t, e, codec.JSON, "acme/alice", w["resume"])
		if took := time.Since(began); again["resumed"] != false || took != 2*time.Second {
			t.Errorf("after %v: %v", took, again)
		}
	})
}
