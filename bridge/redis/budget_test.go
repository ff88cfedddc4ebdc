package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// writer adds events to a budget as the bridge does.
type writer struct {
	b     *budget
	heads map[string]uint64 // by room
	epoch string
	r     bridge.Retention
}

func newWriter(most int64, r bridge.Retention) *writer {
	return &writer{newBudget(func(string) int64 { return most }), map[string]uint64{}, "one", r}
}

// write adds n events of one size to a room of a tenant, one batch.
func (w *writer) write(tenant, room string, n int, size int64, now time.Time) {
	topic := codec.Topic{Tenant: tenant, Room: room}
	w.heads[topic.String()] += uint64(n)
	w.b.added(topic, w.r, codec.Position{Epoch: w.epoch, Offset: w.heads[topic.String()]}, n, int64(n)*size, int64(n)*size, now)
}

func (w *writer) used(tenant string) int64 {
	if h := w.b.tenants[tenant]; h != nil {
		return h.bytes
	}
	return 0
}

// What a tenant has is what its rooms keep; it may have its share among the live nodes,
// and what is too old makes room.
func TestBudgetFollowsAgeAndShare(t *testing.T) {
	w := newWriter(100_000, bridge.Retention{Events: 1000, Age: time.Minute})
	for i := range 10 {
		w.write("acme", fmt.Sprintf("chat:%d", i), 1, 5000, at(float64(i)))
	}
	if want := int64(10 * (5000 + eventFootprint + roomFootprint)); w.used("acme") != want {
		t.Fatalf("%d bytes, want %d", w.used("acme"), want)
	}
	for _, step := range []struct {
		at     float64
		nodes  int
		admits bool
	}{
		{9, 1, true},
		{9, 2, false},
		{60, 2, false}, // the first one has gone
		{62, 2, true},  // three have, and less than half is left
		{62, 4, false},
		{68, 4, true},
		{70, 100, true},
	} {
		w.b.shared(step.nodes)
		w.b.look(at(step.at), 1000)
		if got := w.b.admits("acme"); got != step.admits {
			t.Errorf("at %v, %d nodes: admits %v with %d bytes", step.at, step.nodes, got, w.used("acme"))
		}
		if !w.b.admits("other") {
			t.Error("another tenant pays for it")
		}
	}
	if len(w.b.rooms)+len(w.b.tenants)+w.b.queue.Len() != 0 {
		t.Errorf("%d rooms of %d tenants are remembered", len(w.b.rooms), len(w.b.tenants))
	}
}

// A room has no more than its kind's history, whoever wrote what came after this
// node's events, and the notes of it are few.
func TestBudgetFollowsTheHistoryOfTheKind(t *testing.T) {
	const size = 1000
	tests := map[string]struct {
		r    bridge.Retention
		most int64 // events
	}{
		"by number": {bridge.Retention{Events: 256, Age: time.Hour}, 256 + 256/footprintRuns + 64},
		"few":       {bridge.Retention{Events: 3, Age: time.Hour}, 6},
		"by bytes":  {bridge.Retention{Events: 10_000, Age: time.Hour, Bytes: 100 * size}, 100 + 2*64},
		"by age":    {bridge.Retention{Events: 1 << 20, Age: 10 * time.Second}, 1100},
		"none":      {bridge.Retention{Events: 100}, 200},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWriter(1<<40, tt.r)
			for i := range 60_000 { // a thousand a second
				w.write("acme", "chat", 1+i%64*(i&1), size, at(float64(i)/1000))
			}
			for i := range 2000 {
				w.write("acme", "chat", 1, size, at(60+float64(i)/100))
			}
			if got := (w.used("acme") - roomFootprint) / (size + eventFootprint); got > tt.most {
				t.Errorf("%d events, at most %d are kept", got, tt.most)
			}
			if n := w.b.rooms[codec.Topic{Tenant: "acme", Room: "chat"}].runs.Len(); n > 3*footprintRuns {
				t.Errorf("%d notes", n)
			}
			w.heads["acme:chat"] += 1 << 30 // others wrote
			w.write("acme", "chat", 1, size, at(81))
			if got := (w.used("acme") - roomFootprint) / (size + eventFootprint); got != 1 {
				t.Errorf("%d events of it are left", got)
			}
			w.heads["acme:chat"], w.epoch = 0, "two" // the server lost it
			w.write("acme", "chat", 1, size, at(81))
			if got := (w.used("acme") - roomFootprint) / (size + eventFootprint); got != 1 {
				t.Errorf("%d events in a history that began anew", got)
			}
		})
	}
}

// Answers to two batches of a room may come in either order; nothing is forgotten.
func TestBudgetTakesAnswersInAnyOrder(t *testing.T) {
	w := newWriter(1<<40, bridge.Retention{Events: 1000, Age: time.Hour})
	for _, head := range []uint64{20, 10, 30, 40, 35} {
		w.heads["acme:chat"] = head - 5
		w.write("acme", "chat", 5, 100, at(0))
	}
	if want := int64(25*(100+eventFootprint) + roomFootprint); w.used("acme") != want {
		t.Errorf("%d bytes, want %d", w.used("acme"), want)
	}
}

// Without a bound nothing is noted.
func TestBudgetWithoutABound(t *testing.T) {
	b := newBudget(nil)
	b.added(codec.Topic{Tenant: "a", Room: "b"}, bridge.Retention{Events: 1}, codec.Position{Epoch: "one", Offset: 1}, 1, 1<<40, 1, at(0))
	if !b.admits("a") || len(b.rooms) != 0 {
		t.Error("it bounds")
	}
}
