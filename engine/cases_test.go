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
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	link "github.com/yaza-dev/pulse/transport/memory"
)

// settled waits until cond holds, for what other goroutines do in the end.
func settled(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not in the end: %s", what)
		}
	}
}

// B081, superplanehq/superplane#6427: a hub that evicted a full client while it
// held its lock deadlocked.
func TestB081_BroadcastToAFullClientWhileOthersComeAndGo(t *testing.T) {
	e := start(t, nil)
	full := dial(t, e, codec.JSON, link.Options{Window: 1 << 10, WriteTimeout: 300 * time.Millisecond})
	full.hello("acme/full", "chat:1")
	var members []*client
	for i := range 50 {
		members = append(members, join(t, e, fmt.Sprint("acme/m", i), "chat:1"))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range members {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if i < 10 { // these come and go
					c.ask(`{"t":"leave","room":"chat:1"}`)
					c.ask(`{"t":"join","room":"chat:1"}`)
				} else {
					c.next()
				}
			}
		})
	}
	data := strings.Repeat("x", 2<<10)
	var last Result
	settled(t, "the full client is gone", func() bool {
		last = e.publish(t, "acme", "chat:1", "message", data)
		select {
		case <-full.conn.Done():
			return true
		default:
			return false
		}
	})
	close(stop)
	for range 3 { // for who waits for one more
		last = e.publish(t, "acme", "chat:1", "message", data)
	}
	wg.Wait()
	if r, _ := join(t, e, "acme/late").ask(`{"t":"join","room":"chat:1"}`); r.at("ok.offset") == nil {
		t.Errorf("a join afterwards, at %v: %v", last.Position, r)
	}
}

// B086, socketio/socket.io#4380: a join that completed after the disconnect left
// a ghost member for ever.
func TestB086_JoinThatIsGrantedAfterTheDisconnectLeavesNoGhost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var joined, left atomic.Int64
		asked, grant := make(chan struct{}), make(chan struct{})
		k := kind("slow", one(&puppet{
			join: func(*room.Context, *room.Member) error {
				asked <- struct{}{}
				<-grant
				joined.Add(1)
				return nil
			},
			leave: func(*room.Context, *room.Member) { left.Add(1) },
		}))
		k.Linger = 10 * time.Millisecond
		broker := newWatched(t)
		e := start(t, func(c *Config) { c.Kinds, c.Broker = []room.Kind{k}, broker })
		for i := range 200 {
			c := dial(t, e, codec.JSON, link.Options{})
			if i%2 == 0 {
				c.send(`{"t":"hello","token":"acme/a","rooms":[{"room":"slow:1"}]}`)
			} else {
				c.hello("acme/a")
				c.request(`{"t":"join","room":"slow:1"}`)
			}
			<-asked
			c.conn.Cut()
			<-c.conn.Done()
			grant <- struct{}{}
		}
		settled(t, "the room has ended, and follows its topic no more", func() bool {
			return e.rooms() == 0 && broker.followed.Load() == 0 && e.system.Live() == 1
		})
		if joined.Load() != 200 || left.Load() != joined.Load() {
			t.Errorf("%d joined, %d left", joined.Load(), left.Load())
		}
	})
}

// watched is a Broker that counts subscriptions and whose reads wait to be let
// go.
type watched struct {
	bridge.Broker
	followed atomic.Int64
	reads    chan func(error bool)
}

func newWatched(t *testing.T) *watched {
	c := &watched{Broker: memory.New(memory.Config{}), reads: make(chan func(bool), 16)}
	t.Cleanup(c.Broker.Close)
	return c
}

func (c *watched) Subscribe(topic codec.Topic, s bridge.Sink) {
	c.followed.Add(1)
	c.Broker.Subscribe(topic, s)
}

func (c *watched) Unsubscribe(topic codec.Topic, s bridge.Sink) {
	c.followed.Add(-1)
	c.Broker.Unsubscribe(topic, s)
}

func (c *watched) Read(topic codec.Topic, r bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	c.reads <- func(fails bool) {
		if fails {
			done(bridge.Page{}, codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "away"))
			return
		}
		c.Broker.Read(topic, r, done)
	}
}

