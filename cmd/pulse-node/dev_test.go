package main

import (
	"log/slog"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
)

// What the demo page relies on: any room, with presence and cursors, and bursts.
func TestDevIsWhatItsPageNeeds(t *testing.T) {
	c, err := devConfig(auth.Key{Alg: auth.HS256, Secret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	cfg := engineConfig(c, nil, slog.New(slog.DiscardHandler))
	if len(cfg.Kinds) != 1 || cfg.Kinds[0].Name != room.Any || !cfg.Kinds[0].Presence {
		t.Fatalf("kinds %+v", cfg.Kinds)
	}
	p, err := cfg.Kinds[0].Policy()
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Event("cursor"); e.Delivery != room.Transient || e.Lane != backpressure.Lossy || e.Overflow != backpressure.CoalesceLatest || e.CoalesceBy != "session" {
		t.Errorf("cursor %+v", e)
	}
	if e := p.Event("anything"); !e.Buffered() {
		t.Errorf("any other event %+v", e)
	}
	if r := cfg.TenantDefaults.SessionRate; r.Messages != -1 || r.Bytes != -1 {
		t.Errorf("rate of a session %+v", r)
	}
}
