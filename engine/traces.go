package engine

import (
	"context"
	"math/rand/v2"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

// tracing follows some publishes: which is decided here, at their beginning, so that
// the rest costs one number drawn. Nil: none.
type tracing struct {
	tracer trace.Tracer
	ratio  float64
}

func newTracing(cfg *Config) *tracing {
	if cfg.TracerProvider == nil || cfg.TraceRatio < 0 {
		return nil
	}
	return &tracing{cfg.TracerProvider.Tracer(scope), cfg.TraceRatio}
}

// begin follows a publish, or not.
func (t *tracing) begin(p *message.Publish) message.Trace {
	if t == nil || rand.Float64() >= t.ratio {
		return nil
	}
	ctx, span := t.tracer.Start(context.Background(), "publish", trace.WithAttributes(
		attribute.String("room_kind", p.Kind.Name), attribute.String("lane", p.Policy.Lane.String())))
	if !span.IsRecording() {
		span.End()
		return nil
	}
	return &followed{tracer: t.tracer, ctx: ctx, publish: span}
}

// linked follows what is left of the way of an event that another node follows: its
// spans are a trace of their own, with a link to the publish.
func (t *tracing) linked(of *codec.Trace) message.Trace {
	publish := trace.NewSpanContext(trace.SpanContextConfig{TraceID: of.ID, SpanID: of.Span, TraceFlags: trace.FlagsSampled, Remote: true})
	return &followed{
		tracer: t.tracer, ctx: context.Background(), publish: trace.SpanFromContext(context.Background()),
		how: []trace.SpanStartOption{trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: publish})},
	}
}

// linker is linked, or nil where nothing is followed.
func (t *tracing) linker() func(*codec.Trace) message.Trace {
	if t == nil {
		return nil
	}
	return t.linked
}

// follower is begin, or nil where nothing is followed.
func (t *tracing) follower() func(*message.Publish) message.Trace {
	if t == nil {
		return nil
	}
	return t.begin
}

// stages are the names of spans.
var stages = [...]string{message.Queued: "queue", message.Handled: "handler", message.FannedOut: "fan-out"}

// followed is one publish.
type followed struct {
	// immutable
	tracer  trace.Tracer
	ctx     context.Context // of publish
	publish trace.Span
	how     []trace.SpanStartOption // spans begin

	mu   sync.Mutex
	open [len(stages)]trace.Span // guarded by mu; nil: not begun, or over
}

func (f *followed) Begin(s message.Stage) {
	_, span := f.tracer.Start(f.ctx, stages[s], f.how...)
	f.mu.Lock()
	f.open[s] = span
	f.mu.Unlock()
}

func (f *followed) End(s message.Stage) {
	f.mu.Lock()
	span := f.open[s]
	f.open[s] = nil
	f.mu.Unlock()
	if span != nil {
		span.End()
	}
}

// Context is the publish; of one that is linked, nothing.
func (f *followed) Context() *codec.Trace {
	c := f.publish.SpanContext()
	if !c.IsValid() {
		return nil
	}
	return &codec.Trace{ID: c.TraceID(), Span: c.SpanID()}
}

func (f *followed) Published(ok *codec.PublishResult, err *codec.Error) {
	f.End(message.Queued) // if it was removed unhandled
	outcome := ""
	switch {
	case err != nil:
		outcome = err.Code.String()
	case ok.Duplicate:
		outcome = "duplicate"
	default:
		outcome = ok.Outcome.String()
	}
	f.publish.SetAttributes(attribute.String("outcome", outcome))
	f.publish.End()
}
