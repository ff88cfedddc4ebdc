package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	link "github.com/yaza-dev/pulse/transport/memory"
)

// A drain of these tests has 20 s, of which 16 are for the clients to go.
const (
	forDrain = 20 * time.Second
	forGoing = 16 * time.Second
)

// drains begins a drain of e and returns what waits for its end and tells how long
// it took.
func (e *Engine) drains(t *testing.T) (took func() time.Duration) {
	t.Helper()
	synctest.Wait() // or a handshake may not be over though its client has the welcome
	return e.drainsNow(t)
}

// drainsNow is drains outside synctest.
func (e *Engine) drainsNow(t *testing.T) (took func() time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), forDrain)
	began, ended := time.Now(), make(chan time.Duration, 1)
	go func() {
		defer cancel()
		if err := e.Drain(ctx); err != nil {
			t.Errorf("drain: %v", err)
		}
		ended <- time.Since(began)
	}()
	return func() time.Duration { return <-ended }
}

// rangeOf is what a drain frame says of when to come back.
func (f frame) rangeOf(t *testing.T) (low, high time.Duration) {
	t.Helper()
	var from, to int64
	if _, err := fmt.Sscan(fmt.Sprint(f.at("reconnect_ms.0"), " ", f.at("reconnect_ms.1")), &from, &to); err != nil {
		t.Fatalf("%v: %v", f, err)
	}
	return time.Duration(from) * time.Millisecond, time.Duration(to) * time.Millisecond
}

func TestDrainSpreadsItsClientsOverFourFifths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		const sessions, quarters = 200, 4
		clients := make([]*client, sessions)
		for i := range clients {
			clients[i] = join(t, e, fmt.Sprintf("t%d/a%d", i%3, i), "chat:1")
		}
		took := e.drains(t)
		var in [quarters]int
		for i, c := range clients {
			f := c.until("drain")
			low, high := f.rangeOf(t)
			if low < 0 || low > high || high > forGoing || high-low > forGoing/100 || fmt.Sprint(f["deadline_ms"]) != fmt.Sprint(forGoing.Milliseconds()) {
				t.Fatalf("client %d: %v", i, f)
			}
			in[min(low*quarters/forGoing, quarters-1)]++
		}
		for q, n := range in {
			if n < sessions/quarters/2 { // 5 standard deviations
				t.Errorf("%d of %d clients in quarter %d", n, sessions, q)
			}
		}
		if e.Health().Ready {
			t.Error("ready while it drains")
		}
		// Until they go they are served.
		clients[0].send(`{"t":"publish","id":7,"room":"chat:1","event":"message","data":"still"}`)
		for _, c := range []*client{clients[0], clients[3]} { // of one tenant
			if ev := c.until("event"); ev["data"] != "still" {
				t.Errorf("while draining: %v", ev)
			}
		}
		// When the last has gone there is nothing to wait for.
		for _, c := range clients {
			c.conn.Cut()
		}
		if d := took(); d > time.Second {
			t.Errorf("with nobody left it took %v", d)
		}
	})
}

