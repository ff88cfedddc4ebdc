package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everybody is whoever the token says.
type everybody struct{}

func (everybody) Authenticate(_ context.Context, c auth.Credentials) (*auth.Identity, error) {
	return &auth.Identity{Tenant: "acme", Subject: c.Token, Grants: auth.AllowAll()}, nil
}

// TestAuction plays an auction: over a socket, and from the program itself.
func TestAuction(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := engine.Start(ctx, engine.Config{
		Authenticator: everybody{},
		Kinds:         []room.Kind{{Name: "auction", New: func() room.Handler { return &auction{} }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e.Handler())
	defer server.Close()
	defer e.Close(ctx)

	client, _, err := websocket.Dial(ctx, server.URL+"/v1/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseNow()
	say(ctx, t, client, `{"t":"hello","token":"alice","rooms":[{"room":"auction:lamp"}]}`)
	hear(ctx, t, client, "welcome")

	say(ctx, t, client, `{"t":"publish","id":1,"room":"auction:lamp","event":"bid","data":10}`)
	if bid := hear(ctx, t, client, "event"); string(bid.Data) != "10" || bid.From != "alice" {
		t.Errorf("bid %+v", bid)
	}
	for _, bid := range []int{9, 10} {
		_, err := e.Publish(ctx, engine.Event{Tenant: "acme", Room: "auction:lamp", Name: "bid", Data: bid})
		refusal := (*codec.Error)(nil)
		if !errors.As(err, &refusal) || refusal.Code != codec.CodeConflict {
			t.Errorf("bid of %d: %v", bid, err)
		}
	}
	if _, err := e.Publish(ctx, engine.Event{Tenant: "acme", Room: "auction:lamp", Name: "bid", Data: 11}); err != nil {
		t.Error(err)
	}
	if bid := hear(ctx, t, client, "event"); string(bid.Data) != "11" || bid.Offset != 2 {
		t.Errorf("bid %+v", bid)
	}
}

type frame struct {
	T      string
	Data   json.RawMessage
	From   string
	Offset int
}

func say(ctx context.Context, t *testing.T, c *websocket.Conn, text string) {
	t.Helper()
	if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// hear reads up to the next frame of a type.
func hear(ctx context.Context, t *testing.T, c *websocket.Conn, typ string) frame {
	t.Helper()
	for {
		_, text, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var f frame
		if err := json.Unmarshal(text, &f); err != nil {
			t.Fatal(err)
		}
		if f.T == typ {
			return f
		}
	}
}
