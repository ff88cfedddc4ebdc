package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
)

// A handler whose every call takes its time keeps its room, however many calls
// wait: only one that does not return loses it. Virtual time.
func TestHandlerThatIsMerelySlowKeepsItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		applied := 0
		slow := &puppet{
			publish: func(*room.Context, *room.Event) error { time.Sleep(70 * time.Millisecond); return nil },
			apply:   func(*room.Context, *room.Applied) { applied++; time.Sleep(70 * time.Millisecond) },
		}
		e := start(t, func(c *Config) { c.Kinds = []room.Kind{kind("chat", one(slow))} })
		c := join(t, e, "acme/a", "chat:1")
		const n = 60
		for i := range n {
			if o, err := e.TryPublish(Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: i}); !o.Took() || err != nil {
				t.Fatal(o, err)
			}
		}
		for i := 1; i <= n; i++ {
			if f := c.until("event"); f.offset() != uint64(i) {
				t.Fatalf("event %d: %v", i, f)
			}
		}
		time.Sleep(10 * time.Second) // before the first ping, which nobody here would answer
		if applied != n {
			t.Errorf("applied %d of %d", applied, n)
		}
		if r, _ := c.ask(`{"t":"leave","room":"chat:1"}`); r.at("ok.room") != "chat:1" {
			t.Errorf("no member any more: %v", r)
		}
		c.conn.Cut()
		<-c.conn.Done()
	})
}
