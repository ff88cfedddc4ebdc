package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/yaza-dev/pulse/engine"
)

// lastSpans is how long the end of a node waits for the collector to take what is left.
const lastSpans = 2 * time.Second

// telemetry is where what an engine reports goes: metrics to who asks for them, traces
// to a collector if there is one.
type telemetry struct {
	metrics *metric.MeterProvider
	page    http.Handler
	traces  *trace.TracerProvider // nil: none
}

// newTelemetry makes it; endpoint is the collector's, empty: there is none.
func newTelemetry(ctx context.Context, endpoint string, ratio float64, log *slog.Logger) (*telemetry, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	t := &telemetry{
		metrics: metric.NewMeterProvider(metric.WithReader(exporter)),
		page: promhttp.HandlerFor(registry, promhttp.HandlerOpts{
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError), MaxRequestsInFlight: 4,
		}),
	}
	if endpoint == "" || ratio <= 0 {
		return t, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, err
	}
	t.traces = trace.NewTracerProvider(
		trace.WithSampler(trace.AlwaysSample()), // the engine has chosen
		trace.WithBatcher(&collector{SpanExporter: spans, log: log}),
		trace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "pulse-node"), attribute.String("service.version", version))),
	)
	return t, nil
}

// give makes cfg an engine's that reports.
func (t *telemetry) give(cfg *engine.Config) {
	cfg.MeterProvider, cfg.Metrics = t.metrics, t.page
	cfg.Build = engine.Build{Version: version, Revision: revision()}
	if t.traces != nil {
		cfg.TracerProvider = t.traces
	}
}

// close tells the collector what is left.
func (t *telemetry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
	defer cancel()
	err := t.metrics.Shutdown(ctx)
	if t.traces != nil {
		_ = t.traces.Shutdown(ctx) // a collector that is away is in the log
	}
	return err
}

// collector is an exporter whose failures are logged, once for each time that it
// begins to fail. Traces that it has not taken are lost.
type collector struct {
	trace.SpanExporter
	log *slog.Logger // immutable

	failing bool // owned by the batcher, which exports one batch at a time
}

func (c *collector) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	if failing := err != nil && !errors.Is(err, context.Canceled); failing != c.failing {
		c.failing = failing
		if failing {
			c.log.Warn("the collector does not take traces", "setting", "telemetry.otlp_endpoint", "err", err)
		} else {
			c.log.Info("the collector takes traces again")
		}
	}
	return nil
}
