package engine

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	membridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// Whoever is there is told once when events from other nodes may be late, and once
// when they come in time again; whoever comes meanwhile has it in its welcome.
func TestStatusFollowsTheBridge(t *testing.T) {
	broker := bridgetest.NewAiling(membridge.New(membridge.Config{}))
	t.Cleanup(broker.Close)
	broker.Set(bridge.Health{State: bridge.Connecting})
	e := start(t, func(c *Config) { c.Broker = broker })
	clients := map[string]*client{}
	come := func(name string, live bool) {
		c := dial(t, e, codec.Codec(len(clients)%2), memory.Options{})
		if w := c.hello(name + "/a"); w.at("live") != live {
			t.Errorf("%s is welcome with live %v, want %v", name, w.at("live"), live)
		}
		clients[name] = c
	}
	told := func(live bool, reason any) {
		t.Helper()
		for name, c := range clients {
			if f := c.next(); f.t() != "status" || f.at("live") != live || f.at("reason") != reason {
				t.Errorf("%s: %v, want live %v, %v", name, f, live, reason)
			}
		}
	}
	untold := func() {
		t.Helper()
		for _, c := range clients {
			c.quiet()
		}
	}
	come("first", false)
	for i := range 3 * 64 { // more than a tenant tells in one turn
		clients[fmt.Sprint("many", i)] = join(t, e, "many/a")
	}
	broker.Set(bridge.Health{State: bridge.Up})
	told(true, nil)
	broker.Set(bridge.Health{State: bridge.Degraded, Why: "eviction"}) // delivery is whole
	untold()
	come("second", true)
	broker.Set(bridge.Health{State: bridge.Down, Why: "connection refused: 10.1.2.3"})
	told(false, "down")
	come("third", false)
	broker.Set(bridge.Health{State: bridge.Down, Why: "another"})
	untold()
	if h := e.Health(); !h.Ready || !h.Degraded || h.Why != "another" {
		t.Errorf("health %+v", h)
	}
	broker.Set(bridge.Health{State: bridge.Up})
	told(true, nil)
	untold()
}

// What has come and gone before a session had a turn is nothing to tell.
func TestStatusThatHasComeAndGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := bridgetest.NewAiling(membridge.New(membridge.Config{}))
		t.Cleanup(broker.Close)
		in, release := make(chan struct{}), make(chan struct{})
		e := start(t, func(c *Config) {
			c.Broker, c.Limits.Workers = broker, 1
			c.Kinds = []room.Kind{kind("slow", one(&puppet{
				publish: func(*room.Context, *room.Event) error { close(in); <-release; return nil },
			}))}
		})
		c := join(t, e, "acme/a")
		if _, err := e.TryPublish(Event{Tenant: "acme", Room: "slow:1", Name: "message"}); err != nil {
			t.Fatal(err)
		}
		<-in // the one worker is busy
		broker.Set(bridge.Health{State: bridge.Down})
		broker.Set(bridge.Health{State: bridge.Up})
		close(release)
		synctest.Wait()
		c.quiet()
	})
}

// Readiness says that the node works with a restriction, why and since when, and
// takes it out of no balancer.
func TestReadyzSaysWhatAils(t *testing.T) {
	broker := bridgetest.NewAiling(membridge.New(membridge.Config{}))
	t.Cleanup(broker.Close)
	e := start(t, func(c *Config) { c.Broker = broker })
	for _, tt := range []struct {
		health bridge.Health
		want   string
	}{
		{bridge.Health{State: bridge.Up}, `{"status":"ok"}`},
		{bridge.Health{State: bridge.Degraded, Why: "it may evict", Since: time.UnixMilli(5000)}, `{"since_ms":5000,"status":"degraded","why":"it may evict"}`},
		{bridge.Health{State: bridge.Down, Since: time.UnixMilli(7000)}, `{"since_ms":7000,"status":"degraded","why":"bridge down"}`},
	} {
		broker.Set(tt.health)
		w := httptest.NewRecorder()
		e.InternalHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != tt.want {
			t.Errorf("%v: %d %s, want %s", tt.health.State, w.Code, got, tt.want)
		}
	}
}

// A client that reads nothing is told the latest when it reads, however often it
// changed meanwhile: nothing waits for it, and no more piles up than it has place for.
func TestStatusForAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := bridgetest.NewAiling(membridge.New(membridge.Config{}))
		t.Cleanup(broker.Close)
		e := start(t, func(c *Config) { c.Broker, c.Limits.WriteTimeout = broker, time.Hour })
		slow := dial(t, e, codec.JSON, memory.Options{Window: 1 << 10, WriteTimeout: time.Hour})
		slow.hello("acme/slow", "chat:1")
		e.publish(t, "acme", "chat:1", "message", strings.Repeat("x", 4<<10))
		for i := range 201 {
			broker.Set(bridge.Health{State: []bridge.State{bridge.Down, bridge.Up}[i%2]})
			synctest.Wait() // its session has looked
		}
		told, live := 0, true
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			f, err := slow.recv(ctx)
			cancel()
			if err != nil {
				break // nothing more comes
			}
			if f.t() != "status" {
				continue
			}
			if told++; f.at("live") == live {
				t.Fatalf("told twice in a row: %v", f)
			}
			live = !live
		}
		if live || told > 64 {
			t.Errorf("told %d times of 201 changes, at last that live is %v", told, live)
		}
	})
}
