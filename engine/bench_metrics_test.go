package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
)

// BenchmarkMeasuredFanOut is what metrics and traces of one publish in a hundred cost
// a fan-out: user space per delivery of an engine with them over one without, in
// turns, descriptors replaced, 1,000 members.
func BenchmarkMeasuredFanOut(b *testing.B) {
	for _, inFlight := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) { measuredFanOut(b, inFlight) })
	}
}

func measuredFanOut(b *testing.B, inFlight int) {
	const n = 1000
	events := 400 * inFlight // some tenths of a second: processor time is counted in ticks
	run := func(measured bool) func() (ns, allocs float64) {
		cfg := Config{Kinds: []room.Kind{openKind}, Authenticator: asTold{}, TenantDefaults: TenantLimits{SessionRate: noRate}}
		if measured {
			cfg.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))
			cfg.TracerProvider = sdktrace.NewTracerProvider()
			cfg.TraceRatio = 0.01
		}
		e, err := Start(context.Background(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = e.Close(context.Background()) })
		members(b, e, n, "chat:1", new(atomic.Int64))
		data, _ := codec.NewData("0123456789012345678901234567890123456789012345678901234567890123")
		return func() (ns, allocs float64) {
			made := mallocs()
			before := userTime()
			var left atomic.Int64
			left.Store(int64(events))
			var wg sync.WaitGroup
			for range inFlight {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: data}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			time.Sleep(2 * time.Millisecond) // what is still being written is the first's
			return float64(userTime()-before) / float64(events*n), float64(mallocs()-made) / float64(events)
		}
	}
	off, on := run(false), run(true)
	off()
	on()
	b.ResetTimer()
	var ratios, offs, ons, offAllocs, onAllocs []float64
	for i := 0; i < max(b.N, 20); i++ {
		var x, y, p, q float64
		if i%2 == 0 {
			x, p = off()
			y, q = on()
		} else {
			y, q = on()
			x, p = off()
		}
		ratios, offs, ons = append(ratios, y/x), append(offs, x), append(ons, y)
		offAllocs, onAllocs = append(offAllocs, p), append(onAllocs, q)
	}
	middle := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(middle(offs), "off-ns/delivery")
	b.ReportMetric(middle(ons), "on-ns/delivery")
	b.ReportMetric(middle(ratios), "ratio")
	b.ReportMetric(middle(offAllocs), "off-allocs/event")
	b.ReportMetric(middle(onAllocs), "on-allocs/event")
	b.ReportMetric(0, "ns/op")
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// BenchmarkScrape is one reading of everything, with 10,000 sessions in 10,000 rooms.
func BenchmarkScrape(b *testing.B) {
	reader := sdk.NewManualReader()
	e, err := Start(context.Background(), Config{
		Kinds: []room.Kind{openKind}, Authenticator: asTold{}, TenantDefaults: TenantLimits{SessionRate: noRate},
		MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader)),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(context.Background())
	const n = 10_000
	members(b, e, n, "chat:1", new(atomic.Int64))
	for i := range n - 1 {
		if _, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: fmt.Sprintf("chat:r%d", i), Name: "typing", Data: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		e.view()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*n), "ns/actor")
}
