package memory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/codec"
)

func TestPresenceConformance(t *testing.T) {
	bridgetest.TestPresence(t, func(*testing.T) bridge.Presence { return NewPresence() })
}

// Against a sorted map: order, pages, and parts within their bounds.
func TestRollAgainstAMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		var r roll
		there := map[string]int{}
		span := 50 + random.IntN(3000)
		for i := range 6000 {
			subject := fmt.Sprintf("s%05d", random.IntN(span))
			if grows := i < 3000; random.IntN(10) < 5 == grows || random.IntN(4) == 0 {
				_, known := there[subject]
				there[subject] = i
				if _, was := r.put(codec.Member{Subject: subject, Sessions: i}); was != known {
					t.Fatalf("seed %d: %s was there: %v", seed, subject, was)
				}
			} else {
				_, known := there[subject]
				delete(there, subject)
				if r.remove(subject) != known {
					t.Fatalf("seed %d: %s was there: %v", seed, subject, !known)
				}
			}
		}
		want := slices.Sorted(maps.Keys(there))
		for _, part := range r.parts {
			if len(part) == 0 || len(part) > rollPart {
				t.Fatalf("seed %d: a part of %d", seed, len(part))
			}
		}
		for range 50 {
			after, limit := fmt.Sprintf("s%05d", random.IntN(span)), random.IntN(600)
			from, found := slices.BinarySearch(want, after)
			if found {
				from++
			}
			rest := want[from:]
			page, more := r.page(after, limit)
			if len(page) != min(limit, len(rest)) || more != (len(rest) > limit) || r.len() != len(want) {
				t.Fatalf("seed %d: %d after %s of %d, more %v", seed, len(page), after, len(rest), more)
			}
			for i, m := range page {
				if m.Subject != rest[i] || m.Sessions != there[m.Subject] {
					t.Fatalf("seed %d: %+v in place of %s", seed, m, rest[i])
				}
			}
		}
	}
}

// Nothing is left of a topic that nobody is in or watches; one that comes back is
// of another epoch.
func TestPresenceForgetsEmptyTopics(t *testing.T) {
	p := NewPresence()
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	epochs := map[string]bool{}
	mark := func(m bridge.Mark, _ *codec.Error) { epochs[m.Epoch] = true }
	for i := range 10 {
		w := &lateWatcher{}
		p.Watch(topic, w)
		p.Change(topic, uint64(2*i+1), bridge.PresenceUpdate{Put: []codec.Member{{Subject: "a"}}}, mark)
		p.Unwatch(topic, w)
		if p.halls.len() != 1 {
			t.Fatalf("%d records with one present", p.halls.len())
		}
		p.Change(topic, uint64(2*i+2), bridge.PresenceUpdate{Remove: []string{"a"}}, mark)
		p.List(topic, "", 1, func(bridge.MemberPage, *codec.Error) {})
		if p.halls.len() != 0 {
			t.Fatalf("%d records with nobody", p.halls.len())
		}
	}
	if len(epochs) != 10 {
		t.Errorf("%d epochs of 10 beginnings", len(epochs))
	}
}

// lateWatcher holds the first call up for as long as the test says.
type lateWatcher struct {
	hold, held chan struct{} // nil: it does not
	once       sync.Once
	anew       int
	changes    []uint64
}

func (w *lateWatcher) Anew() {
	w.anew++
	if w.hold != nil {
		w.once.Do(func() { close(w.held); <-w.hold })
	}
}

func (w *lateWatcher) Changed(c bridge.PresenceChange) { w.changes = append(w.changes, c.Mark.Seq) }

// What waits for a watcher that takes its time is bounded; beyond it begins anew.
func TestPresenceOutboxIsBounded(t *testing.T) {
	p := NewPresence()
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	w := &lateWatcher{hold: make(chan struct{}), held: make(chan struct{})}
	done := make(chan struct{})
	go func() { defer close(done); p.Watch(topic, w) }()
	<-w.held
	for i := range uint64(3 * maxPresenceCalls) {
		u := bridge.PresenceUpdate{Put: []codec.Member{{Subject: fmt.Sprint("s", i)}}}
		p.Change(topic, i+1, u, func(bridge.Mark, *codec.Error) {})
	}
	h := p.enter(topic, false)
	if n := h.outbox.waiting.Len(); n != maxPresenceCalls {
		t.Errorf("%d calls wait", n)
	}
	h.mu.Unlock()
	close(w.hold)
	<-done
	if w.anew != 2 || len(w.changes) != maxPresenceCalls || w.changes[maxPresenceCalls-1] != maxPresenceCalls {
		t.Errorf("anew %d times, %d changes", w.anew, len(w.changes))
	}
	p.Unwatch(topic, w)
}

// Calls of many goroutines about few topics that come and go.
func TestPresenceUnderConcurrency(t *testing.T) {
	p := NewPresence()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range uint64(500) {
				topic := codec.Topic{Tenant: "acme", Room: fmt.Sprint("chat:", i%3)}
				w := &lateWatcher{}
				p.Watch(topic, w)
				u := bridge.PresenceUpdate{Put: []codec.Member{{Subject: fmt.Sprint("s", g)}}}
				p.Change(topic, i*8+uint64(g), u, func(bridge.Mark, *codec.Error) {})
				p.Unwatch(topic, w)
				p.Change(topic, 1<<40+i*8+uint64(g), bridge.PresenceUpdate{Whole: true}, func(bridge.Mark, *codec.Error) {})
			}
		})
	}
	wg.Wait()
	if n := p.halls.len(); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// BenchmarkPresenceMember is what one present member costs in the bridge.
func BenchmarkPresenceMember(b *testing.B) {
	const n = 100_000
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	members := make([]codec.Member, n)
	for i := range members {
		members[i].Subject = fmt.Sprintf("member-%06d", i)
	}
	for b.Loop() {
		p := NewPresence()
		before := heapBytes()
		for i := range members {
			p.Change(topic, uint64(i+1), bridge.PresenceUpdate{Put: members[i : i+1]}, func(bridge.Mark, *codec.Error) {})
		}
		b.ReportMetric(float64(heapBytes()-before)/n, "B/member")
		runtime.KeepAlive(p)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/join")
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// leavingWatcher ends its watch when it hears of a change.
type leavingWatcher struct {
	p     *Presence
	topic codec.Topic
	heard int
	stays bool
}

func (w *leavingWatcher) Anew() {}

func (w *leavingWatcher) Changed(bridge.PresenceChange) {
	if w.heard++; !w.stays {
		w.p.Unwatch(w.topic, w)
	}
}

// A change is brought to all who watched when it was made, though some leave meanwhile.
func TestPresenceWatcherThatLeavesWhileOthersAreTold(t *testing.T) {
	p := NewPresence()
	defer p.Close()
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	var all []*leavingWatcher
	for _, stays := range []bool{false, true, false, true} {
		w := &leavingWatcher{p: p, topic: topic, stays: stays}
		all = append(all, w)
		p.Watch(topic, w)
	}
	for n := range 2 {
		u := bridge.PresenceUpdate{Put: []codec.Member{{Subject: fmt.Sprint(n)}}}
		p.Change(topic, uint64(n+1), u, func(bridge.Mark, *codec.Error) {})
	}
	for i, w := range all {
		if want := map[bool]int{false: 1, true: 2}[w.stays]; w.heard != want {
			t.Errorf("watcher %d hears %d changes, want %d", i, w.heard, want)
		}
	}
}
