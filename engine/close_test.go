package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
	link "github.com/yaza-dev/pulse/transport/memory"
)

// bounded runs f, which must return by itself, long before a test run gives up.
func bounded(t *testing.T, within time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(within):
		t.Fatalf("%s: not done within %v", what, within)
	}
}

func (e *Engine) closeWithin(t *testing.T, d time.Duration) {
	t.Helper()
	bounded(t, d, "close", func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func TestCloseSendsWhatWasQueuedAndThen1012(t *testing.T) {
	e := start(t, nil)
	const sessions, events = 8, 60
	clients := make([]*client, sessions)
	for i := range clients {
		clients[i] = join(t, e, fmt.Sprintf("t%d/a", i%2), "chat:1")
	}
	data := strings.Repeat("x", 4<<10) // more in all than a window holds, less than a queue
	for i := range events {
		for tenant := range 2 {
			e.publish(t, fmt.Sprintf("t%d", tenant), "chat:1", "message", fmt.Sprint(i, data))
		}
	}
	closed := make(chan struct{})
	go func() { defer close(closed); e.closeWithin(t, 10*time.Second) }()
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			var got uint64
			for {
				f, err := c.recv(t.Context())
				var end *link.CloseError
				switch {
				case errors.As(err, &end):
					if end.Code != 1012 || got != events {
						t.Errorf("client %d: %v after %d of %d events", i, end, got, events)
					}
					return
				case err != nil:
					t.Errorf("client %d: %v", i, err)
					return
				case f.t() == "event":
					if got++; f.offset() != got {
						t.Errorf("client %d: offset %d as event %d", i, f.offset(), got)
					}
				}
			}
		})
	}
	wg.Wait()
	<-closed
}

func TestCloseIsIdempotentAndConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		join(t, e, "acme/a", "chat:1")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Close(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("close with a context that has ended: %v", err)
		}
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() { e.closeWithin(t, 10*time.Second) })
		}
		wg.Wait()
		e.closeWithin(t, 10*time.Second)
	})
}

func TestClosedEngineAnswersErrClosed(t *testing.T) {
	e := start(t, nil)
	c := join(t, e, "acme/a", "chat:1")
	go func() { _ = e.Close(context.Background()) }()
	if code := c.closed(); code != 1012 {
		t.Errorf("closed with %d", code)
	}
	<-c.conn.Done()
	e.closeWithin(t, 10*time.Second)
	for _, tenant := range []string{"acme", "new"} {
		ev := Event{Tenant: tenant, Room: "chat:1", Name: "message", Data: 1}
		if _, err := e.Publish(t.Context(), ev); !errors.Is(err, ErrClosed) {
			t.Errorf("publish to %s: %v", tenant, err)
		}
		if _, err := e.TryPublish(ev); !errors.Is(err, ErrClosed) {
			t.Errorf("try to publish to %s: %v", tenant, err)
		}
	}
	if n, err := e.Disconnect(t.Context(), "acme", ""); n != 0 || err != nil {
		t.Errorf("disconnect: %d, %v", n, err)
	}
	if err := refused(link.Dial(e, protocol(codec.JSON), link.Options{})); err == nil || err.Code != codec.CodeDraining {
		t.Errorf("a new connection: %v", err)
	}
	if h := e.Health(); h.Ready || h.Sessions != 0 || h.Tenants != 0 {
		t.Errorf("health: %+v", h)
	}
	if n := e.wheel.Armed(); n != 0 {
		t.Errorf("%d timers outlive the engine", n)
	}
}

func TestStartAfterItsContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Config{Kinds: []room.Kind{openKind}, Authenticator: asTold{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("started: %v", err)
	}
}

func TestEnginesOfOneProcessDoNotKnowOfEachOther(t *testing.T) {
	one, two := start(t, nil), start(t, nil)
	a, b := join(t, one, "acme/a", "chat:1"), join(t, two, "acme/b", "chat:1")
	one.publish(t, "acme", "chat:1", "message", "one")
	two.publish(t, "acme", "chat:1", "message", "two")
	if ev := a.until("event"); ev["data"] != "one" {
		t.Errorf("in the first: %v", ev)
	}
	go func() { _ = one.Close(context.Background()) }()
	if code := a.closed(); code != 1012 {
		t.Errorf("closed with %d", code)
	}
	one.closeWithin(t, 10*time.Second)
	if ev := b.until("event"); ev["data"] != "two" {
		t.Errorf("in the second: %v", ev)
	}
	two.publish(t, "acme", "chat:1", "message", "still")
	if ev := b.until("event"); ev["data"] != "still" {
		t.Errorf("after the first has ended: %v", ev)
	}
}

