package supervision

import (
	"testing"
	"time"
)

func TestBackoffNext(t *testing.T) {
	const s = time.Second
	type step struct {
		after time.Duration // since the step before
		delay time.Duration
		ok    bool
	}
	tests := []struct {
		rule  string
		b     Backoff
		steps []step
	}{
		{"doubles up to the cap", Backoff{Initial: s, Cap: 5 * s, Window: time.Hour}, []step{
			{0, s, true}, {0, 2 * s, true}, {0, 4 * s, true}, {0, 5 * s, true}, {0, 5 * s, true},
		}},
		{"a cap below the start is the start", Backoff{Initial: s, Window: time.Hour}, []step{
			{0, s, true}, {0, s, true},
		}},
		{"no start, no wait", Backoff{Window: time.Hour}, []step{{0, 0, true}, {0, 0, true}}},
		{"a quiet window starts anew", Backoff{Initial: s, Cap: time.Hour, Window: 10 * s}, []step{
			{0, s, true}, {9 * s, 2 * s, true}, {10 * s, s, true},
		}},
		{"the limit stops", Backoff{Initial: s, Cap: s, MaxRestarts: 2, Window: 30 * s}, []step{
			{0, s, true}, {s, s, true}, {s, 0, false}, {s, 0, false},
		}},
		{"the window slides", Backoff{Initial: s, Cap: s, MaxRestarts: 2, Window: 30 * s}, []step{
			{0, s, true}, {20 * s, s, true}, {9 * s, 0, false}, {s, s, true}, {s, 0, false},
		}},
		{"jitter only shortens", Backoff{Initial: 8 * s, Cap: 8 * s, Jitter: 0.5, Window: time.Hour, Rand: func() float64 { return 0.5 }}, []step{
			{0, 6 * s, true}, {0, 6 * s, true},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			now := time.Unix(1e9, 0)
			for i, st := range tt.steps {
				now = now.Add(st.after)
				delay, ok := tt.b.Next(now)
				if delay != st.delay || ok != st.ok {
					t.Fatalf("step %d: %v %v, want %v %v", i, delay, ok, st.delay, st.ok)
				}
			}
		})
	}
}

func TestBackoffNeverLeavesItsBounds(t *testing.T) {
	b := Backoff{Initial: time.Millisecond, Cap: 7 * time.Second, Jitter: 1, Window: time.Hour}
	now := time.Unix(1e9, 0)
	for range 100_000 { // without a limit, and long after a naive shift would overflow
		d, ok := b.Next(now)
		if !ok || d < 0 || d > b.Cap {
			t.Fatalf("%v %v", d, ok)
		}
	}
	if b.recent != nil {
		t.Fatal("times are kept without a limit")
	}
}

func TestBackoffKeepsAtMostItsLimit(t *testing.T) {
	b := Backoff{MaxRestarts: 5, Window: time.Second}
	now := time.Unix(1e9, 0)
	for range 10_000 {
		b.Next(now)
		now = now.Add(50 * time.Millisecond)
		if len(b.recent) > 5 || cap(b.recent) > 8 {
			t.Fatalf("%d times kept, room for %d", len(b.recent), cap(b.recent))
		}
	}
}
