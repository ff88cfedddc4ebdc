package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/internal/telemetry"
)

// scope names the engine's instruments to a MeterProvider.
const scope = "github.com/yaza-dev/pulse"

// timings are told what is timed as it happens, some of it. All else is counted by its
// owner in atomics, or under a lock that is taken anyway, and is read at a scrape.
type timings struct{ rooms, sessions, tenants mailbox.Timing }

// measure makes the instruments, and has everything counted and timed from here on:
// before there is a tenant.
func (e *Engine) measure() error {
	r := registrar{meter: e.cfg.MeterProvider.Meter(scope)}
	delay, write := r.histogram(telemetry.QueueDelay), r.histogram(telemetry.Write)
	handler, took := r.histogram(telemetry.Handler), r.histogram(telemetry.BrokerDuration)
	broker := &brokerCounts{kinds: &e.kinds, took: took, every: 1}
	if e.ownBroker != nil {
		broker.every = telemetry.EveryCall // it takes as long as measuring it
	}
	rows := readings(broker)
	all := make([]metric.Observable, len(rows))
	for i, row := range rows {
		all[i] = r.observable(row.what)
	}
	if len(r.faults) > 0 {
		return errors.Join(r.faults...)
	}
	e.timing = timings{newTiming(delay, "room"), newTiming(delay, "session"), newTiming(delay, "tenant")}
	e.out.Timing = writeTiming{newTiming(delay, "outbound"), recorder(write)}
	e.broker = countedBroker{e.broker, broker}
	e.kindMeter = func(name string) *message.Meter {
		return &message.Meter{Called: recorder(handler, attribute.String(telemetry.RoomKind, name))}
	}
	for name, kind := range e.kinds.All() {
		kind.Meter = e.kindMeter(name)
	}
	registered, err := r.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		v := e.view()
		for i, row := range rows {
			what := all[i].(metric.Float64Observable)
			row.read(v, func(n float64, labels ...string) { o.ObserveFloat64(what, n, with(row.what, labels)) })
		}
		return nil
	}, all...)
	if err != nil {
		return err
	}
	e.unmeasure = func() { _ = registered.Unregister() } // fails for a provider that has ended
	return nil
}

// with says the labels of an instrument's value, in the order of the table.
func with(i *telemetry.Instrument, values []string) metric.ObserveOption {
	labels := make([]attribute.KeyValue, len(values))
	for n, value := range values {
		labels[n] = attribute.String(i.Labels[n], value)
	}
	return metric.WithAttributes(labels...)
}

// registrar makes instruments of rows of the table, and gathers what goes wrong.
type registrar struct {
	meter  metric.Meter
	faults []error
}

func (r *registrar) observable(i *telemetry.Instrument) metric.Float64Observable {
	var made metric.Float64Observable
	var err error
	if i.Kind == telemetry.Counter {
		made, err = r.meter.Float64ObservableCounter(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Doc))
	} else {
		made, err = r.meter.Float64ObservableGauge(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Doc))
	}
	if err != nil {
		r.faults = append(r.faults, err)
	}
	return made
}

func (r *registrar) histogram(i telemetry.Instrument) metric.Float64Histogram {
	made, err := r.meter.Float64Histogram(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Doc),
		metric.WithExplicitBucketBoundaries(i.Buckets...))
	if err != nil {
		r.faults = append(r.faults, err)
	}
	return made
}

// recorder records seconds under labels that are made once.
func recorder(h metric.Float64Histogram, labels ...attribute.KeyValue) func(time.Duration) {
	options := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(labels...))}
	return func(d time.Duration) { h.Record(context.Background(), d.Seconds(), options...) }
}

// timing is how long messages wait for actors of one kind.
type timing struct {
	waited [backpressure.Lanes]func(time.Duration)
}

func newTiming(h metric.Float64Histogram, kind string) *timing {
	t := &timing{}
	for l := range backpressure.Lane(backpressure.Lanes) {
		t.waited[l] = recorder(h, attribute.String(telemetry.KindOf, kind), attribute.String(telemetry.Lane, l.String()))
	}
	return t
}

func (t *timing) Waited(l backpressure.Lane, d time.Duration) { t.waited[l](d) }

type writeTiming struct {
	*timing
	wrote func(time.Duration)
}

func (t writeTiming) Wrote(d time.Duration) { t.wrote(d) }

// defaults are what Go has noted of the program.
func (b *Build) defaults() {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	set(&b.Version, info.Main.Version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			set(&b.Revision, s.Value)
		}
	}
}
