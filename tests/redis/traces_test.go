package redis_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// followedHost follows a share of what is published on it.
func followedHost(t *testing.T, address string, ratio float64) (*host, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	return newHost(t, address, func(c *engine.Config) {
		c.TracerProvider, c.TraceRatio = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), ratio
	}), spans
}

// An event that its node follows is followed on the others, as a trace by itself with a
// link to the publish; one that it does not follow is not, and neither is what is read
// from the history.
func TestTracesAreLinkedAcrossNodes(t *testing.T) {
	s := server.Start(t)
	a, onA := followedHost(t, s.Address(), 1)
	b, onB := followedHost(t, s.Address(), -1)
	c, onC := followedHost(t, s.Address(), 1)
	ann, bob := dial(t, a, "ann"), dial(t, b, "bob")
	atA, atB := inRoom(t, ann, "chat:1"), inRoom(t, bob, "chat:1")
	atC := inRoom(t, dial(t, c, "cat"), "chat:1")
	named := func(spans *tracetest.InMemoryExporter, name string) (list tracetest.SpanStubs) {
		for _, span := range spans.GetSpans() {
			if span.Name == name {
				list = append(list, span)
			}
		}
		return list
	}
	for i, event := range []string{"message", "typing"} { // kept and not
		said(t, ann, "chat:1", event)
		for _, sub := range []*client.Subscription{atA, atB, atC} {
			events(t, sub, 1)
		}
		eventually(t, "the spans of both", func() bool {
			return len(named(onA, "publish")) == i+1 && len(named(onA, "fan-out")) == i+1 && len(onC.GetSpans()) == i+1
		})
		publish, own, linked := named(onA, "publish")[i].SpanContext, named(onA, "fan-out")[i], named(onC, "fan-out")
		if own.Parent.SpanID() != publish.SpanID() || len(own.Links) != 0 {
			t.Errorf("%s: its own fan-out is of %v, with links %v", event, own.Parent, own.Links)
		}
		if len(linked) != i+1 {
			t.Fatalf("%s: %d fan-outs on the other node", event, len(linked))
		}
		span := linked[i]
		if len(span.Links) != 1 || span.Links[0].SpanContext.TraceID() != publish.TraceID() || span.Links[0].SpanContext.SpanID() != publish.SpanID() ||
			!span.Links[0].SpanContext.IsSampled() || span.SpanContext.TraceID() == publish.TraceID() || span.Parent.IsValid() {
			t.Errorf("%s: on the other node %+v of %+v with links %+v", event, span.SpanContext, span.Parent, span.Links)
		}
	}
	if n := len(onB.GetSpans()); n != 0 {
		t.Errorf("%d spans on a node that follows nothing", n)
	}

	said(t, bob, "chat:1", "message") // by a node that does not follow it
	at := events(t, atC, 1)[0].Position
	again, err := dial(t, c, "dan").Join(t.Context(), client.Join{Room: "chat:1", Position: codec.Position{Epoch: at.Epoch, Offset: 0}})
	if err != nil {
		t.Fatal(err)
	}
	events(t, again, 2)
	said(t, ann, "chat:1", "message")
	events(t, again, 1)
	eventually(t, "the last span", func() bool { return len(onC.GetSpans()) == 3 })
	if n := len(named(onC, "fan-out")); n != 3 {
		t.Errorf("%d fan-outs", n)
	}
}
