package bridgetest

import (
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func testRetention(t *testing.T, factory Factory) {
	room := topicOf("acme", "chat:1")

	t.Run("by number", func(t *testing.T) {
		tr := begin(t, factory)
		r := plenty
		r.Events = 5
		tr.accept(room, r, tr.buffered(room), tr.buffered(room), tr.buffered(room))
		tr.fill(room, r, 9)
		page := tr.all(room)
		if len(page.Events) != 5 || page.Head.Offset != 12 {
			t.Fatalf("kept %v, head %v", offsets(page.Events), page.Head)
		}
		consecutive(t, page.Events, 8)
	})

	t.Run("a batch larger than the history still arrives whole", func(t *testing.T) {
		tr := begin(t, factory)
		f := Follow(tr, room)
		defer f.Close()
		r := plenty
		r.Events = 2
		batch := []bridge.Publication{}
		for range 20 {
			batch = append(batch, tr.buffered(room))
		}
		tr.reach(f, 0)
		tr.accept(room, r, batch...)
		tr.reach(f, 20)
		if len(f.Log()) != 20 || len(f.Resets()) != 0 {
			t.Fatalf("arrived %v, resets %v", offsets(f.Log()), f.Resets())
		}
	})

	t.Run("by bytes", func(t *testing.T) {
		tr := begin(t, factory)
		r := plenty
		size := int64(tr.event(room, 1000).Size())
		r.Bytes = 4 * size
		for range 20 {
			tr.accept(room, r, bridge.Publication{Event: tr.event(room, 1000), Buffered: true})
		}
		kept := tr.all(room).Events
		if len(kept) < 2 || int64(len(kept))*1000 > r.Bytes {
			t.Fatalf("%d events of %d bytes kept under %d", len(kept), size, r.Bytes)
		}
		consecutive(t, kept, 21-uint64(len(kept)))
		large := bridge.Publication{Event: tr.event(room, int(r.Bytes)), Buffered: true}
		if got := tr.publish(room, r, large)[0]; got.Err == nil || got.Err.Code != codec.CodeTooLarge {
			t.Fatalf("larger than the history: %+v", got)
		}
		if n := len(tr.all(room).Events); n != len(kept) {
			t.Fatalf("what was refused cost %d events", len(kept)-n)
		}
	})

	t.Run("by age", func(t *testing.T) {
		tr := begin(t, factory)
		r := plenty
		r.Age = tr.clock.seconds(90)
		start := tr.clock.Now()
		for i, at := range []int{0, 30, 60} {
			tr.clock.until(start.Add(tr.clock.seconds(at)))
			if got := tr.fill(room, r, 1)[0].Position.Offset; got != uint64(i+1) {
				t.Fatalf("offset %d", got)
			}
		}
		for _, c := range []struct{ at, kept int }{{75, 3}, {105, 2}, {135, 1}, {165, 0}} {
			tr.clock.until(start.Add(tr.clock.seconds(c.at)))
			page := tr.all(room)
			if len(page.Events) != c.kept || page.Head.Offset != 3 {
				t.Errorf("after %d s: %v kept, head %v", c.at, offsets(page.Events), page.Head)
			}
		}
	})

	// https://github.com/apache/kafka/pull/22873
	t.Run("B145 an event's own time is not trusted", func(t *testing.T) {
		tr := begin(t, factory)
		r := plenty
		r.Age = tr.clock.seconds(60)
		e := tr.event(room, 8)
		tenYears := tr.clock.Now().Add(10 * 365 * 24 * time.Hour).UnixMilli()
		future := codec.NewEvent(room, e.Name, e.Data, codec.Origin{EID: "future", TS: tenYears})
		past := codec.NewEvent(room, e.Name, e.Data, codec.Origin{EID: "past", TS: -tenYears})
		tr.accept(room, r, bridge.Publication{Event: future, Buffered: true}, bridge.Publication{Event: past, Buffered: true})
		tr.clock.pass(30)
		if n := len(tr.all(room).Events); n != 2 {
			t.Fatalf("%d of 2 kept at half their age", n)
		}
		tr.clock.pass(35)
		if n := len(tr.all(room).Events); n != 0 {
			t.Fatalf("%d kept beyond their age", n)
		}
	})

	t.Run("the last publish says how much is kept", func(t *testing.T) {
		tr := begin(t, factory)
		tr.fill(room, plenty, 10)
		r := plenty
		r.Events = 4
		tr.fill(room, r, 1)
		consecutive(t, tr.all(room).Events, 8)
		tr.fill(room, plenty, 2)
		if page := tr.all(room); len(page.Events) != 6 {
			t.Fatalf("kept %v", offsets(page.Events))
		}
	})

	t.Run("expiry refuses rather than sequences", func(t *testing.T) {
		tr := begin(t, factory)
		deadline := tr.clock.Now().Add(tr.clock.seconds(40))
		for _, buffered := range []bool{true, false} {
			p := bridge.Publication{Event: tr.event(room, 8), Buffered: buffered, Expires: deadline}
			tr.accept(room, plenty, p)
		}
		tr.clock.until(deadline)
		for _, buffered := range []bool{true, false} {
			p := bridge.Publication{Event: tr.event(room, 8), Buffered: buffered, Expires: deadline}
			if got := tr.publish(room, plenty, p)[0]; got.Err == nil || got.Err.Code != codec.CodeExpired {
				t.Errorf("buffered=%v: %+v", buffered, got)
			}
		}
		if n := tr.head(room).Offset; n != 1 {
			t.Errorf("head %d", n)
		}
	})
}
