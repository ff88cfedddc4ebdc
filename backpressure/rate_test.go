package backpressure

import (
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
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
