package backpressure

import (
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func TestMeter(t *testing.T) {
	at := func(ms int) int64 { return int64(time.Duration(ms) * time.Millisecond) }
	type step struct {
		ms, bytes int
		wait      time.Duration
	}
	for name, test := range map[string]struct {
		rate  Rate
		steps []step
	}{
		"no limit":                          {Rate{}, []step{{0, 1 << 30, 0}, {0, 1 << 30, 0}}},
		"a burst of two seconds":            {Rate{Messages: 1}, []step{{0, 1, 0}, {0, 1, 0}, {0, 1, time.Second}, {999, 1, time.Millisecond}, {1000, 1, 0}, {1000, 1, time.Second}}},
		"bytes":                             {Rate{Bytes: 100}, []step{{0, 150, 0}, {0, 51, 10 * time.Millisecond}, {10, 51, 0}}},
		"the bytes' wait takes no message":  {Rate{Messages: 1, Bytes: 100}, []step{{0, 200, 0}, {0, 100, time.Second}, {1000, 100, 0}, {1000, 0, 0}}},
		"a message larger than the burst":   {Rate{Bytes: 100}, []step{{0, 1000, 0}, {0, 1, 10 * time.Millisecond}, {2000, 1000, 0}}},
		"what waits too long costs nothing": {Rate{Messages: 1}, []step{{0, 1, 0}, {0, 1, 0}, {1, 1, 999 * time.Millisecond}, {2, 1, 998 * time.Millisecond}, {1000, 1, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMeter(test.rate)
			for i, s := range test.steps {
				if wait := m.Take(at(s.ms), s.bytes); wait != s.wait {
					t.Errorf("step %d: wait %v, want %v", i, wait, s.wait)
				}
			}
		})
	}
}

// A Meter against a naive one, which looks at all that has passed: over any time
// never more than its rate and a burst, and what has waited as told passes.
func TestMeterAgainstAModel(t *testing.T) {
	type taken struct {
		at int64
		n  int
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := Rate{Messages: random.IntN(20), Bytes: random.Int64N(2000)}
		m := NewMeter(r)
		var passed []taken
		now := int64(random.IntN(1e9))
		for range 300 {
			n := random.IntN(400)
			if r.Bytes > 0 {
				n = min(n, int(2*r.Bytes))
			}
			wait := m.Take(now, n)
			if wait > 0 {
				if again := m.Take(now+int64(wait), n); again > 0 {
					t.Fatalf("%+v: waited %v as told, and %v more", r, wait, again)
				}
				now += int64(wait)
			}
			passed = append(passed, taken{now, n})
			messages, bytes := 0.0, 0.0
			for i := len(passed) - 1; i >= 0; i-- {
				messages++
				bytes += float64(passed[i].n)
				seconds := float64(now-passed[i].at)/1e9 + 2 + 1e-6 // rounding
				if r.Messages > 0 && messages > seconds*float64(r.Messages) || r.Bytes > 0 && bytes > seconds*float64(r.Bytes) {
					t.Fatalf("%+v: %v messages of %v bytes in %v s and a burst", r, messages, bytes, seconds-2)
				}
			}
			now += random.Int64N(2e8)
		}
	}
}

// BenchmarkMeter is one message judged by both limits.
func BenchmarkMeter(b *testing.B) {
	m := NewMeter(Rate{Messages: 1e9, Bytes: 1 << 40})
	b.ReportAllocs()
	for now := int64(0); b.Loop(); now += 1000 {
		m.Take(now, 200)
	}
}

// BenchmarkMeterReference is two limiters of golang.org/x/time/rate, one after the
// other, which do not give back what the first took when the second refuses.
func BenchmarkMeterReference(b *testing.B) {
	messages, bytes := rate.NewLimiter(1e9, 2e9), rate.NewLimiter(1<<40, 1<<41)
	b.ReportAllocs()
	start := time.Unix(0, 0)
	for now := time.Duration(0); b.Loop(); now += 1000 {
		at := start.Add(now)
		_ = messages.AllowN(at, 1) && bytes.AllowN(at, 200)
	}
}
