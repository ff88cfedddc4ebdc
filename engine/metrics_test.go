package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	membridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/internal/telemetry"
	"github.com/yaza-dev/pulse/transport/memory"
)

// touchy refuses "no" and panics at "boom".
type touchy struct{}

func (touchy) Publish(_ *room.Context, e *room.Event) error {
	switch e.Name {
	case "no":
		return errors.New("not this one")
	case "boom":
		panic("touched")
	}
	return nil
}

func touchyKind(name string) room.Kind {
	k := openKind
	k.Name, k.New = name, func() room.Handler { return touchy{} }
	return k
}

// A small run, of which every number is known.
func TestWhatIsMeasuredIsWhatHappened(t *testing.T) {
	e, s := measured(t, func(c *Config) {
		c.Kinds = []room.Kind{touchyKind("desk"), openKind}
		c.Build = Build{"v1", "abc"}
	})
	a := join(t, e, "acme/a", "desk:1", "chat:1")
	b := join(t, e, "globex/b", "desk:1")
	publish := func(c *client, room, event, more string) string {
		t.Helper()
		f, _ := c.ask(fmt.Sprintf(`{"t":"publish","room":%q,"event":%q,"data":1%s}`, room, event, more))
		if f.at("ok") != nil {
			return fmt.Sprint(f.at("ok.outcome"))
		}
		return fmt.Sprint(f.at("err.code"))
	}
	for _, tt := range []struct {
		room, event, more, want string
	}{
		{"desk:1", "message", "", "accepted"},
		{"desk:1", "typing", "", "accepted"},
		{"desk:1", "message", `,"dedup_key":"k"`, "accepted"},
		{"desk:1", "message", `,"dedup_key":"k"`, "accepted"}, // a repeat
		{"desk:1", "no", "", "forbidden"},
		{"desk:1", "boom", "", "internal"},
		{"desk:1", "message", `,"ttl_ms":0`, "expired"},
		{"chat:1", "message", "", "accepted"},
		{"chat:2", "message", "", "not_joined"},
	} {
		if got := publish(a, tt.room, tt.event, tt.more); got != tt.want {
			t.Errorf("%s in %s: %s", tt.event, tt.room, got)
		}
	}
	a.ask(`{"t":"dance"}`)
	a.ask(`{"t":"history","room":"desk:1"}`)
	b.send(`{"t":"ping"}`)
	b.until("pong")
	bad := dial(t, e, codec.JSON, memory.Options{})
	bad.send(`{"t":"hello","t":"hello"}`)
	bad.closed()
	bad.conn.Cut()
	<-bad.conn.Done()

	var got series
	eventually(t, "the rooms have what they published", func() bool { // which its publisher does not wait for
		got = s.scrape()
		return got.of(telemetry.BrokerReceives, "desk") == 2 && got.of(telemetry.BrokerReceives, "*") == 1
	})
	got.want(t, telemetry.Connections, single(2))
	got.want(t, telemetry.Sessions, map[string]float64{"attached": 2, "detached": 0})
	got.want(t, telemetry.Actors, map[string]float64{"tenant": 2, "room": 3, "session": 2})
	got.want(t, telemetry.Rooms, map[string]float64{"desk": 2, "*": 1})
	got.want(t, telemetry.Members, single(3))
	got.want(t, telemetry.Outcomes, map[string]float64{
		"desk accepted": 3, "desk duplicate": 1, "desk forbidden": 1, "desk internal": 1, "desk expired": 1,
		"* accepted": 1, "* not_joined": 1,
	})
	got.want(t, telemetry.Messages, single(12))
	got.want(t, telemetry.Closes, map[string]float64{"malformed": 1, "normal": 0})
	got.want(t, telemetry.Protocol, map[string]float64{"malformed": 1, "unknown_type": 1})
	got.want(t, telemetry.Restarts, map[string]float64{"handler": 1, "room": 0, "tenant": 0})
	got.want(t, telemetry.BrokerPublishes, map[string]float64{"desk ok": 3, "desk duplicate": 1, "* ok": 1, "* duplicate": 0})
	got.want(t, telemetry.BrokerWrites, single(3))
	got.want(t, telemetry.BrokerLive, single(1))
	got.want(t, telemetry.BrokerOutages, single(0))
	got.want(t, telemetry.TenantSessions, map[string]float64{"acme": 1, "globex": 1})
	got.want(t, telemetry.TenantRooms, map[string]float64{"acme": 2, "globex": 1})
	if n := got.of(telemetry.BrokerReads, "hit"); n < 1 { // the new handler reads too
		t.Errorf("reads: %v", n)
	}
	if frames, bytes := got.of(telemetry.SentFrames), got.of(telemetry.Sent); frames < 15 || bytes < 50*frames {
		t.Errorf("%v frames of %v bytes", frames, bytes)
	}
	if busy := got.of(telemetry.WorkerBusy); busy <= 0 || busy > time.Minute.Seconds() {
		t.Errorf("busy for %v s", busy)
	}
	if n := got.of(telemetry.Ledger, "history"); n <= 0 {
		t.Errorf("history of %v bytes", n)
	}
}

