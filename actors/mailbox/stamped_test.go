package mailbox

import (
	"testing"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/internal/telemetry"
)

func TestWokenAt(t *testing.T) {
	const wrap = int64(wokenUnit) << 30
	for _, tt := range []struct {
		name  string
		now   int64
		after time.Duration
		lane  backpressure.Lane
	}{
		{"at once", 12_000, 0, backpressure.Interactive},
		{"a while", 12_000, 40 * time.Millisecond, backpressure.Bulk},
		{"over the end of the numbers", wrap - 8_000, time.Second, backpressure.Lossy},
		{"in a later round of them", 5*wrap + 4_000, 3 * time.Hour / 4, backpressure.Control},
	} {
		lane, d := woken(tt.now, tt.lane).wait(tt.now + int64(tt.after))
		if lane != tt.lane || d < tt.after-wokenUnit || d > tt.after+wokenUnit {
			t.Errorf("%s: lane %v, %v", tt.name, lane, d)
		}
	}
}

// waits collects what a Timing is told.
type waits map[backpressure.Lane][]time.Duration

func (w waits) Waited(l backpressure.Lane, d time.Duration) { w[l] = append(w[l], d) }

// Of many messages some are measured, by how long they waited, and each arrives as
// it was posted, in order, whether it was one of them or not.
func TestWaitsOfMessages(t *testing.T) {
	const rounds, each = 200, 40
	w := waits{}
	r := newRig(t, each, func(o *options) { o.Timing = w })
	const wait = 3 * time.Millisecond
	sent, got := 0, 0
	for range rounds {
		for range each {
			if o := r.m.Post(backpressure.Bulk, Item{Msg: sent}); !o.Took() {
				t.Fatal(o)
			}
			sent++
		}
		r.now += int64(wait)
		r.run()
		for _, msg := range r.got[got:] {
			if msg != got {
				t.Fatalf("message %d came as %v", got, msg)
			}
			got++
		}
	}
	n := len(w[backpressure.Bulk])
	if want := sent / telemetry.EveryMessage; got != sent || len(w) != 1 || n < want/2 || n > want*2 {
		t.Errorf("%d of %d arrived, %d measured", got, sent, n)
	}
	for _, d := range w[backpressure.Bulk] {
		if d < wait || d > wait+time.Millisecond {
			t.Errorf("waited %v, not %v", d, wait)
		}
	}
}

// What leaves unhandled is handed back as it was posted, and what replaces another
// hears of it, measured or not.
func TestMeasuredMessagesAreGivenBack(t *testing.T) {
	r := newRig(t, 1, func(o *options) { o.Timing = waits{} })
	const n = 20 * telemetry.EveryMessage
	for i := range n {
		r.m.Post(backpressure.Bulk, Item{Msg: &latest{i: i}, Key: 2, Policy: backpressure.CoalesceLatest})
	}
	r.m.Abandon()
	if len(r.removed) != n {
		t.Fatalf("%d of %d", len(r.removed), n)
	}
	for i, removal := range r.removed {
		m, ok := removal.msg.(*latest)
		if !ok || m.i != i || m.replaces != (i > 0) {
			t.Fatalf("%d: %T %+v", i, removal.msg, removal.msg)
		}
	}
}

// latest is a message that takes the place of an older one.
type latest struct {
	i        int
	replaces bool
}

func (m *latest) Replaces() { m.replaces = true }