func TestDrainClosesWhoStaysBehindWhatIsQueuedWithItsRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		c := join(t, e, "acme/a", "chat:1")
		took := e.drains(t)
		low, high := c.until("drain").rangeOf(t)
		time.Sleep(forGoing - time.Second)
		const events = 50
		data := strings.Repeat("x", 4<<10) // more in all than a window holds
		for i := range events {
			e.publish(t, "acme", "chat:1", "message", fmt.Sprint(i, data))
		}
		got := uint64(0)
		for {
			f, err := c.recv(t.Context())
			var end *link.CloseError
			if errors.As(err, &end) {
				if want := fmt.Sprintf("%d-%d", low.Milliseconds(), high.Milliseconds()); end.Code != 1012 || end.Reason != want || got != events {
					t.Errorf("%v after %d of %d events, want 1012 %s", end, got, events, want)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch f.t() {
			case "event":
				got++
			case "drain":
				t.Error("told twice")
			}
		}
		if d := took(); d < forGoing || d > forGoing+time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// Commands that are under way are answered before the close; new ones go elsewhere.
// kedacore/http-add-on#1648
func TestB127_DrainWaitsForCommandsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const commands = 10
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{serving("desk", func(_ *room.Context, c *room.Command) (any, error) {
				reply := c.Later()
				time.AfterFunc(300*time.Millisecond, func() { reply.Answer("done", nil) })
				return nil, nil
			})}
			c.Commands = func(ctx context.Context, _ Command) (any, error) {
				select {
				case <-time.After(300 * time.Millisecond):
					return "done", nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		})
		clients := make([]*client, commands)
		for i := range clients {
			clients[i] = join(t, e, fmt.Sprint("acme/c", i), "desk:1")
			if i%2 == 0 {
				clients[i].send(`{"t":"command","id":1,"room":"desk:1","name":"work"}`)
			} else {
				clients[i].send(`{"t":"command","id":1,"name":"work"}`)
			}
		}
		synctest.Wait()
		took := e.drains(t)
		for i, c := range clients {
			_, high := c.until("drain").rangeOf(t)
			for _, doc := range []string{`{"t":"command","id":2,"room":"desk:1","name":"work"}`, `{"t":"command","id":2,"name":"work"}`} {
				c.send(doc)
				f := c.until("reply")
				if f.at("err.code") != "draining" || f.at("err.scope") != "node" || fmt.Sprint(f.at("err.retry_after_ms")) != fmt.Sprint(high.Milliseconds()) {
					t.Errorf("client %d: a new command: %v", i, f)
				}
			}
		}
		for i, c := range clients {
			if f := c.until("reply"); f.at("ok.data") != "done" || fmt.Sprint(f["id"]) != "1" {
				t.Errorf("client %d: %v", i, f)
			}
		}
		for _, c := range clients {
			var end *link.CloseError
			if _, err := c.recv(t.Context()); !errors.As(err, &end) || end.Code != 1012 {
				t.Errorf("at the end: %v", err)
			}
		}
		if d := took(); d > forDrain {
			t.Errorf("it took %v", d)
		}
	})
}

// upgrading is an Acceptor whose upgrades take until something has happened.
type upgrading struct {
	*Engine
	meanwhile func()
}

func (u upgrading) Admit(r *http.Request) *codec.Error {
	err := u.Engine.Admit(r)
	u.meanwhile()
	return err
}

func TestDrainLetsNobodyIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		here := join(t, e, "acme/a", "chat:1")
		silent := dial(t, e, codec.JSON, link.Options{})
		var took func() time.Duration
		late := link.Dial(upgrading{e, func() {
			took = e.drains(t)
			here.until("drain")
		}}, protocol(codec.JSON), link.Options{})
		for what, c := range map[string]*link.Client{"who has not said hello": silent.conn, "an upgrade that ends after it began": late} {
			var end *link.CloseError
			if _, err := c.Recv(t.Context()); !errors.As(err, &end) || end.Code != 1012 || end.Reason != fmt.Sprint("0-", forGoing.Milliseconds()) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := refused(link.Dial(e, protocol(codec.JSON), link.Options{})); err == nil || err.Code != codec.CodeDraining {
			t.Errorf("a new connection: %v", err)
		}
		here.conn.Cut()
		if d := took(); d > time.Second {
			t.Errorf("it took %v", d)
		}
		<-late.Done()
	})
}