// A handler's Close cannot wait for the handler itself: the handler is found not
// to return, and the engine ends without it.
func TestCloseFromInsideAHandler(t *testing.T) {
	for _, where := range []string{"publish", "join", "leave"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e *Engine
				shut := make(chan error, 1)
				end := func(in string) {
					if in == where {
						shut <- e.Close(context.Background())
					}
				}
				e = start(t, func(c *Config) {
					c.Kinds = []room.Kind{openKind, kind("own", one(&puppet{
						publish: func(*room.Context, *room.Event) error { end("publish"); return nil },
						join:    func(_ *room.Context, m *room.Member) error { end("join"); return nil },
						leave:   func(*room.Context, *room.Member) { end("leave") },
					}))}
				})
				bystander := join(t, e, "acme/b", "chat:1")
				gone := make(chan uint16, 1)
				go func() { gone <- bystander.closed() }()
				c := join(t, e, "acme/a")
				c.send(`{"t":"join","id":1,"room":"own:1"}`)
				c.send(`{"t":"publish","id":2,"room":"own:1","event":"message","data":1}`)
				if where == "leave" {
					c.until("event")
					c.send(`{"t":"leave","id":3,"room":"own:1"}`)
				}
				bounded(t, 10*time.Second, "close in the handler", func() {
					if err := <-shut; err != nil {
						t.Errorf("close: %v", err)
					}
				})
				if code := <-gone; code != 1012 {
					t.Errorf("a bystander is closed with %d", code)
				}
				e.closeWithin(t, time.Second)
			})
		})
	}
}

func TestCloseFromAnAuthenticator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *Engine
		shut := make(chan error, 1)
		e = start(t, func(c *Config) {
			c.Authenticator = authFunc(func(context.Context, auth.Credentials) (*auth.Identity, error) {
				shut <- e.Close(context.Background())
				return nil, auth.ErrUnauthenticated
			})
		})
		c := dial(t, e, codec.JSON, link.Options{})
		c.send(`{"t":"hello","token":"acme/a"}`)
		if code := c.closed(); code != 1012 {
			t.Errorf("closed with %d", code)
		}
		bounded(t, 10*time.Second, "close in the authenticator", func() { <-shut })
	})
}

func TestCloseDoesNotWaitForClientsThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) { c.Limits.WriteTimeout = 500 * time.Millisecond })
		o := link.Options{Window: 4 << 10, WriteTimeout: 500 * time.Millisecond}
		var stuck []*client
		for i := range 8 {
			c := dial(t, e, codec.JSON, o)
			c.hello(fmt.Sprintf("acme/s%d", i), "chat:1")
			stuck = append(stuck, c)
		}
		silent := dial(t, e, codec.JSON, o) // reads nothing and has nothing to read but the close
		silent.hello("acme/silent")
		data := strings.Repeat("x", 2<<10)
		for range 20 {
			e.publish(t, "acme", "chat:1", "message", data)
		}
		e.closeWithin(t, 5*time.Second)
		for i, c := range stuck {
			if code := c.closed(); code != 1006 {
				t.Errorf("client %d: closed with %d", i, code)
			}
		}
	})
}

func TestCloseAnswersEveryPublishInFlight(t *testing.T) {
	e := start(t, nil)
	var answered [3]atomic.Int64
	var wg sync.WaitGroup
	begun := make(chan struct{}, 32)
	for i := range 32 {
		wg.Go(func() {
			for n := 0; ; n++ {
				_, err := e.Publish(context.Background(), Event{
					Tenant: fmt.Sprint("t", i%4), Room: fmt.Sprint("chat:", (i+n)%8), Name: "message", Data: n,
				})
				var coded *codec.Error
				switch {
				case err == nil:
					answered[0].Add(1)
				case errors.As(err, &coded):
					answered[1].Add(1)
				case errors.Is(err, ErrClosed):
					answered[2].Add(1)
					return
				default:
					t.Errorf("publish: %v", err)
					return
				}
				if n == 10 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range 32 {
		<-begun
	}
	e.closeWithin(t, 10*time.Second)
	bounded(t, 10*time.Second, "publishes in flight", wg.Wait)
	t.Logf("accepted %d, refused %d, closed %d", answered[0].Load(), answered[1].Load(), answered[2].Load())
}

// holding is a Broker that keeps what is published from the broker below until it
// is let go.
type holding struct {
	bridge.Broker
	held chan func()
}

func (h holding) Publish(topic codec.Topic, r bridge.Retention, batch []bridge.Publication, done func([]bridge.Published)) {
	batch = append([]bridge.Publication(nil), batch...)
	h.held <- func() { h.Broker.Publish(topic, r, batch, done) }
}

// letGo lets go of everything, now and until the returned function is called.
func (h holding) letGo() (end func()) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case publish := <-h.held:
				publish()
			case <-stop:
				return
			}
		}
	})
	return func() { close(stop); wg.Wait() }
}

func hold(t *testing.T) holding {
	h := holding{memory.New(memory.Config{}), make(chan func(), 1<<10)}
	t.Cleanup(h.Broker.Close)
	return h
}