// Every instrument of the table has a value, under the labels that the table says,
// and nothing else has one.
func TestInstrumentsAreThoseOfTheTable(t *testing.T) {
	e, s := measured(t, func(c *Config) { c.Kinds = []room.Kind{touchyKind(room.Any)} })
	c := join(t, e, "acme/a", "chat:1")
	var got series
	want := map[string]bool{}
	for _, i := range telemetry.All() {
		want[i.Name] = true
	}
	delete(want, telemetry.Overflow.Name) // only where there was any
	delays := []string{"kind=room,lane=interactive", "kind=outbound,lane=interactive", "kind=session,lane=interactive"}
	lacking := func() bool {
		return len(got.names()) < len(want) || slices.ContainsFunc(delays, func(s string) bool { return got["pulse.queue.delay{"+s+"}"] == 0 })
	}
	// Times are sampled, so that it takes some events until there is one of each.
	for deadline := time.Now().Add(20 * time.Second); lacking() && time.Now().Before(deadline); {
		for range 500 {
			e.publish(t, "acme", "chat:1", "message", 1)
			c.until("event")
			c.ask(`{"t":"publish","room":"chat:1","event":"typing","data":1}`)
		}
		got = s.scrape()
	}
	for name := range want {
		if !got.names()[name] {
			t.Errorf("%s has no value", name)
		}
	}
	labels := map[string][]string{}
	for _, i := range telemetry.All() {
		labels[i.Name] = slices.Sorted(slices.Values(i.Labels))
	}
	for k := range got {
		name, rest, _ := strings.Cut(strings.TrimSuffix(k, "}"), "{")
		var keys []string
		for pair := range strings.SplitSeq(rest, ",") {
			if label, _, ok := strings.Cut(pair, "="); ok {
				keys = append(keys, label)
			}
		}
		if of, ok := labels[name]; !ok || !slices.Equal(keys, of) {
			t.Errorf("%s: labels %v, the table says %v", k, keys, of)
		}
	}
	for _, series := range delays {
		if got["pulse.queue.delay{"+series+"}"] == 0 {
			t.Errorf("no queue delay of %s", series)
		}
	}
}

// An outage counts once, from when the bridge reached the other nodes until it does
// again, whatever it says of itself meanwhile.
func TestOutagesOfTheBridge(t *testing.T) {
	broker := bridgetest.NewAiling(membridge.New(membridge.Config{}))
	t.Cleanup(broker.Close)
	broker.Set(bridge.Health{State: bridge.Connecting})
	_, s := measured(t, func(c *Config) { c.Broker = broker })
	for _, step := range []struct {
		state         bridge.State
		outages, live float64
	}{
		{bridge.Connecting, 0, 0}, {bridge.Down, 0, 0}, {bridge.Up, 0, 1}, {bridge.Degraded, 0, 1}, {bridge.Down, 1, 0},
		{bridge.Connecting, 1, 0}, {bridge.Down, 1, 0}, {bridge.Degraded, 1, 1}, {bridge.Connecting, 2, 0}, {bridge.Up, 2, 1},
	} {
		broker.Set(bridge.Health{State: step.state})
		got := s.scrape()
		got.want(t, telemetry.BrokerOutages, single(step.outages))
		got.want(t, telemetry.BrokerLive, single(step.live))
	}
}

// Actors that go on after a fault are counted by their kind; those that end are not,
// and neither is a callback that failed without consequence.
func TestRestartsOfActors(t *testing.T) {
	e, s := measured(t, nil)
	for _, f := range []actors.Failure{
		{Kind: "room", Directive: supervision.Restart},
		{Kind: "room", Directive: supervision.Restart},
		{Kind: "room", Directive: supervision.Stop, GaveUp: true},
		{Kind: "tenant", Directive: supervision.Resume},
		{Kind: "tenant", Callback: "stopped", Directive: supervision.Resume},
		{Kind: "session", Directive: supervision.Stop},
	} {
		e.failed(f)
	}
	s.scrape().want(t, telemetry.Restarts, map[string]float64{"room": 2, "tenant": 1, "handler": 0})
}

// A provider outlives engines: of one that is closed it tells nothing, and of the
// next the same instruments.
func TestClosedEngineIsMeasuredNoMore(t *testing.T) {
	s := &scraper{t, sdk.NewManualReader()}
	provider := sdk.NewMeterProvider(sdk.WithReader(s.reader))
	for range 2 {
		e := start(t, func(c *Config) { c.MeterProvider = provider })
		join(t, e, "acme/a", "chat:1").conn.Cut()
		if n := s.scrape().of(telemetry.Actors, "tenant"); n != 1 {
			t.Errorf("%v tenants", n)
		}
		e.closeWithin(t, 10*time.Second)
		for k := range s.scrape() {
			if !strings.HasPrefix(k, telemetry.QueueDelay.Name) && !strings.HasPrefix(k, telemetry.BrokerDuration.Name) { // which are the provider's
				t.Errorf("%s of an engine that is closed", k)
			}
		}
	}
}
