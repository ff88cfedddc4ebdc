package engine

import (
	"testing"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

func TestJoinOfOneRoomTooManyIsRefusedAndTheSessionGoesOn(t *testing.T) {
	e := start(t, func(c *Config) { c.TenantDefaults.MaxRooms = 1 })
	c := join(t, e, "acme/a", "chat:1")
	for range 3 {
		if r, _ := c.ask(`{"t":"join","room":"chat:2"}`); r.at("err.code") != "quota_exceeded" || r.at("err.scope") != "tenant" {
			t.Fatalf("answered %v", r)
		}
	}
	e.publish(t, "acme", "chat:1", "message", 1)
	c.until("event")
	other := dial(t, e, codec.JSON, memory.Options{})
	if w := other.hello("acme/b", "chat:2", "chat:1"); w.at("rooms.0.err.code") != "quota_exceeded" || w.at("rooms.1.ok") == nil {
		t.Errorf("welcome: %v", w)
	}
}
