package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// A slow reader goes down the ladder one step after the other, others in its room
// notice nothing, and each step is counted.
func TestLadderOfASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := openKind
		kind.History = room.History{Events: 40}
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{kind}
			c.Limits.SessionQueueItems = 8
			c.Limits.WriteTimeout = time.Minute
			c.Limits.Ping = time.Hour
		})
		slow := dial(t, e, codec.JSON, memory.Options{Window: 1 << 10, WriteTimeout: time.Minute})
		slow.hello("acme/slow", "chat:1")
		quick := join(t, e, "acme/quick", "chat:1")
		publish := func(name string, ttl time.Duration) {
			t.Helper()
			if _, err := e.Publish(t.Context(), Event{Tenant: "acme", Room: "chat:1", Name: name, Data: 1, TTL: ttl}); err != nil {
				t.Fatal(err)
			}
			if f := quick.next(); f.at("event") != name {
				t.Fatalf("want %s: %v", name, f)
			}
		}
		step := func(what string, got, want uint64) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
		}
		const lossy, bulk, interactive = backpressure.Lossy, backpressure.Bulk, backpressure.Interactive
		e.publish(t, "acme", "chat:1", "big", strings.Repeat("x", 4<<10)) // fills its socket
		quick.next()
		synctest.Wait()
		for range 3 {
			publish("cursor", 0) // of the server, so of one key
		}
		step("coalesced", e.Stats().Coalesced[lossy], 2)
		for range 4 {
			publish("typing", 0)
			publish("news", 0)
		}
		step("dropped for newer ones: typing", e.Stats().Dropped[lossy][backpressure.DropOldest], 0)
		step("dropped for newer ones: news", e.Stats().Dropped[bulk][backpressure.DropOldest], 1)
		for range 8 {
			publish("message", 0)
		}
		step("shed from the lossy lane", e.Stats().Shed[lossy], 5)
		step("shed from the bulk lane", e.Stats().Shed[bulk], 3)
		step("left behind", e.Stats().Behind, 0)
		publish("message", 0)
		publish("typing", 0)
		step("left behind", e.Stats().Behind, 1)
		step("without place", e.Stats().Dropped[lossy][backpressure.DropOldest], 1)
		step("fed", e.Stats().Fed, 0)
		for want := uint64(2); want <= 10; want++ { // it reads again
			if f := slow.until("event"); f.offset() == 1 {
				want--
			} else if f.offset() != want {
				t.Fatalf("want event %d: %v", want, f)
			}
		}
		step("fed", e.Stats().Fed, 1)

		e.publish(t, "acme", "chat:1", "big", strings.Repeat("x", 4<<10))
		quick.next()
		synctest.Wait()
		publish("typing", time.Second)
		time.Sleep(2 * time.Second) // in the bubble
		for range 60 {
			publish("message", 0)
		}
		for f := slow.next(); f.t() != "reset"; f = slow.next() {
			if f.at("event") == "typing" {
				t.Errorf("sent beyond its ttl: %v", f)
			}
		}
		step("resets", e.Stats().Resets[codec.ResetOverflow], 1)
		step("expired or shed", e.Stats().Expired[lossy]+e.Stats().Shed[lossy], 6)

		e.publish(t, "acme", "chat:1", "big", strings.Repeat("x", 4<<10))
		quick.next()
		time.Sleep(2 * time.Minute)
		<-slow.conn.Done()
		step("closed for taking nothing", e.Stats().Closes[codec.CauseOverload], 1)
		if s := e.Stats(); s.Sessions != 1 || s.Tenants != 1 || s.QueueBytes == 0 {
			t.Errorf("%+v", s)
		}
		quick.send(`{"t":"dance"}`)
		quick.ask(`{"t":"dance"}`)
		step("unknown types", e.Stats().UnknownTypes, 2)
		join(t, e, "acme/new", fmt.Sprintf(`{"room":"chat:1","epoch":"other","offset":%d}`, 3))
		step("resets in joins", e.Stats().Resets[codec.ResetEpoch], 1)
	})
}
