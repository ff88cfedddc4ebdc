package engine_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/transport/memory"
	"github.com/yaza-dev/pulse/transport/ws"
)

// guests lets everybody in, as a subject of the tenant "acme".
type guests struct{}

func (guests) Authenticate(_ context.Context, c auth.Credentials) (*auth.Identity, error) {
	return &auth.Identity{Tenant: "acme", Subject: "guest", Grants: auth.AllowAll()}, nil
}

// An Engine needs an Authenticator and at least one kind of room; its Handler
// goes onto any HTTP server.
func ExampleStart() {
	e, err := engine.Start(context.Background(), engine.Config{
		Kinds:         []room.Kind{{Name: "chat"}},
		Authenticator: guests{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close(context.Background())

	mux := http.NewServeMux()
	mux.Handle("/v1/", e.Handler())
	fmt.Println(e.Health().Ready)
	// Output: true
}

// readers is an Authorizer: everybody may join every room that their grants name, and
// nobody may publish to a library.
type readers struct{}

func (readers) Authorize(_ context.Context, a auth.Access) (auth.Decision, error) {
	if a.Right == auth.Publish && strings.HasPrefix(a.Room, "library:") {
		return auth.Denied, nil
	}
	return auth.Allowed, nil
}

// An Authorizer decides what grants cannot say. A listener of the Engine's holds
// handshakes to their limits from the first byte on.
func ExampleEngine_Listener() {
	e, err := engine.Start(context.Background(), engine.Config{
		Kinds:         []room.Kind{{Name: "library"}, {Name: "desk"}},
		Authenticator: guests{},
		Authorizer:    readers{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close(context.Background())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: e.Handler(), ConnContext: ws.ConnContext, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(e.Listener(l))
	defer server.Close()

	for _, room := range []string{"library:1", "desk:1"} {
		r, err := http.NewRequest(http.MethodPost, "http://"+l.Addr().String()+"/v1/rooms/"+room+"/publish", strings.NewReader(`{"event":"note","data":1}`))
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer anybody")
		r.Header.Set("Content-Type", "application/json")
		r.Close = true
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		answer.Body.Close()
		fmt.Println(room, answer.Status)
	}
	// Output:
	// library:1 403 Forbidden
	// desk:1 200 OK
}

// Publish waits for what becomes of the event: a buffered one has its position.
func ExampleEngine_Publish() {
	e, err := engine.Start(context.Background(), engine.Config{
		Kinds:         []room.Kind{{Name: "chat"}},
		Authenticator: guests{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close(context.Background())

	r, err := e.Publish(context.Background(), engine.Event{
		Tenant: "acme", Room: "chat:lobby", Name: "message", Data: map[string]string{"text": "hello"},
	})
	fmt.Println(r.Outcome, r.Position.Offset, err)
	// Output: accepted 1 <nil>
}

// TryPublish never waits: the outcome says whether the room's mailbox took the
// event.
func ExampleEngine_TryPublish() {
	e, err := engine.Start(context.Background(), engine.Config{
		Kinds: []room.Kind{{Name: "game", Events: map[string]room.EventPolicy{
			"tick": {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.CoalesceLatest, CoalesceBy: "event"},
		}}},
		Authenticator: guests{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close(context.Background())

	outcome, err := e.TryPublish(engine.Event{Tenant: "acme", Room: "game:7", Name: "tick", Data: 1})
	fmt.Println(outcome.Took(), err)
	_, err = e.TryPublish(engine.Event{Tenant: "acme", Room: "game:7", Name: "jump"})
	fmt.Println(err)
	// Output:
	// true <nil>
	// codec: not_found: no such event in rooms of this kind
}

// counter is a room that counts, and refuses what is not positive.
type counter struct{ sum int }

func (c *counter) Publish(_ *room.Context, e *room.Event) error {
	var n int
	if err := e.Data.Unmarshal(&n); err != nil || n <= 0 {
		return room.Refuse(codec.CodeBadRequest, "a positive number, please")
	}
	return nil
}

// Apply runs on every node, in the order of the events.
func (c *counter) Apply(_ *room.Context, e *room.Applied) {
	var n int
	if e.Data.Unmarshal(&n) == nil {
		c.sum += n
	}
}

// Snapshot is what a new member is given.
func (c *counter) Snapshot() (any, error) { return c.sum, nil }

// Restore begins from an earlier instance's snapshot.
func (c *counter) Restore(state codec.Data, _ codec.Position) error { return state.Unmarshal(&c.sum) }

// A handler decides in Publish and changes state in Apply.
func ExampleConfig_handler() {
	e, err := engine.Start(context.Background(), engine.Config{
		Kinds:         []room.Kind{{Name: "sum", New: func() room.Handler { return new(counter) }}},
		Authenticator: guests{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close(context.Background())

	for _, n := range []int{2, 3, -1} {
		_, err := e.Publish(context.Background(), engine.Event{Tenant: "acme", Room: "sum:1", Name: "add", Data: n})
		fmt.Println(n, err)
	}
	// Output:
	// 2 <nil>
	// 3 <nil>
	// -1 codec: bad_request: a positive number, please
}

// dice is a room whose clients may ask for a throw, which all members see.
type dice struct{}

func (dice) Publish(*room.Context, *room.Event) error {
	return room.Refuse(codec.CodeForbidden, "only the room throws")
}

// Command answers at once, by a value or an error of the protocol; c.Later would
// leave the answer for later, and ctx.Go do what blocks.
func (dice) Command(ctx *room.Context, c *room.Command) (any, error) {
	var sides int
	switch {
	case c.Name != "throw":
		return nil, room.Refuse(codec.CodeNotFound, "no such command")
	case c.Data.Unmarshal(&sides) != nil || sides < 2:
		return nil, room.Refuse(codec.CodeBadRequest, "the number of sides, please")
	case c.Member == nil:
		return nil, room.Refuse(codec.CodeNotJoined, "join the table first")
	}
	n := 1 + rand.IntN(sides)
	return n, ctx.Broadcast("thrown", map[string]any{"by": c.From, "n": n})
}

// Tick is called for as long as the room has members.
func (dice) Tick(ctx *room.Context) { _ = ctx.Broadcast("waiting", nil) }

// A handler answers commands of its room's clients by being a room.Commander;
// commands without a room go to Config.Commands.
func ExampleConfig_commands() {
	e, err := engine.Start(context.Background(), engine.Config{
		Kinds: []room.Kind{{Name: "dice", New: func() room.Handler { return dice{} }, Tick: time.Minute}},
		Commands: func(ctx context.Context, c engine.Command) (any, error) {
			if c.Name != "whoami" {
				return nil, room.Refuse(codec.CodeNotFound, "no such command")
			}
			return c.From, nil
		},
		Authenticator: guests{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close(context.Background())

	c := memory.Dial(e, codec.Protocols()[0], memory.Options{})
	ask := func(frame string) {
		_ = c.Send([]byte(frame))
		reply, err := c.Recv(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		if !strings.Contains(string(reply), `"welcome"`) {
			fmt.Println(string(reply))
		}
	}
	ask(`{"t":"hello"}`)
	ask(`{"t":"command","id":1,"name":"whoami"}`)
	ask(`{"t":"command","id":2,"room":"dice:1","name":"throw","data":6}`)
	c.Close(1000)
	// Output:
	// {"t":"reply","id":1,"ok":{"data":"guest"}}
	// {"t":"reply","id":2,"err":{"code":"not_joined","message":"join the table first"}}
}
