package bridgetest

import (
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func testRepeats(t *testing.T, factory Factory) {
	room := topicOf("acme", "chat:1")

	// https://github.com/nats-io/nats-server/issues/7302
	t.Run("B147 the window runs from the first acceptance and is not refreshed", func(t *testing.T) {
		tr := begin(t, factory)
		r := windowed(tr, 120)
		start := tr.clock.Now()
		var first bridge.Published
		for _, c := range []struct {
			at        int
			duplicate bool
		}{{0, false}, {60, true}, {120 - tr.clock.near(), true}, {120 + tr.clock.near(), false}, {240, true}} {
			tr.clock.until(start.Add(tr.clock.seconds(c.at)))
			got := tr.accept(room, r, tr.keyed(room, "k"))[0]
			if got.Duplicate != c.duplicate {
				t.Fatalf("at %d s: %+v, want duplicate=%v", c.at, got, c.duplicate)
			}
			if !got.Duplicate {
				first = got
			} else if got.EID != first.EID || got.Position != first.Position {
				t.Fatalf("at %d s: %+v, the first was %+v", c.at, got, first)
			}
		}
		if n := tr.head(room).Offset; n != 2 {
			t.Fatalf("%d events", n)
		}
	})

	t.Run("repeats at the same time: one is published, all get its result", func(t *testing.T) {
		tr := begin(t, factory)
		r := windowed(tr, 120)
		const n = 32
		results := newResults(n)
		for range n {
			p := tr.keyed(room, "k")
			go tr.Publish(room, r, []bridge.Publication{p}, results.add)
		}
		fresh := 0
		all := results.wait(t)
		for _, p := range all {
			if p.Err != nil || p.EID != all[0].EID || p.Position != all[0].Position {
				t.Fatalf("%+v beside %+v", p, all[0])
			}
			if !p.Duplicate {
				fresh++
			}
		}
		kept := tr.all(room).Events
		if fresh != 1 || len(kept) != 1 || kept[0].EID != all[0].EID {
			t.Fatalf("%d published, %d kept", fresh, len(kept))
		}
	})

	t.Run("within one batch, whatever the data", func(t *testing.T) {
		tr := begin(t, factory)
		other := bridge.Publication{Event: tr.event(room, 99), Buffered: true, DedupKey: "k"}
		got := tr.accept(room, windowed(tr, 120), tr.keyed(room, "k"), other, tr.keyed(room, "l"))
		if got[0].Duplicate || !got[1].Duplicate || got[1].EID != got[0].EID || got[1].Position != got[0].Position || got[2].Duplicate || got[2].Position.Offset != 2 {
			t.Fatalf("%+v", got)
		}
	})

	t.Run("what was not accepted is not remembered", func(t *testing.T) {
		tr := begin(t, factory)
		r := windowed(tr, 120)
		late := tr.keyed(room, "k")
		late.Expires = tr.clock.Now()
		large := bridge.Publication{Event: tr.event(room, 8000), Buffered: true, DedupKey: "k"}
		small := r
		small.Bytes = 4000
		if got := tr.publish(room, small, late, large); got[0].Err == nil || got[1].Err == nil || got[1].Err.Code != codec.CodeTooLarge {
			t.Fatalf("%+v", got)
		}
		if got := tr.accept(room, r, tr.keyed(room, "k"))[0]; got.Duplicate {
			t.Fatalf("%+v", got)
		}
	})

	t.Run("a late repeat of an accepted event still gets its result", func(t *testing.T) {
		tr := begin(t, factory)
		r := windowed(tr, 120)
		first := tr.accept(room, r, tr.keyed(room, "k"))[0]
		late := tr.keyed(room, "k")
		late.Expires = tr.clock.Now()
		if got := tr.accept(room, r, late)[0]; !got.Duplicate || got.EID != first.EID {
			t.Fatalf("%+v", got)
		}
	})

	t.Run("an event that is not buffered", func(t *testing.T) {
		tr := begin(t, factory)
		r := windowed(tr, 120)
		p, again := tr.keyed(room, "k"), tr.keyed(room, "k")
		p.Buffered, again.Buffered = false, false
		got := tr.accept(room, r, p, again)
		if got[0].Duplicate || !got[1].Duplicate || got[1].EID != p.Event.EID || !got[1].Position.IsZero() {
			t.Fatalf("%+v", got)
		}
		if n := tr.head(room).Offset; n != 0 {
			t.Fatalf("head %d", n)
		}
	})

	t.Run("no window, no memory", func(t *testing.T) {
		tr := begin(t, factory)
		for range 2 {
			if got := tr.accept(room, plenty, tr.keyed(room, "k"))[0]; got.Duplicate {
				t.Fatalf("%+v", got)
			}
		}
	})

	t.Run("names of a key do not meet", func(t *testing.T) {
		tr := begin(t, factory)
		r := windowed(tr, 120)
		long := strings.Repeat("k", 256)
		for _, c := range []struct{ tenant, room, subject, key string }{
			{"acme", "chat:1", "a", "bc"},
			{"acme", "chat:1", "ab", "c"},
			{"acme", "chat:1", "", "abc"},
			{"acme", "chat:1", "a", "b\x00c"},
			{"acme", "chat:1", "a\x00b", "c"},
			{"acme", "chat:1", "a:b", "c"},
			{"acme", "chat:1", "a", "b:c"},
			{"acme", "chat:1", "a", "BC"},
			{"acme", "chat:1", "a", long},
			{"acme", "chat:1", "a", long[1:]},
			{"acme", "chat:1:a", "a", "bc"},
			{"acme", "chat", "a", "bc"},
			{"acm", "chat:1", "a", "bc"},
		} {
			topic := topicOf(c.tenant, c.room)
			e := tr.event(topic, 8)
			e = codec.NewEvent(topic, e.Name, e.Data, codec.Origin{EID: e.EID, From: c.subject})
			p := bridge.Publication{Event: e, Buffered: true, DedupKey: c.key}
			got := tr.accept(topic, r, p, p)
			if got[0].Duplicate || !got[1].Duplicate || got[1].EID != e.EID {
				t.Errorf("%q: %+v", c, got)
			}
		}
	})
}

func windowed(tr *trial, seconds int) bridge.Retention {
	r := plenty
	r.DedupWindow = tr.clock.seconds(seconds)
	return r
}

// results gathers the answers of publishes with one event each.
type results struct {
	answers chan bridge.Published
	n       int
}

func newResults(n int) *results { return &results{make(chan bridge.Published, 2*n), n} }

func (r *results) add(p []bridge.Published) { r.answers <- p[0] }

func (r *results) wait(t *testing.T) []bridge.Published {
	t.Helper()
	var all []bridge.Published
	for range r.n {
		all = append(all, receive(t, r.answers, "the answer to a publish"))
	}
	return all
}