// B087, centrifugal/centrifuge#209: a client that was closed while its join read
// history stayed subscribed.
func TestB087_ClientClosedWhileItsJoinReadsHistory(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails=", fails), func(t *testing.T) {
			broker := newWatched(t)
			k := openKind
			k.Linger = 10 * time.Millisecond
			e := start(t, func(c *Config) { c.Kinds, c.Broker = []room.Kind{k}, broker })
			p := e.publish(t, "acme", "chat:1", "message", 1).Position
			for range 100 {
				e.publish(t, "acme", "chat:1", "message", 1) // beyond what the room keeps at hand
			}
			c := dial(t, e, codec.JSON, link.Options{})
			c.hello("acme/a")
			c.request(fmt.Sprintf(`{"t":"join","room":"chat:1","epoch":%q,"offset":%d}`, p.Epoch, p.Offset))
			read := <-broker.reads
			c.conn.Cut()
			<-c.conn.Done()
			read(fails)
			settled(t, "no room, no subscription", func() bool {
				select {
				case more := <-broker.reads: // whoever still waits
					more(false)
				default:
				}
				return e.rooms() == 0 && broker.followed.Load() == 0 && e.system.Live() == 1
			})
		})
	}
}

// B096, dotnet/aspnetcore#10257: a long handler blocked the pings and the close
// of its connection.
func TestB096_LongHandlerHoldsUpNeitherPingsNorTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, release := make(chan struct{}), make(chan struct{})
		e := start(t, func(c *Config) {
			c.Limits.Workers = 2
			c.Limits.Ping, c.Limits.PongTimeout = 200*time.Millisecond, 100*time.Millisecond
			c.Kinds = []room.Kind{kind("slow", one(&puppet{
				publish: func(*room.Context, *room.Event) error { close(in); <-release; return nil },
			}))}
		})
		c, other := join(t, e, "acme/a", "slow:1"), join(t, e, "acme/b", "slow:1")
		c.request(`{"t":"publish","room":"slow:1","event":"message","data":1}`)
		<-in
		began := time.Now()
		c.send(`{"t":"ping","id":5}`)
		if f := c.next(); f.t() != "pong" || time.Since(began) > 0 {
			t.Errorf("a ping: %v after %v", f, time.Since(began))
		}
		go func() { // other answers what it is asked
			for f, err := other.recv(context.Background()); err == nil; f, err = other.recv(context.Background()) {
				if f.t() == "ping" {
					_ = other.conn.Send([]byte(`{"t":"pong"}`)) // it may be closing
				}
			}
		}()
		for time.Since(began) < 800*time.Millisecond { // twice and more what a silent client has
			if f := c.next(); f.t() == "ping" {
				c.send(`{"t":"pong"}`)
			} else {
				t.Fatalf("while the handler is long: %v", f)
			}
		}
		other.conn.Close(1000)
		<-other.conn.Done()
		if time.Since(began) >= time.Second {
			t.Errorf("a close waited until %v", time.Since(began))
		}
		close(release)
		if r := c.replies(1)[1]; r["ok"] == nil {
			t.Errorf("the publish: %v", r)
		}
	})
}

// B129, tqwewe/kameo#351: a parent that waits for its children while a child
// waits for the parent's answer. Here sessions ask for rooms and rooms stop while
// their tenant does.
func TestB129_RequestsUnderWayWhileTheirTenantStops(t *testing.T) {
	e := start(t, func(c *Config) { c.Kinds = []room.Kind{kind("chat", one(&puppet{}))} })
	var wg sync.WaitGroup
	var asking atomic.Int64
	for i := range 16 {
		c := join(t, e, fmt.Sprint("acme/m", i))
		wg.Go(func() {
			wg.Go(func() {
				for _, err := c.recv(context.Background()); err == nil; _, err = c.recv(context.Background()) {
				}
			})
			for n := 1; c.conn.Send([]byte(fmt.Sprintf(`{"t":"join","id":%d,"room":"chat:%d"}`, n, n%64))) == nil; n++ {
				asking.Add(1)
				if e.closing.Load() && n%4 == 0 {
					c.conn.Close(1000)
				}
			}
		})
	}
	settled(t, "all ask", func() bool { return asking.Load() > 1000 })
	e.closeWithin(t, 10*time.Second)
	bounded(t, 10*time.Second, "clients", wg.Wait)
}