func TestCloseAnswersPublishesThatTheBrokerNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(t)
		e := start(t, func(c *Config) { c.Broker = h })
		errs := make(chan error, 1)
		go func() {
			_, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: 1})
			errs <- err
		}()
		<-h.held
		e.closeWithin(t, 10*time.Second)
		bounded(t, 10*time.Second, "publish", func() {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("publish: %v", err)
			}
		})
	})
}

func TestCloseOfConnectionsInTheirHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, making, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
		defer close(release)
		e := start(t, func(c *Config) {
			c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
				if cr.Token == "slow" {
					close(asked)
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return asTold{}.Authenticate(ctx, cr)
			})
			c.Kinds = []room.Kind{kind("chat", func() room.Handler { close(making); <-release; return &puppet{} })}
		})
		quiet := dial(t, e, codec.JSON, link.Options{})
		opening := dial(t, e, codec.JSON, link.Options{})
		opening.send(`{"t":"hello","token":"acme/a","rooms":[{"room":"chat:1"}]}`)
		slow := dial(t, e, codec.JSON, link.Options{})
		slow.send(`{"t":"hello","token":"slow"}`)
		<-asked
		<-making
		began := time.Now()
		e.closeWithin(t, 8*time.Second)
		for name, c := range map[string]*client{"silent": quiet, "opening": opening, "authenticating": slow} {
			if code := c.closed(); code != 1012 {
				t.Errorf("%s: closed with %d", name, code)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Sessions that open while the engine begins to close are closed like the others,
// or were never opened: none is cut off and none is left.
func TestCloseWhileConnectionsComeIn(t *testing.T) {
	for range 20 {
		e := start(t, nil)
		var wg sync.WaitGroup
		began := make(chan struct{}, 16)
		for i := range 16 {
			wg.Go(func() {
				for n := 0; ; n++ {
					c := link.Dial(e, protocol(codec.JSON), link.Options{})
					if refused(c) != nil {
						return
					}
					_ = c.Send([]byte(fmt.Sprintf(`{"t":"hello","token":"t%d/a","rooms":[{"room":"chat:1"}]}`, (i+n)%3)))
					if n == 1 {
						began <- struct{}{}
					}
					if n%2 == 0 {
						c.Cut()
					}
					for {
						_, err := c.Recv(context.Background())
						var end *link.CloseError
						if errors.As(err, &end) {
							if end.Code != 1012 && end.Code != 1006 || end.Code == 1006 && n%2 == 1 {
								t.Errorf("closed with %d", end.Code)
							}
							break
						}
						if n%2 == 1 && n < 8 {
							c.Cut()
							break
						}
					}
					<-c.Done()
				}
			})
		}
		for range 4 {
			<-began
		}
		e.closeWithin(t, 10*time.Second)
		bounded(t, 10*time.Second, "clients", wg.Wait)
		if h := e.Health(); h.Sessions != 0 || h.Tenants != 0 {
			t.Fatalf("left: %+v", h)
		}
	}
}

// Handlers that do not return hold up their own tenant: its sessions cannot be
// told, those of others can, and Close ends.
func TestCloseBesideATenantWhoseHandlersDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		in := make(chan struct{}, scheduler.StuckPerTenant)
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{openKind, kind("hang", one(&puppet{
				publish: func(*room.Context, *room.Event) error { in <- struct{}{}; <-release; return nil },
			}))}
		})
		t.Cleanup(func() { close(release) })
		for i := range scheduler.StuckPerTenant {
			if _, err := e.TryPublish(Event{Tenant: "bad", Room: fmt.Sprint("hang:", i), Name: "message", Data: 1}); err != nil {
				t.Fatal(err)
			}
		}
		good := join(t, e, "good/a", "chat:1")
		for range scheduler.StuckPerTenant {
			<-in
		}
		e.publish(t, "good", "chat:1", "message", 1)
		good.until("event")
		closed := make(chan struct{})
		go func() { defer close(closed); e.closeWithin(t, 15*time.Second) }()
		began := time.Now()
		if code := good.closed(); code != 1012 || time.Since(began) > 3*time.Second {
			t.Errorf("another tenant's session is closed with %d after %v", code, time.Since(began))
		}
		<-closed
	})
}

func TestLeaveIsToldOfEveryMemberBeforeTheRoomStops(t *testing.T) {
	var joined, left atomic.Int64
	e := start(t, func(c *Config) {
		c.Kinds = []room.Kind{kind("chat", func() room.Handler {
			return &puppet{
				join:  func(*room.Context, *room.Member) error { joined.Add(1); return nil },
				leave: func(*room.Context, *room.Member) { left.Add(1) },
			}
		})}
	})
	var clients []*client
	for i := range 20 {
		clients = append(clients, join(t, e, fmt.Sprint("acme/m", i), fmt.Sprint("chat:", i%3)))
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.closed() })
	}
	e.closeWithin(t, 10*time.Second)
	wg.Wait()
	if joined.Load() != 20 || left.Load() != 20 {
		t.Errorf("%d joined, %d left", joined.Load(), left.Load())
	}
}
