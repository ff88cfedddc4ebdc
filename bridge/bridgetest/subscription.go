package bridgetest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func testSubscription(t *testing.T, factory Factory) {
	room := topicOf("acme", "chat:1")

	t.Run("Subscribed comes once for each, with the head", func(t *testing.T) {
		tr := begin(t, factory)
		at := tr.fill(room, plenty, 3)[2].Position
		r := newRecorder()
		for range 2 { // the second begins the first anew
			tr.Subscribe(room, r)
			if head := receive(t, r.subscribed, "Subscribed"); head != at {
				t.Fatalf("head %v, want %v", head, at)
			}
		}
		f := Follow(tr, room)
		defer f.Close()
		tr.fill(room, plenty, 2)
		tr.reach(f, 5)
		tr.Unsubscribe(room, r)
		if n := len(r.subscribed) + len(r.refused); n != 0 {
			t.Fatalf("%d calls of Subscribed too many", n)
		}
	})

	// https://github.com/dunglas/mercure/issues/178
	t.Run("B028 whoever subscribes and then reads misses nothing", func(t *testing.T) {
		tr := begin(t, factory)
		for run := range 1000 {
			testB028(tr, topicOf("acme", fmt.Sprintf("chat:%d", run)), uint64(run))
		}
	})

	// https://github.com/dunglas/mercure/issues/586
	t.Run("B030 a position that is brought back again and again is served once", func(t *testing.T) {
		tr := begin(t, factory)
		tr.fill(room, plenty, 3)
		at := codec.Position{Epoch: tr.head(room).Epoch}
		var log []*codec.Event
		for range 5 {
			f := FollowFrom(tr, room, at)
			tr.fill(room, plenty, 1)
			tr.reach(f, tr.head(room).Offset)
			f.Close()
			at = f.Position()
			log = append(log, f.Log()...)
			if n := len(f.Resets()); n != 0 {
				t.Fatalf("%d resets", n)
			}
		}
		consecutive(t, log, 1)
		ids := eids(log)
		slices.Sort(ids)
		if len(log) != 8 || len(slices.Compact(ids)) != 8 {
			t.Fatalf("replayed %v", eids(log))
		}
	})

	t.Run("what is sequenced after Unsubscribe returned does not arrive", func(t *testing.T) {
		tr := begin(t, factory)
		r := newRecorder()
		tr.Subscribe(room, r)
		receive(t, r.subscribed, "Subscribed")
		tr.Unsubscribe(room, r)
		tr.Unsubscribe(room, r) // does nothing
		f := Follow(tr, room)
		defer f.Close()
		tr.reach(f, 0)
		tr.fill(room, plenty, 5)
		tr.reach(f, 5)
		if n := len(r.got()); n != 0 {
			t.Fatalf("%d events arrived", n)
		}
	})

	t.Run("subscribing again goes on where the topic is", func(t *testing.T) {
		tr := begin(t, factory)
		r := newRecorder()
		tr.Subscribe(room, r)
		receive(t, r.subscribed, "Subscribed")
		tr.Unsubscribe(room, r)
		tr.fill(room, plenty, 5)
		tr.Subscribe(room, r)
		if head := receive(t, r.subscribed, "Subscribed"); head.Offset != 5 {
			t.Fatalf("head %v", head)
		}
		f := Follow(tr, room)
		defer f.Close()
		tr.reach(f, 5)
		tr.fill(room, plenty, 3)
		tr.reach(f, 8)
		tr.Unsubscribe(room, r)
		if got := offsets(r.got()); len(got) > 0 && got[0] < 6 {
			t.Fatalf("what was published in between arrived: %v", got)
		}
	})

	t.Run("a callback may call the broker", func(t *testing.T) {
		tr := begin(t, factory)
		done := newGate(1)
		echo := &caller{tr: tr, topic: room, left: 10, done: done}
		tr.Subscribe(room, echo)
		tr.fill(room, plenty, 1)
		done.wait(t)
		consecutive(t, tr.all(room).Events, 1)
	})
}

// testB028 lets a publisher run at full speed while a follower comes in at a
// random moment, from the beginning.
func testB028(tr *trial, topic codec.Topic, seed uint64) {
	tr.Helper()
	random := rand.New(rand.NewPCG(seed, 28))
	start := codec.Position{Epoch: tr.head(topic).Epoch}
	const n = 12
	publishing := newGate(n)
	pauses := random.Perm(n)
	go func() {
		for i := range n {
			for range pauses[i] / 3 {
				runtime.Gosched()
			}
			tr.Publish(topic, plenty, []bridge.Publication{tr.buffered(topic)}, func([]bridge.Published) { publishing.pass() })
		}
	}()
	for range random.IntN(40) {
		runtime.Gosched()
	}
	f := FollowFrom(tr, topic, start)
	tr.reach(f, n)
	publishing.wait(tr.T)
	f.Close()
	log := f.Log()
	consecutive(tr.T, log, 1)
	if len(log) != n || len(f.Resets()) != 0 {
		tr.Fatalf("seed %d: %d events, resets %v", seed, len(log), f.Resets())
	}
}

// caller answers each arrival with calls from inside the callback.
type caller struct {
	tr    *trial
	topic codec.Topic
	done  *gate
	left  int // touched by one callback at a time
}

func (c *caller) Subscribed(codec.Position, *codec.Error) {}
func (c *caller) Gap(codec.Position)                      {}

func (c *caller) Arrived(bridge.Batch) {
	if c.left--; c.left == 0 {
		c.tr.Unsubscribe(c.topic, c)
		c.tr.Read(c.topic, bridge.ReadRequest{Limit: 1}, func(bridge.Page, *codec.Error) { c.done.pass() })
		return
	}
	if c.left > 0 {
		c.tr.Publish(c.topic, plenty, []bridge.Publication{c.tr.buffered(c.topic)}, func([]bridge.Published) {})
	}
}
