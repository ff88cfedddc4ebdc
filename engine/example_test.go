package engine_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
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
