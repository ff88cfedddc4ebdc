package bridgetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func testAttempts(t *testing.T, factory Factory) {
	room := topicOf("acme", "chat:1")
	forbidden := codec.NewError(codec.CodeForbidden, "not today")

	t.Run("the first does it, repeats get its result, for a window that is not prolonged", func(t *testing.T) {
		tr := begin(t, factory)
		first := tr.attempt(room, "alice", "k")
		if first.Token == 0 || first.Err != nil {
			t.Fatalf("first: %+v", first)
		}
		tr.clock.pass(30) // the window runs from its end
		tr.settle(room, "alice", "k", first.Token, `{"n":1}`, nil)
		start := tr.clock.Now()
		for _, at := range []int{0, 60, 120 - tr.clock.near()} {
			tr.clock.until(start.Add(tr.clock.seconds(at)))
			if got := tr.attempt(room, "alice", "k"); got.Token != 0 || got.Err != nil || string(got.Result.In(codec.JSON)) != `{"n":1}` {
				t.Fatalf("at %d s: %+v", at, got)
			}
		}
		tr.clock.until(start.Add(tr.clock.seconds(120 + tr.clock.near())))
		if got := tr.attempt(room, "alice", "k"); got.Token == 0 || got.Token == first.Token {
			t.Fatalf("after the window: %+v", got)
		}
	})

	t.Run("of many at once one does it, all get its result", func(t *testing.T) {
		tr := begin(t, factory)
		const n = 32
		answers := make(chan bridge.Attempted, 2*n)
		for range n {
			go tr.Attempt(room, tr.try("alice", "k"), func(a bridge.Attempted) { answers <- a })
		}
		one := receive(t, answers, "the one that does it")
		if one.Token == 0 {
			t.Fatalf("an answer before it is done: %+v", one)
		}
		tr.settle(room, "alice", "k", one.Token, `7`, nil)
		for range n - 1 {
			if a := receive(t, answers, "the result"); a.Token != 0 || a.Err != nil || string(a.Result.In(codec.JSON)) != "7" {
				t.Fatalf("%+v", a)
			}
		}
		if len(answers) > 0 {
			t.Fatalf("one answer too many: %+v", <-answers)
		}
	})

	t.Run("what was not done is told to those who wait, and not remembered", func(t *testing.T) {
		tr := begin(t, factory)
		one := tr.attempt(room, "alice", "k")
		waits := tr.waiting(room, "alice", "k")
		tr.settle(room, "alice", "k", one.Token, "", forbidden)
		if a := receive(t, waits, "the error"); a.Token != 0 || a.Err == nil || a.Err.Code != codec.CodeForbidden {
			t.Fatalf("%+v", a)
		}
		if next := tr.attempt(room, "alice", "k"); next.Token == 0 {
			t.Fatalf("the next: %+v", next)
		}
	})

	t.Run("an absent result is one", func(t *testing.T) {
		tr := begin(t, factory)
		one := tr.attempt(room, "alice", "k")
		tr.Settle(room, bridge.Settlement{Subject: "alice", Key: "k", Token: one.Token, Window: tr.clock.seconds(120)})
		if a := tr.attempt(room, "alice", "k"); a.Token != 0 || a.Err != nil || !a.Result.IsZero() {
			t.Fatalf("%+v", a)
		}
	})

	t.Run("without a window it is told to those who wait only", func(t *testing.T) {
		tr := begin(t, factory)
		one := tr.attempt(room, "alice", "k")
		waits := tr.waiting(room, "alice", "k")
		tr.Settle(room, bridge.Settlement{Subject: "alice", Key: "k", Token: one.Token})
		if a := receive(t, waits, "the result"); a.Token != 0 || a.Err != nil {
			t.Fatalf("%+v", a)
		}
		if a := tr.attempt(room, "alice", "k"); a.Token == 0 {
			t.Fatalf("%+v", a)
		}
	})

	t.Run("who does not settle in time has lost it", func(t *testing.T) {
		tr := begin(t, factory)
		dead := tr.attempt(room, "alice", "k")
		waits := tr.waiting(room, "alice", "k")
		tr.clock.pass(61)
		next := tr.attempt(room, "alice", "k")
		if next.Token == 0 {
			t.Fatalf("the next: %+v", next)
		}
		if a := receive(t, waits, "the end of waiting"); a.Token != 0 || a.Err == nil || a.Err.Code != codec.CodeUnavailable {
			t.Fatalf("who waited: %+v", a)
		}
		tr.settle(room, "alice", "k", dead.Token, `"late"`, nil)
		waits = tr.waiting(room, "alice", "k")
		tr.settle(room, "alice", "k", next.Token, `"done"`, nil)
		if a := receive(t, waits, "the result"); string(a.Result.In(codec.JSON)) != `"done"` {
			t.Fatalf("%+v", a)
		}
	})

	t.Run("names do not meet, nor do those of publications", func(t *testing.T) {
		tr := begin(t, factory)
		r := windowed(tr, 120)
		tr.accept(room, r, tr.keyed(room, "k")) // from alice
		seen := map[uint64]bool{}
		for _, c := range []struct{ tenant, room, subject, key string }{
			{"acme", "chat:1", "alice", "k"},
			{"acme", "chat:1", "alic", "ek"},
			{"acme", "chat:1", "", "alicek"},
			{"acme", "chat:2", "alice", "k"},
			{"acm", "chat:1", "alice", "k"},
			{"acme", "", "alice", "k"}, // of the tenant itself
		} {
			topic := codec.Topic{Tenant: c.tenant, Room: c.room}
			a := tr.attempt(topic, c.subject, c.key)
			if a.Token == 0 || seen[a.Token] {
				t.Errorf("%q: %+v", c, a)
			}
			seen[a.Token] = true
			tr.settle(topic, c.subject, c.key, a.Token, `1`, nil)
		}
		if got := tr.accept(room, r, tr.keyed(room, "k"))[0]; !got.Duplicate {
			t.Errorf("the publication was forgotten: %+v", got)
		}
	})

	t.Run("close answers who waits", func(t *testing.T) {
		tr := begin(t, factory)
		one := tr.attempt(room, "alice", "k")
		waits := tr.waiting(room, "alice", "k")
		tr.Close()
		if a := receive(t, waits, "the end of waiting"); a.Err == nil || a.Err.Code != codec.CodeUnavailable {
			t.Fatalf("%+v", a)
		}
		tr.settle(room, "alice", "k", one.Token, `1`, nil)
		if a := tr.attempt(room, "alice", "l"); a.Err == nil || a.Err.Code != codec.CodeUnavailable {
			t.Fatalf("afterwards: %+v", a)
		}
	})
}

