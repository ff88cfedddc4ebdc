package redis_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	rooms "github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// gauges reads what a host measures of its broker.
type gauges struct {
	t      *testing.T
	reader *sdk.ManualReader
}

func measuredHost(t *testing.T, address string, change ...func(*engine.Config)) (*host, gauges) {
	t.Helper()
	g := gauges{t, sdk.NewManualReader()}
	return newHost(t, address, append(change, func(c *engine.Config) {
		c.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(g.reader))
	})...), g
}

// all are the values by name and labels, "receives_total{chat}"; of a histogram the number of
// observations.
func (g gauges) all() map[string]float64 {
	g.t.Helper()
	var got metricdata.ResourceMetrics
	if err := g.reader.Collect(context.Background(), &got); err != nil {
		g.t.Fatal(err)
	}
	all := map[string]float64{}
	for _, m := range got.ScopeMetrics[0].Metrics {
		name, ours := strings.CutPrefix(m.Name, "ws.broker.")
		if !ours {
			continue
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[float64]:
			for _, p := range data.DataPoints {
				var labels []string
				for _, l := range p.Attributes.ToSlice() {
					labels = append(labels, l.Value.AsString())
				}
				slices.Sort(labels)
				all[name+"{"+strings.Join(labels, ",")+"}"] = p.Value
			}
		case metricdata.Gauge[float64]:
			all[name] = data.DataPoints[0].Value
		case metricdata.Histogram[float64]:
			all[name] = float64(data.DataPoints[0].Count)
		default:
			g.t.Fatalf("%s is a %T", m.Name, data)
		}
	}
	return all
}

// moved is what do changes, that is not nought.
func (g gauges) moved(do func()) map[string]float64 {
	g.t.Helper()
	before := g.all()
	do()
	after := g.all()
	for name, n := range after {
		if after[name] = n - before[name]; after[name] == 0 {
			delete(after, name)
		}
	}
	return after
}

func (g gauges) eventually(name string, met func(n float64) bool) {
	g.t.Helper()
	eventually(g.t, name, func() bool { return met(g.all()[name]) })
}

func said(t *testing.T, c *client.Client, room, event string) {
	t.Helper()
	if _, err := c.Publish(t.Context(), client.Publish{Room: room, Event: event}); err != nil {
		t.Fatal(err)
	}
}

func inRoom(t *testing.T, c *client.Client, room string) *client.Subscription {
	t.Helper()
	s, err := c.Join(t.Context(), client.Join{Room: room})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A scenario of the specification: a publish that succeeds is one more, and one
// observation.
func TestSuccessfulPublishEmitsPublishesTotalAndPublishDurationMs(t *testing.T) {
	s := server.Start(t)
	a, g := measuredHost(t, s.Address())
	ann := dial(t, a, "ann")
	sub := inRoom(t, ann, "chat:1")
	said(t, ann, "chat:1", "message")
	events(t, sub, 1)
	for range 10 {
		got := g.moved(func() {
			said(t, ann, "chat:1", "message")
			events(t, sub, 1)
		})
		for name, n := range map[string]float64{"publishes_total{*,ok}": 1, "publish_duration_ms": 1, "receives_total{*}": 1, "buffer_writes_total{}": 1} {
			if got[name] != n {
				t.Fatalf("%s moves by %v, want %v; all: %v", name, got[name], n, got)
			}
		}
	}
	got := g.moved(func() { said(t, ann, "chat:1", "typing") }) // the bridge hears of it, and keeps nothing
	g.eventually("publishes_total{*,ok}", func(n float64) bool { return n == 12 })
	if got["buffer_writes_total{}"] != 0 || got["receives_total{*}"] != 0 {
		t.Errorf("what is not kept moves %v", got)
	}
	got = g.moved(func() {
		if _, err := ann.History(t.Context(), client.HistoryQuery{Room: "chat:1"}); err != nil {
			t.Error(err)
		}
		if _, err := ann.History(t.Context(), client.HistoryQuery{Room: "chat:nobody"}); err != nil {
			t.Error(err)
		}
	})
	if got["buffer_reads_total{hit}"] != 1 || got["buffer_reads_total{miss}"] != 1 {
		t.Errorf("reads move %v", got)
	}
}

// Each of the bridge's own figures moves with what it is of, and an outage is one.
func TestFaultsMoveTheirOwnFigures(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	p := server.NewProxy(t, s.Address())
	short := func(c *engine.Config) {
		chat := c.Kinds[0]
		chat.Name, chat.History = "chat", rooms.History{Events: 4}
		c.Kinds = append(c.Kinds, chat)
	}
	a, g := measuredHost(t, p.Address(), short)
	b := newHost(t, s.Address(), short)
	ann, bob := dial(t, a, "ann"), dial(t, b, "bob")
	sub := inRoom(t, ann, "talk:1")
	inRoom(t, ann, "chat:1")
	inRoom(t, bob, "talk:1")
	inRoom(t, bob, "chat:1")

	cut := func(room string, n int) {
		p.Refuse(true)
		p.CutLinks()
		until(t, a.bridge, bridge.Down)
		for range n {
			said(t, bob, room, "message")
		}
		p.Refuse(false)
		until(t, a.bridge, bridge.Up)
	}
	before := g.all()
	cut("talk:1", 3)
	events(t, sub, 3)
	g.eventually("gaps_filled_total{*}", func(n float64) bool { return n == before["gaps_filled_total{*}"]+1 })
	cut("chat:1", 9)
	g.eventually("gaps_unfilled_total{chat}", func(n float64) bool { return n == 1 })
	got := g.all()
	for name, n := range map[string]float64{
		"connection_lost_total{}": 2, "resubscriptions_total{}": 4, "gaps_unfilled_total{*}": 0, "probe_misses_total{}": 0, "unreadable_total{}": 0,
	} {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}

	p.Hold(true)
	until(t, a.bridge, bridge.Down)
	p.Hold(false)
	until(t, a.bridge, bridge.Up)
	if got := g.all(); got["probe_misses_total{}"] != 1 || got["connection_lost_total{}"] != 3 {
		t.Errorf("a link that brings nothing: %v", got)
	}

	s.Do("PUBLISH", "pulse:room:acme:talk:1", "what is this")
	g.eventually("unreadable_total{}", func(n float64) bool { return n == 1 })

	s.Pause()
	waiting := make(chan error, 1)
	go func() {
		_, err := ann.Publish(context.Background(), client.Publish{Room: "talk:1", Event: "message"})
		waiting <- err
	}()
	g.eventually("queue_depth", func(n float64) bool { return n > 0 })
	s.Resume()
	if err := receive(t, waiting, "the answer"); err != nil {
		t.Error(err)
	}
	until(t, a.bridge, bridge.Up)
	g.eventually("queue_depth", func(n float64) bool { return n == 0 })

	lost := g.all()["connection_lost_total{}"]
	s.Stop() // commands and links of both fall
	until(t, a.bridge, bridge.Down)
	<-time.After(500 * time.Millisecond) // some attempts in vain
	s.Restart()
	until(t, a.bridge, bridge.Up)
	if n := g.all()["connection_lost_total{}"]; n != lost+1 {
		t.Errorf("one outage counts %v", n-lost)
	}
}
