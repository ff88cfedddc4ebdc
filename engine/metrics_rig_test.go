package engine

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/yaza-dev/pulse/internal/telemetry"
)

// scraper reads what an engine measures.
type scraper struct {
	t      *testing.T
	reader *sdk.ManualReader
}

// measured is start with metrics.
func measured(t *testing.T, change func(*Config)) (*Engine, *scraper) {
	t.Helper()
	s := &scraper{t, sdk.NewManualReader()}
	provider := sdk.NewMeterProvider(sdk.WithReader(s.reader))
	return start(t, func(c *Config) {
		c.MeterProvider = provider
		if change != nil {
			change(c)
		}
	}), s
}

// series are the values of a scrape by name and labels, "pulse.resets{reason=epoch}";
// of a histogram its count.
type series map[string]float64

// of is the value of one series; NaN: there is none.
func (s series) of(i telemetry.Instrument, labels ...string) float64 {
	pairs := make([]string, len(labels))
	for n, value := range labels {
		pairs[n] = i.Labels[n] + "=" + value
	}
	v, ok := s[key(i.Name, pairs)]
	if !ok {
		return math.NaN()
	}
	return v
}

func key(name string, pairs []string) string {
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

func (s *scraper) scrape() series {
	s.t.Helper()
	var got metricdata.ResourceMetrics
	if err := s.reader.Collect(context.Background(), &got); err != nil {
		s.t.Fatal(err)
	}
	all := series{}
	add := func(name string, labels attribute.Set, v float64) {
		var pairs []string
		for _, kv := range labels.ToSlice() {
			pairs = append(pairs, string(kv.Key)+"="+kv.Value.AsString())
		}
		all[key(name, pairs)] = v
	}
	for _, in := range got.ScopeMetrics {
		for _, m := range in.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, float64(p.Count))
				}
			default:
				s.t.Fatalf("%s is a %T", m.Name, data)
			}
		}
	}
	return all
}

// want compares values, given as the labels, joined by a blank, and the number.
func (s series) want(t *testing.T, i telemetry.Instrument, want map[string]float64) {
	t.Helper()
	for labels, n := range want {
		if got := s.of(i, strings.Fields(labels)...); got != n {
			t.Errorf("%s{%s}: %v, want %v", i.Name, labels, got, n)
		}
	}
}

// names are those of the instruments that have a value.
func (s series) names() map[string]bool {
	names := map[string]bool{}
	for k := range s {
		name, _, _ := strings.Cut(k, "{")
		names[name] = true
	}
	return names
}

// single is the value of an instrument without labels.
func single(n float64) map[string]float64 { return map[string]float64{"": n} }