func (tr *trial) try(subject, key string) bridge.Attempt {
	return bridge.Attempt{Subject: subject, Key: key, Hold: tr.clock.seconds(60)}
}

// attempt waits for the answer.
func (tr *trial) attempt(topic codec.Topic, subject, key string) bridge.Attempted {
	tr.Helper()
	answer := make(chan bridge.Attempted, 2)
	tr.Attempt(topic, tr.try(subject, key), func(a bridge.Attempted) { answer <- a })
	return receive(tr.T, answer, "the answer to an attempt")
}

// waiting makes an attempt that another one holds up.
func (tr *trial) waiting(topic codec.Topic, subject, key string) <-chan bridge.Attempted {
	tr.Helper()
	answer := make(chan bridge.Attempted, 2)
	tr.Attempt(topic, tr.try(subject, key), func(a bridge.Attempted) { answer <- a })
	select {
	case a := <-answer:
		tr.Fatalf("it does not wait: %+v", a)
	case <-time.After(5 * time.Millisecond): // it may come later still, and then is seen by the caller
	}
	return answer
}

// settle ends an attempt by a result, in JSON, or an error.
func (tr *trial) settle(topic codec.Topic, subject, key string, token uint64, result string, err *codec.Error) {
	tr.Helper()
	s := bridge.Settlement{Subject: subject, Key: key, Token: token, Window: tr.clock.seconds(120), Err: err}
	if err == nil {
		var bad error
		if s.Result, bad = codec.MakeData(codec.JSON, []byte(result)); bad != nil {
			tr.Fatal(fmt.Errorf("%s: %w", result, bad))
		}
	}
	tr.Settle(topic, s)
}
