package room

import (
	"math/rand/v2"
	"testing"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func positions(from, to uint64) (events []*codec.Event) {
	for i := from; i <= to; i++ {
		events = append(events, newEvent(codec.Position{Epoch: "a", Offset: i}))
	}
	return events
}

// check holds the window against the invariant, and its budget against what it
// holds.
func (w *window) check(t *testing.T, head uint64) {
	t.Helper()
	var bytes int64
	for i := range w.events.Len() {
		e := w.events.At(i).event
		bytes += int64(e.Size())
		if want := w.low(head) + 1 + uint64(i); e.Position.Offset != want {
			t.Fatalf("event %d of the window is %d, want %d", i, e.Position.Offset, want)
		}
	}
	if w.account.Used() != bytes || w.bytes != bytes {
		t.Fatalf("window holds %d bytes, charged %d, counted %d", bytes, w.account.Used(), w.bytes)
	}
}

func TestWindow(t *testing.T) {
	size := int64(newEvent(codec.Position{Epoch: "a", Offset: 1}).Size())
	for _, c := range []struct {
		name  string
		limit int
		bytes int64
		do    func(w *window)
		head  uint64
		want  uint64 // low
	}{
		{"holds little while nobody is behind", 100, 0, func(w *window) { w.add(positions(1, 50), false, 0) }, 50, 50 - windowRest},
		{"holds the history while somebody is", 30, 0, func(w *window) { w.add(positions(1, 50), true, 0) }, 50, 20},
		{"shrinks when nobody is any more", 100, 0, func(w *window) { w.add(positions(1, 50), true, 0); w.trim(false, 0) }, 50, 50 - windowRest},
		{"grows down by a page", 100, 0, func(w *window) { w.add(positions(11, 20), true, 0); w.prepend(positions(1, 10), 20, 0) }, 20, 0},
		{"and by the part of a page that it lacks", 100, 0, func(w *window) { w.add(positions(11, 20), true, 0); w.prepend(positions(5, 15), 20, 0) }, 20, 4},
		{"not by a page that leaves a hole", 100, 0, func(w *window) { w.add(positions(11, 20), true, 0); w.prepend(positions(1, 9), 20, 0) }, 20, 10},
		{"not by a page of what it has", 100, 0, func(w *window) { w.add(positions(11, 20), true, 0); w.prepend(positions(12, 20), 20, 0) }, 20, 10},
		{"up to its limit", 15, 0, func(w *window) { w.add(positions(11, 20), true, 0); w.prepend(positions(1, 10), 20, 0) }, 20, 5},
		{"lets the oldest go for want of budget", 100, 5 * size, func(w *window) { w.add(positions(1, 9), true, 0) }, 9, 4},
		{"takes no page that the budget does not allow", 100, 5 * size, func(w *window) { w.add(positions(11, 13), true, 0); w.prepend(positions(8, 10), 13, 0) }, 13, 10},
		{"holds nothing where the budget is used up elsewhere", 100, 5 * size, func(w *window) {
			w.add(positions(1, 3), true, 0)
			w.account.Force(5 * size)
			w.add(positions(4, 6), true, 0)
			w.account.Release(5 * size)
		}, 6, 6},
		{"holds no more than a small history, whoever is behind", 5, 0, func(w *window) { w.add(positions(1, 9), false, 0) }, 9, 4},
		{"nor more bytes", 100, 0, func(w *window) { w.add(positions(1, 50), true, 0) }, 50, 10},
		{"nor more bytes by a page", 100, 0, func(w *window) { w.add(positions(31, 50), true, 0); w.prepend(positions(1, 30), 50, 0) }, 50, 10},
		{"nor what is too old", 100, 0, func(w *window) { w.add(positions(1, 3), true, 0); w.add(positions(4, 9), true, 5); w.trim(true, 9) }, 9, 3},
		{"but what was kept when it was read", 100, 0, func(w *window) { w.add(positions(4, 9), true, 0); w.prepend(positions(1, 3), 9, 8); w.trim(true, 9) }, 9, 0},
		{"lets everything go", 100, 0, func(w *window) { w.add(positions(1, 9), true, 0); w.clear() }, 9, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &window{account: backpressure.NewAccount(nil, c.bytes), limit: bridge.Retention{Events: c.limit, Bytes: 40*size + size/2, Age: 9}}
			c.do(w)
			w.check(t, c.head)
			if low := w.low(c.head); low != c.want {
				t.Fatalf("reaches down to %d, want %d", low, c.want)
			}
			w.clear()
			w.check(t, c.head)
		})
	}
}

// Against the list of all events: whatever the window is made to hold, what it
// gives is the truth, and it gives all that it says it has.
func TestWindowAgainstASlice(t *testing.T) {
	size := int64(newEvent(codec.Position{Epoch: "a", Offset: 1}).Size())
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 4))
		w := &window{account: backpressure.NewAccount(nil, size*int64(random.IntN(60))), limit: bridge.Retention{Events: 1 + random.IntN(60), Bytes: size * int64(random.IntN(60)), Age: 1 << 40}}
		head := uint64(random.IntN(30))
		all := positions(1, head)
		wide := false
		for range 100 {
			switch random.IntN(6) {
			case 0, 1:
				n := uint64(1 + random.IntN(20))
				events := positions(head+1, head+n)
				all = append(all, events...)
				head += n
				w.add(events, wide, 0)
			case 2:
				if head > 0 {
					from := random.IntN(int(head))
					w.prepend(all[from:min(int(head), from+1+random.IntN(30))], head, 0)
				}
			case 3:
				wide = !wide
				w.trim(wide, 0)
			case 4:
				if random.IntN(10) == 0 {
					w.clear()
				}
			case 5:
				offset, limit := uint64(random.IntN(int(head)+1)), random.IntN(20)
				got, ok := w.after(nil, offset, head, limit)
				if ok != (offset >= w.low(head)) {
					t.Fatalf("seed %d: from %d, low %d: %v", seed, offset, w.low(head), ok)
				}
				if ok {
					want := all[offset:min(head, offset+uint64(limit))]
					if offsets(got) != offsets(want) {
						t.Fatalf("seed %d: after %d: %s, want %s", seed, offset, offsets(got), offsets(want))
					}
				}
			}
			w.check(t, head)
			if w.events.Len() > w.limit.Events || w.limit.Bytes > 0 && w.bytes > w.limit.Bytes {
				t.Fatalf("seed %d: holds %d events and %d bytes of at most %+v", seed, w.events.Len(), w.bytes, w.limit)
			}
		}
	}
}
