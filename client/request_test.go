package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// answered runs a request beside the test.
func answered[R any](f func() (R, error)) chan result[R] {
	ch := make(chan result[R], 1)
	go func() {
		r, err := f()
		ch <- result[R]{r, err}
	}()
	return ch
}

type result[R any] struct {
	r   R
	err error
}

func publish(t testing.TB, c *client.Client, p client.Publish) chan result[codec.PublishResult] {
	ctx := soon(t)
	return answered(func() (codec.PublishResult, error) { return c.Publish(ctx, p) })
}

func command(t testing.TB, c *client.Client, cmd client.Command) chan result[codec.Data] {
	ctx := soon(t)
	return answered(func() (codec.Data, error) { return c.Command(ctx, cmd) })
}

func TestRequestsAndTheirAnswers(t *testing.T) {
	for _, in := range codecs {
		t.Run(in.String(), func(t *testing.T) {
			s := play(t, in)
			c := start(t, s.url, "alice", func(o *client.Options) { o.Codec, o.Name = in, "tests/1" })
			a, hello := s.greet(nil)
			if hello.Client != "tests/1" {
				t.Errorf("%+v", hello)
			}
			ctx := soon(t)

			published := publish(t, c, client.Publish{Room: "chat", Event: "said", Data: "hi", TTL: time.Minute})
			p := expect[*codec.Publish](a)
			if p.Room != "chat" || p.Event != "said" || string(p.Data.In(codec.JSON)) != `"hi"` || p.DedupKey == "" || p.TTL > time.Minute || p.TTL < 50*time.Second {
				t.Errorf("%+v", p)
			}
			want := codec.PublishResult{Outcome: codec.Coalesced, EID: "e1", Position: codec.Position{Epoch: "ep", Offset: 3}, Duplicate: true}
			a.ok(p.ID, &want)
			if got := <-published; got.r != want || got.err != nil {
				t.Errorf("%+v", got)
			}

			rolled := command(t, c, client.Command{Room: "game", Name: "roll", Data: []int{2}})
			r := expect[*codec.Command](a)
			if r.Room != "game" || r.Name != "roll" || string(r.Data.In(codec.JSON)) != "[2]" || r.DedupKey != "" || r.Deadline > patience || r.Deadline < patience/2 {
				t.Errorf("%+v", r)
			}
			dice, err := codec.NewData([]int{3, 4})
			if err != nil {
				t.Fatal(err)
			}
			a.ok(r.ID, &codec.CommandResult{Data: dice})
			if got := <-rolled; string(got.r.In(codec.JSON)) != "[3,4]" || got.err != nil {
				t.Errorf("%+v", got)
			}

			page := answered(func() (*client.HistoryPage, error) {
				return c.History(ctx, client.HistoryQuery{Room: "chat", Position: codec.Position{Epoch: "ep", Offset: 9}, Limit: 5, Reverse: true})
			})
			h := expect[*codec.History](a)
			if h.Room != "chat" || h.Position.Offset != 9 || !h.HasPosition || h.Limit != 5 || !h.Reverse {
				t.Errorf("%+v", h)
			}
			e := codec.NewEvent(codec.Topic{}, "said", codec.Data{}, codec.Origin{EID: "e8", TS: 5}).At(codec.Position{Epoch: "ep", Offset: 8})
			a.ok(h.ID, &codec.HistoryResult{Room: "chat", Position: e.Position, Events: []*codec.Event{e}, More: true, Reset: codec.ResetExpired})
			if got := <-page; got.err != nil || len(got.r.Events) != 1 || got.r.Events[0].Room != "chat" || got.r.Events[0].ID != "e8" ||
				got.r.Position != e.Position || !got.r.More || got.r.Reset != codec.ResetExpired {
				t.Errorf("%+v", got)
			}

			members := answered(func() (*client.PresencePage, error) {
				return c.Presence(ctx, client.PresenceQuery{Room: "chat", After: "alice", Limit: 1})
			})
			q := expect[*codec.PresenceQuery](a)
			if q.Room != "chat" || q.After != "alice" || q.Limit != 1 {
				t.Errorf("%+v", q)
			}
			a.ok(q.ID, &codec.PresenceResult{Room: "chat", PE: "p", Seq: 1, Count: 7, Members: []codec.Member{{Subject: "bob", Sessions: 2}}, After: "bob"})
			if got := <-members; got.err != nil || got.r.Count != 7 || got.r.After != "bob" || len(got.r.Members) != 1 || got.r.Members[0].Subject != "bob" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestRefusalsAreErrorsWithTheirCode(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	published := publish(t, c, client.Publish{Room: "chat", Event: "said"})
	a.say(&codec.Reply{ID: expect[*codec.Publish](a).ID, Err: codec.Retry(codec.CodeBackpressured, codec.ScopeRoom, time.Second, "full")})
	var e *client.Error
	if got := <-published; !errors.As(got.err, &e) || e.Code != codec.CodeBackpressured || e.RetryAfter != time.Second || e.Scope != codec.ScopeRoom {
		t.Errorf("%+v", got)
	}
	rolled := command(t, c, client.Command{Name: "roll"})
	a.raw(fmt.Appendf(nil, `{"t":"reply","id":%d,"err":{"code":"brand_new","message":"m"}}`, expect[*codec.Command](a).ID))
	if got := <-rolled; !errors.As(got.err, &e) || e.Code.Retryable() {
		t.Errorf("a code of a later server: %+v", got)
	}
	rolled = command(t, c, client.Command{Name: "roll"})
	a.ok(expect[*codec.Command](a).ID, &codec.LeaveResult{Room: "chat"})
	if got := <-rolled; got.err == nil {
		t.Error("an answer to something else is taken")
	}
}

func TestWhatCannotBeSent(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	if err := c.TryPublish(client.Publish{Room: "chat", Event: "e"}); err != client.ErrOffline {
		t.Errorf("before the welcome: %v", err)
	}
	a, _ := s.greet(func(w *codec.Welcome) { w.MaxMessageBytes = 1000 })
	if _, err := c.Session(soon(t)); err != nil {
		t.Fatal(err)
	}
	large := client.Publish{Room: "chat", Event: "said", Data: string(make([]byte, 1000))}
	var e *client.Error
	if got := <-publish(t, c, large); !errors.As(got.err, &e) || e.Code != codec.CodeTooLarge {
		t.Errorf("over max_message_bytes: %v", got.err)
	}
	if err := c.TryPublish(large); !errors.As(err, &e) || e.Code != codec.CodeTooLarge {
		t.Errorf("tried: %v", err)
	}
	for _, bad := range []any{func() {}, make(chan int)} {
		if got := <-publish(t, c, client.Publish{Room: "chat", Event: "said", Data: bad}); !errors.As(got.err, &e) || e.Code != codec.CodeBadRequest {
			t.Errorf("%T: %v", bad, got.err)
		}
		if got := <-command(t, c, client.Command{Name: "n", Data: bad}); !errors.As(got.err, &e) {
			t.Errorf("%T: %v", bad, got.err)
		}
		if _, err := c.Join(soon(t), client.Join{Room: "chat", Data: bad}); !errors.As(err, &e) {
			t.Errorf("%T: %v", bad, err)
		}
	}
	if _, err := c.Join(soon(t), client.Join{Room: "no room"}); !errors.As(err, &e) || e.Code != codec.CodeBadRequest {
		t.Errorf("%v", err)
	}
	a.say(&codec.Ping{})
	expect[*codec.Pong](a) // and nothing before it
}

// A lost connection: what has a key is said again with it, in its order, and what
// has none is unknown.
func TestRepeats(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	first := publish(t, c, client.Publish{Room: "chat", Event: "first"})
	p := expect[*codec.Publish](a)
	plain := command(t, c, client.Command{Name: "plain"})
	expect[*codec.Command](a)
	keyed := command(t, c, client.Command{Name: "keyed", DedupKey: "k1"})
	expect[*codec.Command](a)
	second := publish(t, c, client.Publish{Room: "chat", Event: "second", DedupKey: "mine"})
	expect[*codec.Publish](a)
	gone, cancel := context.WithCancel(t.Context())
	third := answered(func() (codec.PublishResult, error) {
		return c.Publish(gone, client.Publish{Room: "chat", Event: "third"})
	})
	expect[*codec.Publish](a)
	cancel()
	if got := <-third; !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, client.ErrUnknown) {
		t.Errorf("given up after it was sent: %v", got.err)
	}
	asked, cancel := context.WithCancel(t.Context())
	page := answered(func() (*client.HistoryPage, error) { return c.History(asked, client.HistoryQuery{Room: "chat"}) })
	expect[*codec.History](a)
	cancel()
	if got := <-page; got.err != context.Canceled {
		t.Errorf("a question has no outcome: %v", got.err)
	}
	a.close(0, "")
	if got := <-plain; !errors.Is(got.err, client.ErrUnknown) {
		t.Errorf("%+v", got)
	}
	b, _ := s.greet(nil)
	if again := expect[*codec.Publish](b); again.Event != "first" || again.DedupKey != p.DedupKey || again.ID != p.ID {
		t.Errorf("%+v, first %+v", again, p)
	}
	r := expect[*codec.Command](b)
	if r.Name != "keyed" || r.DedupKey != "k1" {
		t.Errorf("%+v", r)
	}
	q := expect[*codec.Publish](b)
	if q.Event != "second" || q.DedupKey != "mine" {
		t.Errorf("%+v", q)
	}
	b.ok(q.ID, &codec.PublishResult{Outcome: codec.Accepted})
	b.ok(r.ID, &codec.CommandResult{})
	b.ok(p.ID, &codec.PublishResult{Outcome: codec.Accepted, Duplicate: true})
	if got := <-first; got.err != nil || !got.r.Duplicate {
		t.Errorf("%+v", got)
	}
	if got := <-second; got.err != nil {
		t.Errorf("%+v", got)
	}
	if got := <-keyed; got.err != nil {
		t.Errorf("%+v", got)
	}
}

func TestOfflineQueue(t *testing.T) {
	for _, dropOldest := range []bool{false, true} {
		s := play(t, codec.JSON)
		c := start(t, s.url, "alice", func(o *client.Options) {
			o.Requests, o.DropOldest = client.Bound{Items: 2}, dropOldest
		})
		hello := s.next() // not welcome yet
		one := publish(t, c, client.Publish{Room: "chat", Event: "one"})
		client.Waits(t, c, 1)
		two := publish(t, c, client.Publish{Room: "chat", Event: "two"})
		client.Waits(t, c, 2)
		three := publish(t, c, client.Publish{Room: "chat", Event: "three"})
		want := []string{"one", "two"}
		if dropOldest {
			if got := <-one; got.err != client.ErrDropped {
				t.Errorf("%v", got.err)
			}
			want = []string{"two", "three"}
		} else if got := <-three; got.err != client.ErrFull {
			t.Errorf("%v", got.err)
		}
		short, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Publish(short, client.Publish{Room: "chat", Event: "late"}); err != context.Canceled {
			t.Errorf("never sent: %v", err)
		}
		hello.welcome(expect[*codec.Hello](hello), nil)
		for _, event := range want {
			p := expect[*codec.Publish](hello)
			if p.Event != event {
				t.Errorf("%s, want %s", p.Event, event)
			}
			hello.ok(p.ID, &codec.PublishResult{Outcome: codec.Accepted})
		}
		if got := <-two; got.err != nil {
			t.Error(got.err)
		}
	}
}
