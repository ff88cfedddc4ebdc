// Command game embeds Pulse with rooms in which two play three in a row and others
// watch: a handler with decisions, state, commands, timers and work that blocks.
//
//	GAME_KEY=$(head -c 32 /dev/urandom | base64) go run ./examples/game
//
// With GAME_REDIS, an address, it is one of several nodes.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/engine"
)

// kind declares the rooms game, game:1, game:anything.
func kind(away time.Duration, save func(context.Context, round) error) room.Kind {
	return room.Kind{
		Name:     "game",
		New:      func() room.Handler { return &game{away: away, save: save} },
		History:  room.History{Events: 64, Age: time.Hour},
		Presence: true,
		Events: map[string]room.EventPolicy{
			"move":    {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive},
			"forfeit": {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive},
		},
	}
}

func main() {
	tokens, err := auth.NewJWT(auth.JWTConfig{
		Keys: []auth.Key{{Alg: auth.HS256, Secret: []byte(os.Getenv("GAME_KEY"))}},
	})
	if err != nil {
		log.Fatal(err)
	}
	toFile := func(_ context.Context, r round) error {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(os.TempDir(), "round.json"), text, 0o600)
	}
	cfg := engine.Config{
		Authenticator: tokens,
		Kinds:         []room.Kind{kind(30*time.Second, toFile)},
	}
	if address := os.Getenv("GAME_REDIS"); address != "" {
		// Each secret has one purpose, so what seals sessions is made of the key.
		key := sha256.Sum256([]byte("sessions" + os.Getenv("GAME_KEY")))
		if _, err := onRedis(&cfg, address, key[:]); err != nil {
			log.Fatal(err)
		}
	}
	e, err := engine.Start(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", e.Handler()))
}
