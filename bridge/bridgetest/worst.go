package bridgetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// TestHostile runs what must still hold over Hostile: sinks that follow the
// rules miss nothing, publishers that repeat with a key publish once, and every
// callback comes.
func TestHostile(t *testing.T, factory Factory) {
	for _, c := range []struct {
		name    string
		options HostileOptions
	}{
		{"late", HostileOptions{Delay: 2 * time.Millisecond}},
		{"lossy", HostileOptions{Delay: 500 * time.Microsecond, Drop: 40}},
		{"repetitive", HostileOptions{Delay: 500 * time.Microsecond, Repeat: 60}},
		{"forgetful", HostileOptions{Delay: 500 * time.Microsecond, LoseReply: 50}},
		{"all of it", HostileOptions{Delay: time.Millisecond, Drop: 30, Repeat: 30, LoseReply: 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seed uint64
			worse := func(t *testing.T, o Options) bridge.Broker {
				seed++
				return Hostile(factory(t, o), seed, c.options)
			}
			testWorst(t, worse)
		})
	}
}

func testWorst(t *testing.T, factory Factory) {
	room := topicOf("acme", "chat:1")

	t.Run("followers have every event once, in order", func(t *testing.T) {
		tr := begin(t, factory)
		followers := []*Follower{Follow(tr, room), Follow(tr, room)}
		for _, f := range followers {
			tr.reach(f, 0)
		}
		start := followers[0].Position()
		published := newGate(4 * 30)
		for range 4 {
			go func() {
				for range 30 {
					tr.Publish(room, plenty, []bridge.Publication{tr.buffered(room), tr.buffered(room)},
						func([]bridge.Published) { published.pass() })
				}
			}()
		}
		followers = append(followers, FollowFrom(tr, room, start))
		for _, f := range followers {
			tr.reach(f, 240)
			f.Close()
			consecutive(t, f.Log(), 1)
			if len(f.Log()) != 240 || len(f.Resets()) != 0 {
				t.Errorf("%d events, resets %v", len(f.Log()), f.Resets())
			}
		}
		published.wait(t)
	})

	t.Run("whoever subscribes and then reads misses nothing", func(t *testing.T) {
		tr := begin(t, factory)
		for run := range 50 {
			testB028(tr, topicOf("acme", fmt.Sprintf("chat:%d", run)), uint64(run))
		}
	})

	t.Run("who falls out of the history is told, and between resets misses nothing", func(t *testing.T) {
		tr := begin(t, factory)
		f := Follow(tr, room)
		defer f.Close()
		tr.reach(f, 0)
		short := plenty
		short.Events = 3
		published := newGate(200)
		for range 200 {
			tr.Publish(room, short, []bridge.Publication{tr.buffered(room)}, func([]bridge.Published) { published.pass() })
		}
		published.wait(t)
		tr.reach(f, 200)
		log, from := f.Log(), uint64(1)
		resets := f.Resets()
		for _, r := range resets {
			if r.Reason != codec.ResetExpired {
				t.Fatalf("resets %v", resets)
			}
		}
		begin := 0
		for _, r := range append(resets, Reset{Length: len(log)}) {
			consecutive(t, log[begin:r.Length], from)
			begin, from = r.Length, r.At.Offset+1
		}
	})

	t.Run("a publisher that repeats with its key publishes once", func(t *testing.T) {
		tr := begin(t, factory)
		r := windowed(tr, 120)
		const n = 60
		placed := map[string]codec.Position{}
		for i := range n {
			key := fmt.Sprintf("k%d", i)
			for {
				got := tr.publish(room, r, tr.keyed(room, key))[0]
				if got.Err == nil {
					placed[got.EID] = got.Position
					break
				}
				if got.Err.Code != codec.CodeUnavailable {
					t.Fatalf("publish: %v", got.Err)
				}
			}
		}
		kept := tr.all(room).Events
		consecutive(t, kept, 1)
		if len(kept) != n {
			t.Fatalf("%d keys, %d events", n, len(kept))
		}
		for _, e := range kept {
			if placed[e.EID] != e.Position {
				t.Errorf("%s is at %v, its publisher was told %v", e.EID, e.Position, placed[e.EID])
			}
		}
	})

	t.Run("close completes everything", func(t *testing.T) { testClose(t, factory) })
}
