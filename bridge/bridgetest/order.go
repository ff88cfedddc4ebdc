package bridgetest

import (
	"slices"
	"sync"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func testOrder(t *testing.T, factory Factory) {
	room := topicOf("acme", "chat:1")

	t.Run("publishes, arrivals and history agree under concurrent publishers", func(t *testing.T) {
		tr := begin(t, factory)
		first, second := Follow(tr, room), Follow(tr, room)
		defer first.Close()
		defer second.Close()
		placed := concurrently(tr, room, 8, 40)
		n := len(placed)
		tr.reach(first, uint64(n))
		tr.reach(second, uint64(n))

		kept := tr.all(room).Events
		consecutive(t, kept, 1)
		if len(kept) != n {
			t.Fatalf("%d events in history, %d accepted", len(kept), n)
		}
		for i, e := range kept {
			if got := placed[e.EID]; got != e.Position {
				t.Fatalf("event %d is at %v in history, its publisher was told %v", i, e.Position, got)
			}
		}
		for _, f := range []*Follower{first, second} {
			if !slices.Equal(eids(f.Log()), eids(kept)) {
				t.Fatal("arrivals differ from history")
			}
		}
	})

	t.Run("a batch keeps its order, and one publisher's batches keep theirs", func(t *testing.T) {
		tr := begin(t, factory)
		var sent []string
		done := newGate(50)
		for range 50 {
			batch := []bridge.Publication{tr.buffered(room), tr.buffered(room), tr.buffered(room)}
			for _, p := range batch {
				sent = append(sent, p.Event.EID)
			}
			tr.Publish(room, plenty, batch, func([]bridge.Published) { done.pass() })
			clear(batch) // it may be reused as soon as Publish has returned
		}
		done.wait(t)
		if got := eids(tr.all(room).Events); !slices.Equal(got, sent) {
			t.Fatalf("published %v, kept %v", sent, got)
		}
	})

	t.Run("each publication is judged by itself", func(t *testing.T) {
		tr := begin(t, factory)
		late := tr.buffered(room)
		late.Expires = tr.clock.Now()
		got := tr.publish(room, plenty, tr.buffered(room), late, tr.buffered(room))
		if got[0].Position.Offset != 1 || got[1].Err == nil || got[1].Err.Code != codec.CodeExpired || got[2].Position.Offset != 2 {
			t.Fatalf("a refused publication took an offset or spoilt its batch: %+v", got)
		}
	})

	t.Run("an event is told apart from what it was before it had a position", func(t *testing.T) {
		tr := begin(t, factory)
		p := tr.buffered(room)
		got := tr.accept(room, plenty, p)
		e := tr.all(room).Events[0]
		if !p.Event.Position.IsZero() || e.Position != got[0].Position || e.EID != p.Event.EID || got[0].EID != p.Event.EID ||
			e.Name != p.Event.Name || e.From != p.Event.From || e.Topic != room || string(e.Data.Raw()) != string(p.Event.Data.Raw()) {
			t.Fatalf("published %+v, kept %+v, answered %+v", p.Event, e, got[0])
		}
	})

	t.Run("B045 what is not buffered moves nothing", func(t *testing.T) {
		testB045(t, factory)
	})
}

// https://github.com/centrifugal/centrifuge/issues/119
func testB045(t *testing.T, factory Factory) {
	tr := begin(t, factory)
	room := topicOf("acme", "chat:1")
	f := Follow(tr, room)
	defer f.Close()
	at := tr.fill(room, plenty, 1)[0].Position
	for range 5 {
		passing := bridge.Publication{Event: tr.event(room, 8)}
		if got := tr.accept(room, plenty, passing)[0]; !got.Position.IsZero() || got.EID != passing.Event.EID {
			t.Fatalf("an event that is not buffered was answered %+v", got)
		}
		if page := tr.since(room, at); page.Head != at || page.Reset != codec.ResetNone || len(page.Events) != 0 {
			t.Fatalf("position check at %v: %+v", at, page)
		}
	}
	none := plenty
	none.Events = 0
	if got := tr.publish(room, none, tr.buffered(room))[0]; got.Err == nil || got.Err.Code != codec.CodeUnsupported {
		t.Fatalf("buffered, in a room without history: %+v", got)
	}
	if page := tr.all(room); page.Head != at || len(page.Events) != 1 {
		t.Fatalf("after a refused publication: %+v", page)
	}
	tr.fill(room, plenty, 1)
	tr.reach(f, 2)
	if got := f.Passing(); len(got) != 0 {
		t.Fatalf("%d events that this node published without buffering came back to it", len(got))
	}
	if got := f.Resets(); len(got) != 0 {
		t.Fatalf("forced to reset: %v", got)
	}
}

// concurrently publishes from several goroutines in batches of 1 to 5 and
// returns where each event was placed.
func concurrently(tr *trial, topic codec.Topic, publishers, batches int) map[string]codec.Position {
	var mu sync.Mutex
	placed := make(map[string]codec.Position)
	done := newGate(publishers * batches)
	for i := range publishers {
		go func() {
			for j := range batches {
				batch := make([]bridge.Publication, 1+(i+j)%5)
				for k := range batch {
					batch[k] = tr.buffered(topic)
				}
				tr.Publish(topic, plenty, batch, func(results []bridge.Published) {
					mu.Lock()
					for _, p := range results {
						if p.Err != nil || p.Duplicate {
							tr.Errorf("publish: %+v", p)
						}
						placed[p.EID] = p.Position
					}
					mu.Unlock()
					done.pass()
				})
			}
		}()
	}
	done.wait(tr.T)
	mu.Lock()
	defer mu.Unlock()
	return placed
}
