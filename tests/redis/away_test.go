package redis_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// told is what a client is told of whether events come in time.
type told struct {
	T      string `json:"t"`
	Live   bool   `json:"live"`
	Reason string `json:"reason"`
}

// listens connects a client that keeps its welcome and each status.
func listens(t *testing.T, h *host, subject string) (*client.Client, <-chan told) {
	t.Helper()
	all := make(chan told, 64)
	c, err := client.New(client.Options{
		URL: h.url, Token: func(context.Context) (string, error) { return subject, nil },
		OnFrame: func(frame []byte) {
			var f told
			if json.Unmarshal(frame, &f) == nil && (f.T == "welcome" || f.T == "status") {
				all <- f
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, all
}

// Clients are told when events of other nodes may be late, and when they come in time
// again, once each; whoever comes meanwhile is told by its welcome. Nothing is missing
// afterwards, and on the other node nobody hears of it.
func TestStatusIsToldThroughAnOutage(t *testing.T) {
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	a, b := newHost(t, p.Address()), newHost(t, s.Address())
	ann, onA := listens(t, a, "ann")
	bob, onB := listens(t, b, "bob")
	sub := inRoom(t, ann, "chat:1")
	inRoom(t, bob, "chat:1")
	for _, of := range []<-chan told{onA, onB} {
		if f := receive(t, of, "a welcome"); f != (told{"welcome", true, ""}) {
			t.Fatalf("%+v", f)
		}
	}
	p.Refuse(true)
	p.Cut()
	if f := receive(t, onA, "a status"); f != (told{"status", false, "down"}) {
		t.Errorf("%+v", f)
	}
	_, late := listens(t, a, "cat")
	if f := receive(t, late, "a welcome"); f != (told{"welcome", false, ""}) {
		t.Errorf("%+v", f)
	}
	for range 5 {
		said(t, bob, "chat:1", "message")
	}
	p.Refuse(false)
	for _, of := range []<-chan told{onA, late} {
		if f := receive(t, of, "a status"); f != (told{"status", true, ""}) {
			t.Errorf("%+v", f)
		}
	}
	for i, e := range events(t, sub, 5) {
		if e.Position.Offset != uint64(i+1) {
			t.Errorf("%v at place %d", e.Position, i)
		}
	}
	if len(onA)+len(onB)+len(late) > 0 {
		t.Errorf("more is told: %d, %d, %d", len(onA), len(onB), len(late))
	}
}

// While the bridge is away a join is served from what the node knows of the room, and
// binds: what was published meanwhile follows. What the node does not know is
// unavailable, for a while.
func TestJoinsWhileTheBridgeIsAway(t *testing.T) {
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	a, b := newHost(t, p.Address()), newHost(t, s.Address())
	ann, bob := dial(t, a, "ann"), dial(t, b, "bob")
	sub := inRoom(t, ann, "chat:1")
	inRoom(t, bob, "chat:1")
	for range 3 {
		said(t, bob, "chat:1", "message")
	}
	list := events(t, sub, 3)
	p.Refuse(true)
	p.Cut()
	until(t, a.bridge, bridge.Down)
	fresh := inRoom(t, dial(t, a, "cat"), "chat:1")
	held, err := dial(t, a, "dan").Join(t.Context(), client.Join{Room: "chat:1", Position: list[2].Position})
	if err != nil {
		t.Fatal(err)
	}
	behind, err := dial(t, a, "eve").Join(t.Context(), client.Join{Room: "chat:1", Position: list[0].Position})
	if err != nil {
		t.Fatal(err)
	}
	events(t, behind, 2) // of what the node still has
	if answer := firstAnswer(t, a, "fay", "chat:other"); answer.Code != "unavailable" || answer.RetryAfter <= 0 {
		t.Errorf("a room that the node does not know: %+v", answer)
	}

	for range 4 {
		said(t, bob, "chat:1", "message")
	}
	p.Refuse(false)
	for name, who := range map[string]*client.Subscription{"who was there": sub, "who was behind": behind, "without a position": fresh, "with the newest": held} {
		for i, e := range events(t, who, 4) {
			if e.Position.Offset != uint64(4+i) {
				t.Errorf("%s: %v at place %d", name, e.Position, i)
			}
		}
	}
}

// A position that a join was given while the bridge was away, and that the history lost,
// is told as a reset once it is back.
func TestAJoinWhileTheBridgeIsAwayIsResetWhenAllIsLost(t *testing.T) {
	s := server.Start(t)
	a := newHost(t, s.Address())
	ann := dial(t, a, "ann")
	sub := inRoom(t, ann, "chat:1")
	said(t, ann, "chat:1", "message")
	events(t, sub, 1)
	s.Kill()
	until(t, a.bridge, bridge.Down)
	fresh := inRoom(t, dial(t, a, "bob"), "chat:1")
	s.Restart() // with nothing
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, who := range []*client.Subscription{sub, fresh} {
		for {
			item, err := who.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := item.(*client.Reset); ok && r.Reason != codec.ResetNone {
				if r.Reason != codec.ResetEpoch {
					t.Errorf("reset %v", r.Reason)
				}
				break
			}
		}
	}
}

// answered is an err of the protocol.
type answered struct {
	Code       string `json:"code"`
	RetryAfter int64  `json:"retry_after_ms"`
}

// firstAnswer is what a join is answered first: the client tries again.
func firstAnswer(t *testing.T, h *host, subject, room string) (a answered) {
	t.Helper()
	replies := make(chan answered, 16)
	c, err := client.New(client.Options{
		URL: h.url, Token: func(context.Context) (string, error) { return subject, nil },
		OnFrame: func(frame []byte) {
			var f struct {
				T     string   `json:"t"`
				Err   answered `json:"err"`
				Rooms []struct {
					Err answered `json:"err"`
				} `json:"rooms"`
			}
			switch err := json.Unmarshal(frame, &f); {
			case err != nil:
			case f.T == "reply":
				replies <- f.Err
			case f.T == "welcome" && len(f.Rooms) == 1:
				replies <- f.Rooms[0].Err
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = c.Join(ctx, client.Join{Room: room}) }() // its reply is what counts
	return receive(t, replies, "a reply")
}
