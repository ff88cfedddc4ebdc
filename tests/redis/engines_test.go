package redis_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	rooms "github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// asTold takes the token for the subject.
type asTold struct{}

func (asTold) Authenticate(_ context.Context, c auth.Credentials) (*auth.Identity, error) {
	return &auth.Identity{Tenant: "acme", Subject: c.Token, Grants: auth.AllowAll()}, nil
}

// host is one node: an engine with its bridge.
type host struct {
	*engine.Engine
	bridge *redis.Bridge
	url    string
}

func newHost(t *testing.T, address string, change ...func(*engine.Config)) *host {
	t.Helper()
	h := &host{bridge: node(t, address)}
	cfg := engine.Config{
		Authenticator: asTold{}, Broker: h.bridge,
		TenantDefaults: engine.TenantLimits{SessionRate: backpressure.Rate{Messages: -1, Bytes: -1}},
		Kinds: []rooms.Kind{{Name: rooms.Any, Events: map[string]rooms.EventPolicy{
			rooms.Any: {Delivery: rooms.AtLeastOnce, Lane: backpressure.Interactive},
			"typing":  {Delivery: rooms.Transient, Lane: backpressure.Lossy, Overflow: backpressure.DropOldest},
		}}},
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if h.Engine, err = engine.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h.Handler())
	h.url = "ws" + strings.TrimPrefix(web.URL, "http")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return h
}

func dial(t *testing.T, h *host, subject string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: h.url, Token: func(context.Context) (string, error) { return subject, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// events reads n of them, and fails at anything else but what is passed over.
func events(t *testing.T, s *client.Subscription, n int) (list []*client.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for len(list) < n {
		item, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("after %d events: %v", len(list), err)
		}
		switch item := item.(type) {
		case *client.Event:
			list = append(list, item)
		case *client.Reset:
			if item.Reason != codec.ResetNone { // else it is the beginning
				t.Fatalf("after %d events: reset %v", len(list), item.Reason)
			}
		case *client.Gap:
			t.Fatalf("after %d events: %+v", len(list), item)
		}
	}
	return list
}

func ids(list []*client.Event) []string {
	var texts []string
	for _, e := range list {
		texts = append(texts, e.ID)
	}
	return texts
}

// The scenario of the specification, and one order for all.
func TestBroadcastFromHostADeliveredToSubscriberOnHostB(t *testing.T) {
	s := server.Start(t)
	a, b := newHost(t, s.Address()), newHost(t, s.Address())
	ann, bob := dial(t, a, "ann"), dial(t, b, "bob")
	onA, err := ann.Join(t.Context(), client.Join{Room: "chat:1"})
	if err != nil {
		t.Fatal(err)
	}
	onB, err := bob.Join(t.Context(), client.Join{Room: "chat:1"})
	if err != nil {
		t.Fatal(err)
	}
	const each = 100
	var all sync.WaitGroup
	for _, c := range []*client.Client{ann, bob} {
		all.Go(func() {
			for i := range each {
				if _, err := c.Publish(t.Context(), client.Publish{Room: "chat:1", Event: "message", Data: i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	gotA, gotB := events(t, onA, 2*each), events(t, onB, 2*each)
	all.Wait()
	if !slices.Equal(ids(gotA), ids(gotB)) {
		t.Fatal("two orders")
	}
	for i, e := range gotA {
		if e.Position.Offset != uint64(i+1) {
			t.Fatalf("offset %d at place %d", e.Position.Offset, i)
		}
	}
	if _, err := ann.Publish(t.Context(), client.Publish{Room: "chat:1", Event: "typing"}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*client.Subscription{onA, onB} {
		if got := events(t, s, 1)[0]; got.Name != "typing" {
			t.Fatalf("%+v", got)
		}
	}
}

// https://github.com/dotnet/aspnetcore/issues/55575
func TestB039_ReconnectLandsOnDifferentHostAndResumesFromEventBuffer(t *testing.T) {
	s := server.Start(t)
	a, b := newHost(t, s.Address()), newHost(t, s.Address())
	ann := dial(t, a, "ann")
	if _, err := ann.Join(t.Context(), client.Join{Room: "chat:1"}); err != nil {
		t.Fatal(err)
	}
	publish := func(n int) {
		for range n {
			if _, err := ann.Publish(t.Context(), client.Publish{Room: "chat:1", Event: "message"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	bob := dial(t, b, "bob")
	sub, err := bob.Join(t.Context(), client.Join{Room: "chat:1"})
	if err != nil {
		t.Fatal(err)
	}
	publish(3)
	if _, err := bob.Publish(t.Context(), client.Publish{Room: "chat:1", Event: "message"}); err != nil {
		t.Fatal(err)
	}
	at := events(t, sub, 4)[3].Position
	bob.Close()
	publish(2)
	again, err := dial(t, a, "bob").Join(t.Context(), client.Join{Room: "chat:1", Position: at})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events(t, again, 2) {
		if e.Position.Offset != at.Offset+uint64(i)+1 {
			t.Fatalf("%v after %v", e.Position, at)
		}
	}
}

// Who comes back after its epoch has ended, and lost nothing, is told its own position, and
// what follows is of the new one.
func TestAPositionThatHoldsIsAnsweredAsTheClientsOwn(t *testing.T) {
	s := server.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	h := newHost(t, s.Address())
	ann := dial(t, h, "ann")
	sub, err := ann.Join(t.Context(), client.Join{Room: "chat:1"})
	if err != nil {
		t.Fatal(err)
	}
	publish := func() {
		if _, err := ann.Publish(t.Context(), client.Publish{Room: "chat:1", Event: "message"}); err != nil {
			t.Fatal(err)
		}
	}
	publish()
	at := events(t, sub, 1)[0].Position
	s.Kill()
	s.Restart()
	publish()
	if next := events(t, sub, 1)[0].Position; next.Epoch == at.Epoch || next.Offset != 2 {
		t.Fatalf("%v after %v and a bounce", next, at)
	}
	again, err := dial(t, h, "bob").Join(t.Context(), client.Join{Room: "chat:1", Position: at})
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Position(); got != at {
		t.Errorf("it asked from %v, and is answered %v", at, got)
	}
	events(t, again, 1)
}

// While there is no server members of one node hear each other's transient events,
// and what is kept follows once it is back.
func TestLocalTransientDeliveryGoesOnWithoutAServer(t *testing.T) {
	s := server.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	a := newHost(t, s.Address())
	ann, bob := dial(t, a, "ann"), dial(t, a, "bob")
	sub, err := bob.Join(t.Context(), client.Join{Room: "chat:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.Join(t.Context(), client.Join{Room: "chat:1"}); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	until(t, a.bridge, bridge.Down)
	// From the program, which gives it no key: a key is looked up where all nodes see it.
	if _, err := a.Publish(t.Context(), engine.Event{Tenant: "acme", Room: "chat:1", Name: "typing"}); err != nil {
		t.Fatal(err)
	}
	if got := events(t, sub, 1)[0]; got.Name != "typing" {
		t.Fatalf("%+v", got)
	}
	if h := a.Health(); !h.Degraded {
		t.Errorf("%+v", h)
	}
	done := make(chan error, 1)
	go func() {
		_, err := ann.Publish(t.Context(), client.Publish{Room: "chat:1", Event: "message"})
		done <- err
	}()
	s.Restart()
	if got := events(t, sub, 1)[0]; got.Name != "message" {
		t.Fatalf("%+v", got)
	}
	if err := receive(t, done, "the answer"); err != nil {
		t.Fatal(err)
	}
}