// B133, tqwewe/kameo#84: a mailbox of one place, full before its actor had
// started, which sends to itself: a deadlock.
func TestB133_SmallestMailboxIsFullBeforeTheRoomHasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which the handler is not given up
		var e *Engine
		making, release := make(chan struct{}), make(chan struct{})
		k := kind("tiny", func() room.Handler {
			close(making)
			<-release
			_, _ = e.TryPublish(Event{Tenant: "acme", Room: "tiny:1", Name: "message", Data: "itself"})
			return &puppet{}
		})
		k.MailboxItems = 1
		e = start(t, func(c *Config) { c.Kinds = []room.Kind{k} })
		if o, err := e.TryPublish(Event{Tenant: "acme", Room: "tiny:1", Name: "message", Data: 0}); o != backpressure.Accepted || err != nil {
			t.Fatalf("the first: %v, %v", o, err)
		}
		<-making
		results := make(chan error, 100)
		for i := range 100 {
			go func() {
				_, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "tiny:1", Name: "message", Data: i})
				results <- err
			}()
		}
		for range 100 {
			var refusal *codec.Error
			if err := <-results; !errors.As(err, &refusal) || refusal.Code != codec.CodeBackpressured {
				t.Errorf("to a full mailbox: %v", err)
			}
		}
		close(release)
		settled(t, "it takes more", func() bool {
			_, err := e.Publish(t.Context(), Event{Tenant: "acme", Room: "tiny:1", Name: "message", Data: 1})
			return err == nil
		})
	})
}

// B134, lightninglabs/wavelength#394: timers whose target's mailbox was full
// stopped all others.
func TestB134_TimersOfOthersFireBesideAFullAndStuckRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, release := make(chan struct{}), make(chan struct{})
		k := kind("stuck", one(&puppet{
			publish: func(*room.Context, *room.Event) error { close(in); <-release; return nil },
		}))
		k.MailboxItems, k.Linger = 1, 20*time.Millisecond // its own timer is due all the time
		brief := kind("brief", nil)
		brief.New, brief.Linger = nil, 100*time.Millisecond
		e := start(t, func(c *Config) {
			c.Limits.Workers = 2
			c.Limits.Ping = 300 * time.Millisecond
			c.Kinds = []room.Kind{k, brief}
		})
		c := join(t, e, "acme/a")
		began := time.Now()
		for range 10 {
			_, _ = e.TryPublish(Event{Tenant: "acme", Room: "stuck:1", Name: "message", Data: 1})
		}
		<-in
		e.publish(t, "acme", "brief:1", "message", 1)
		if f := c.next(); f.t() != "ping" || time.Since(began) > 320*time.Millisecond {
			t.Errorf("a session's timer: %v after %v", f, time.Since(began))
		}
		if n := e.rooms(); n != 1 {
			t.Errorf("%d rooms: the empty one has not ended", n)
		}
		close(release)
	})
}

// B136, akka/akka-core#26285, asynkron/protoactor-go#1202: timers that outlive
// their actor. A room's handler is made anew a thousand times, then the room ends.
func TestB136_NoTimerOutlivesItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		k := kind("frail", func() room.Handler {
			made.Add(1)
			return &puppet{publish: func(*room.Context, *room.Event) error { panic("handler") }}
		})
		k.Linger = time.Second
		e := start(t, func(c *Config) { c.Kinds = []room.Kind{k} })
		c := join(t, e, "acme/a", "frail:1")
		for made.Load() < 1000 {
			if r, _ := c.ask(`{"t":"publish","room":"frail:1","event":"message","data":1}`); r.at("err.code") == "not_joined" {
				c.ask(`{"t":"join","room":"frail:1"}`) // it was stopped, and is made anew
			}
		}
		c.conn.Close(1000)
		<-c.conn.Done()
		time.Sleep(5 * time.Second) // virtual: longer than any delay and linger
		synctest.Wait()
		again := made.Load()
		time.Sleep(time.Minute / 2)
		synctest.Wait()
		if n := e.rooms(); n != 0 || made.Load() != again {
			t.Errorf("%d rooms; %d handlers made after the end", n, made.Load()-again)
		}
		if n := e.wheel.Armed(); n > 1 {
			t.Errorf("%d timers are set beside the tenant's own", n-1)
		}
	})
}