func TestDrainWaitsForRequestsOverHTTP(t *testing.T) {
	at, goOn := make(chan struct{}), make(chan struct{})
	w := startWeb(t, func(c *Config) {
		c.Kinds = append(c.Kinds, serving("desk", func(_ *room.Context, c *room.Command) (any, error) {
			reply := c.Later()
			go func() { close(at); <-goOn; reply.Answer("done", nil) }()
			return nil, nil
		}))
	})
	answers := make(chan frame, 1)
	go func() {
		_, f := w.do("POST", "/v1/rooms/desk:1/commands/work", "{}", "Authorization: Bearer acme/a")
		answers <- f
	}()
	<-at
	took := w.e.drainsNow(t)
	for w.e.Health().Ready {
		time.Sleep(time.Millisecond)
	}
	if r, f := w.do("POST", "/v1/rooms/desk:1/commands/work", "{}", "Authorization: Bearer acme/a"); r.StatusCode != 503 || f.at("err.code") != "draining" || r.Header.Get("Retry-After") == "" {
		t.Errorf("a new request: %d %v", r.StatusCode, f)
	}
	close(goOn)
	if f := <-answers; f.at("ok.data") != "done" {
		t.Errorf("that was under way: %v", f)
	}
	if d := took(); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
}

// Whatever does not end by itself is left behind by the deadline.
func TestDrainEndsInTime(t *testing.T) {
	type world struct {
		e       *Engine
		c       *client
		release chan struct{}
	}
	never := func(w *world) room.Kind {
		return kind("k", one(&puppet{publish: func(*room.Context, *room.Event) error { <-w.release; return nil }}))
	}
	publish := func(w *world) { w.c.send(`{"t":"publish","id":1,"room":"k:1","event":"message","data":1}`) }
	for _, tt := range []struct {
		what   string
		kind   func(*world) room.Kind
		before func(*world)
		lasts  time.Duration // at least
	}{
		{"a handler that does not return", never, publish, forGoing},
		{"a handler that hangs in its end", func(w *world) room.Kind {
			return kind("k", one(&puppet{leave: func(*room.Context, *room.Member) { <-w.release }}))
		}, func(*world) {}, forGoing},
		{"a command that is never answered", func(*world) room.Kind {
			return serving("k", func(_ *room.Context, c *room.Command) (any, error) { c.Later(); return nil, nil })
		}, func(w *world) { w.c.send(`{"t":"command","id":1,"room":"k:1","name":"work"}`) }, forGoing},
		{"a handler made anew after panics", func(*world) room.Kind {
			return kind("k", one(&puppet{publish: func(*room.Context, *room.Event) error { panic("on purpose") }}))
		}, func(w *world) { publish(w); publish(w) }, forGoing},
		{"a client that does not read, which is cut", func(*world) room.Kind { return kind("k", nil) }, func(w *world) {
			for range 60 {
				w.e.publish(w.c.t, "acme", "k:1", "message", strings.Repeat("x", 4<<10))
			}
		}, 0},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{release: make(chan struct{})}
				w.e = start(t, func(c *Config) { c.Kinds = []room.Kind{tt.kind(w)} })
				t.Cleanup(func() { close(w.release) })
				w.c = join(t, w.e, "acme/a", "k:1")
				tt.before(w)
				time.Sleep(2 * time.Second)
				if d := w.e.drains(t)(); d < tt.lasts || d > forDrain {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

func TestCloseHurriesADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		c := join(t, e, "acme/a", "chat:1")
		took := e.drains(t)
		c.until("drain")
		go e.closeWithin(t, 5*time.Second)
		if code := c.closed(); code != 1012 {
			t.Errorf("closed with %d", code)
		}
		if d := took(); d > 5*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

func TestDrainWhoseContextEndsIsAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		c := join(t, e, "acme/a", "chat:1")
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := e.Drain(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("drain: %v", err)
			}
		})
		if f := c.until("drain"); fmt.Sprint(f["deadline_ms"]) != fmt.Sprint((drainTime / 5 * 4).Milliseconds()) {
			t.Errorf("without a deadline: %v", f)
		}
		cancel()
		wg.Wait()
		if code := c.closed(); code != 1012 {
			t.Errorf("closed with %d", code)
		}
	})
}
