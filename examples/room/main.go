// Command room embeds Pulse with a room of its own kind: an auction, in which a
// bid counts only if it is above the highest so far.
//
//	AUCTION_KEY=$(head -c 32 /dev/urandom | base64) go run ./examples/room
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
)

type auction struct {
	High int    `json:"high"`
	By   string `json:"by"`
}

// Publish decides, on the bidder's node.
func (a *auction) Publish(_ *room.Context, e *room.Event) error {
	var bid int
	if err := e.Data.Unmarshal(&bid); err != nil || bid <= a.High {
		return room.Refuse(codec.CodeConflict, "not above the highest bid")
	}
	return nil
}

// Apply follows every accepted bid, in order, on every node that has the room.
func (a *auction) Apply(_ *room.Context, e *room.Applied) {
	var bid int
	if e.Data.Unmarshal(&bid) == nil && bid > a.High {
		a.High, a.By = bid, e.From
	}
}

// Snapshot is what a late client gets instead of what has left the history.
func (a *auction) Snapshot() (any, error) { return a, nil }

func (a *auction) Restore(state codec.Data, _ codec.Position) error { return state.Unmarshal(a) }

func main() {
	tokens, err := auth.NewJWT(auth.JWTConfig{
		Keys: []auth.Key{{Alg: auth.HS256, Secret: []byte(os.Getenv("AUCTION_KEY"))}},
	})
	if err != nil {
		log.Fatal(err)
	}
	e, err := engine.Start(context.Background(), engine.Config{
		Authenticator: tokens,
		Kinds:         []room.Kind{{Name: "auction", New: func() room.Handler { return &auction{} }}},
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", e.Handler()))
}
