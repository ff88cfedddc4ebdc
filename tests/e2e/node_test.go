package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
)

// briefly is how long the credentials of the subject brief are good, and as much
// again by their leeway: long enough for a busy machine to welcome it before.
const briefly = 1500 * time.Millisecond

// bearer takes tokens "tenant/subject", with every right in every room, or
// "tenant/subject/grants" with grants as in a JWT.
type bearer struct{}

func (bearer) Authenticate(_ context.Context, c auth.Credentials) (*auth.Identity, error) {
	parts := strings.SplitN(c.Token, "/", 3)
	if len(parts) < 2 {
		return nil, fmt.Errorf("no token of ours: %w", auth.ErrUnauthenticated)
	}
	id := &auth.Identity{Tenant: parts[0], Subject: parts[1], Grants: auth.AllowAll()}
	if parts[1] == "brief" {
		id.Expires, id.Leeway = time.Now().Add(briefly), briefly
	}
	if len(parts) < 3 {
		return id, nil
	}
	var err error
	id.Grants, err = auth.ParseGrants([]byte(parts[2]))
	return id, err
}

// kinds of the nodes of these tests: one with events of each delivery, one that
// only the server publishes to, one for whoever has the grant, one that remembers
// two events, one whose handler knows what it wants.
func kinds() []room.Kind {
	buffered := room.EventPolicy{Delivery: room.AtLeastOnce, Lane: backpressure.Interactive}
	return []room.Kind{
		{Name: "chat", Events: map[string]room.EventPolicy{
			"message": buffered,
			"note":    {Delivery: room.AtMostOnce, Lane: backpressure.Bulk, Overflow: backpressure.DropOldest},
			"typing":  {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.DropOldest},
			"cursor":  {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.CoalesceLatest, CoalesceBy: "session"},
		}},
		{Name: "board", Publish: room.Server},
		{Name: "wire", Publish: room.Grant},
		{Name: "short", History: room.History{Events: 2}},
		{Name: "small", History: room.History{Bytes: 64 << 10}},
		{Name: "tally", New: func() room.Handler { return &tally{} }},
	}
}

// tally sums numbers, refuses those below 0 and panics at 13.
type tally struct{ Sum int }

func (*tally) Publish(_ *room.Context, e *room.Event) error {
	var n int
	switch err := e.Data.Unmarshal(&n); {
	case err != nil || n < 0:
		return errors.New("a secret of the room")
	case n == 13:
		panic("thirteen")
	}
	return nil
}

func (s *tally) Apply(_ *room.Context, e *room.Applied) {
	var n int
	if e.Data.Unmarshal(&n) == nil {
		s.Sum += n
	}
}

func (s *tally) Snapshot() (any, error) { return s, nil }

func (s *tally) Restore(state codec.Data, _ codec.Position) error { return state.Unmarshal(s) }

// node is an engine behind a listener.
type node struct {
	*engine.Engine
	url    string
	trust  *tls.Config // of clients, for a node with TLS
	dialer net.Dialer
}

// setup is how a node differs from the usual.
type setup struct {
	engine.Config
	listen func(net.Listener) net.Listener // goes around the listener
	tls    *tls.Config
}

// serve runs a node until the test ends.
func serve(t testing.TB, change func(*setup)) *node {
	t.Helper()
	before := goleak.IgnoreCurrent()
	s := setup{Config: engine.Config{Kinds: kinds(), Authenticator: bearer{}}}
	s.TenantDefaults.SessionRate = backpressure.Rate{Messages: -1, Bytes: -1} // tests flood
	s.Limits.WriteTimeout = 5 * time.Second
	if testing.Verbose() {
		s.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	}
	if change != nil {
		change(&s)
	}
	e, err := engine.Start(t.Context(), s.Config)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Engine: e, url: "http://" + l.Addr().String()}
	if s.listen != nil {
		l = s.listen(l)
	}
	if s.tls != nil {
		n.url = "https" + strings.TrimPrefix(n.url, "http")
		l = tls.NewListener(l, s.tls)
	}
	server := &http.Server{Handler: e.Handler()}
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
