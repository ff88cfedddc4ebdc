package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
)

// bearer takes tokens "tenant/subject", with every right.
type bearer struct{}

func (bearer) Authenticate(_ context.Context, c auth.Credentials) (*auth.Identity, error) {
	tenant, subject, ok := strings.Cut(c.Token, "/")
	if !ok {
		return nil, fmt.Errorf("no token of ours: %w", auth.ErrUnauthenticated)
	}
	return &auth.Identity{Tenant: tenant, Subject: subject, Grants: auth.AllowAll()}, nil
}

// counter counts the commands that it has done.
type counter struct{ done int }

func (*counter) Publish(*room.Context, *room.Event) error { return nil }

func (h *counter) Command(_ *room.Context, c *room.Command) (any, error) {
	if c.Name != "count" {
		return nil, codec.NewError(codec.CodeNotFound, "there is only count")
	}
	h.done++
	return h.done, nil
}

// node is an engine behind a listener that can cut its connections.
type node struct {
	*engine.Engine
	url string

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// serve runs a node until the test ends, and checks then that no goroutine is left.
func serve(t testing.TB, change func(*engine.Config)) *node {
	t.Helper()
	before := goleak.IgnoreCurrent()
	cfg := engine.Config{Authenticator: bearer{}, TenantDefaults: engine.TenantLimits{SessionRate: backpressure.Rate{Messages: -1, Bytes: -1}}, Kinds: []room.Kind{
		{Name: "chat", Events: map[string]room.EventPolicy{
			room.Any: {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive},
			"typing": {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.DropOldest},
		}},
		{Name: "short", History: room.History{Events: 4}},
		{Name: "lounge", Presence: true, New: func() room.Handler { return &counter{} }},
		{Name: "orders", Events: map[string]room.EventPolicy{
			"order": {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive, Overflow: backpressure.RequireAck},
		}},
	}}
	if testing.Verbose() {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	}
	if change != nil {
		change(&cfg)
	}
	e, err := engine.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Engine: e, url: "ws://" + l.Addr().String(), conns: map[net.Conn]bool{}}
	server := &http.Server{Handler: e.Handler(), ConnState: n.track}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *node) track(conn net.Conn, s http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s == http.StateHijacked {
		n.conns[conn] = true
	}
}

// cut ends every connection as a lost network does, and returns how many.
func (n *node) cut() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := len(n.conns)
	for conn := range n.conns {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
		delete(n.conns, conn)
	}
	return count
}

func (n *node) publish(t testing.TB, room, event string, data any) engine.Result {
	t.Helper()
	r, err := n.Publish(soon(t), engine.Event{Tenant: "acme", Room: room, Name: event, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
