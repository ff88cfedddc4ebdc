package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// traced is start with every publish followed.
func traced(t *testing.T, ratio float64, change func(*Config)) (*Engine, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	return start(t, func(c *Config) {
		c.TracerProvider, c.TraceRatio = provider, ratio
		if change != nil {
			change(c)
		}
	}), spans
}

// told are spans as "name attribute=value ...", sorted; it checks that all but
// publishes are children of one, in its time but for the fan-out.
func told(t *testing.T, spans tracetest.SpanStubs) (list []string) {
	t.Helper()
	publishes := map[string]tracetest.SpanStub{}
	for _, s := range spans {
		if s.Name == "publish" {
			publishes[s.SpanContext.SpanID().String()] = s
		}
	}
	for _, s := range spans {
		line := s.Name
		for _, kv := range s.Attributes {
			line += fmt.Sprintf(" %s=%s", kv.Key, kv.Value.String())
		}
		list = append(list, line)
		if s.Name == "publish" {
			continue
		}
		p, ok := publishes[s.Parent.SpanID().String()]
		if !ok || p.SpanContext.TraceID() != s.SpanContext.TraceID() {
			t.Errorf("%s is no child of a publish", s.Name)
		}
		if s.StartTime.Before(p.StartTime) || s.Name != "fan-out" && s.EndTime.After(p.EndTime) {
			t.Errorf("%s is not within its publish", s.Name)
		}
	}
	slices.Sort(list)
	return list
}

// The way of an event is told, however it is published and whatever becomes of it.
func TestTracesOfPublishes(t *testing.T) {
	const desk, chat = " room_kind=desk lane=interactive outcome=", " room_kind=* lane=interactive outcome="
	publish := func(room, event, more string) func(*testing.T, *Engine, *client) {
		return func(_ *testing.T, _ *Engine, c *client) {
			c.ask(fmt.Sprintf(`{"t":"publish","room":%q,"event":%q,"data":1%s}`, room, event, more))
		}
	}
	for _, tt := range []struct {
		name string
		do   func(*testing.T, *Engine, *client)
		want []string
	}{
		{"with a handler, to members", publish("desk:1", "message", ""), []string{"fan-out", "handler", "publish" + desk + "accepted", "queue"}},
		{"not kept", publish("desk:1", "typing", ""), []string{"fan-out", "handler", "publish room_kind=desk lane=lossy outcome=accepted", "queue"}},
		{"refused by the handler", publish("desk:1", "no", ""), []string{"handler", "publish" + desk + "forbidden", "queue"}},
		{"a panic", publish("desk:1", "boom", ""), []string{"handler", "publish" + desk + "internal", "queue"}},
		{"by the program, to nobody", func(t *testing.T, e *Engine, _ *client) { e.publish(t, "acme", "chat:9", "message", 1) },
			[]string{"publish" + chat + "accepted", "queue"}},
		{"removed from the queue", func(_ *testing.T, e *Engine, _ *client) {
			kind := e.kinds.Of("chat")
			p := &message.Publish{By: unheard{}, Kind: kind, Policy: kind.Event("message")}
			p.Trace = e.tracing.begin(p)
			p.Item(e.coalesce, e.pool.Now())
			p.Refuse(nil, message.Refusal(backpressure.Backpressured, codec.ScopeRoom))
		}, []string{"publish" + chat + "backpressured", "queue"}},
		{"a repeat", func(t *testing.T, e *Engine, c *client) {
			publish("desk:1", "message", `,"dedup_key":"k"`)(t, e, c)
			publish("desk:1", "message", `,"dedup_key":"k"`)(t, e, c)
		}, []string{"fan-out", "handler", "handler", "publish" + desk + "accepted", "publish" + desk + "duplicate", "queue", "queue"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, spans := traced(t, 1, func(c *Config) { c.Kinds = []room.Kind{touchyKind("desk"), openKind} })
				c := join(t, e, "acme/a", "desk:1")
				spans.Reset()
				tt.do(t, e, c)
				synctest.Wait()
				if got := told(t, spans.GetSpans()); !slices.Equal(got, tt.want) {
					t.Errorf("%s\nwant %s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
				}
			})
		})
	}
}

// The share that is followed is the share that was asked for.
func TestShareOfTraces(t *testing.T) {
	for _, tt := range []struct {
		ratio       float64
		least, most int
	}{{-1, 0, 0}, {0.25, 60, 140}, {1, 400, 400}} {
		e, spans := traced(t, tt.ratio, nil)
		const n = 400
		for range n {
			e.publish(t, "acme", "chat:1", "message", 1)
		}
		got := 0
		for _, s := range spans.GetSpans() {
			if s.Name == "publish" {
				got++
			}
		}
		if got < tt.least || got > tt.most {
			t.Errorf("%d of %d at %v", got, n, tt.ratio)
		}
	}
}

// Of events that wait for their members a few are followed; a room that nobody is in
// holds on to no more.
func TestFollowedEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, spans := traced(t, 1, nil)
		for range 100 {
			e.publish(t, "acme", "chat:1", "message", 1) // to nobody
		}
		join(t, e, "acme/a", "chat:1")
		spans.Reset()
		e.publish(t, "acme", "chat:1", "message", 1)
		synctest.Wait()
		if got := told(t, spans.GetSpans()); len(got) != 3 || got[0] != "fan-out" {
			t.Errorf("%v", got)
		}
	})
}
