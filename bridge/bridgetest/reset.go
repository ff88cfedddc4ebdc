package bridgetest

import (
	"context"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func testReset(t *testing.T, factory Factory) {
	room := topicOf("acme", "chat:1")

	// https://github.com/dunglas/mercure/issues/1321
	t.Run("B029 a position that is none of this history", func(t *testing.T) {
		tr := begin(t, factory)
		three := plenty
		three.Events = 3
		epoch := tr.fill(room, three, 5)[4].Position.Epoch // 3, 4, 5 are kept
		for _, c := range []struct {
			name  string
			since codec.Position
			want  codec.ResetReason
		}{
			{"the oldest whole one", codec.Position{Epoch: epoch, Offset: 2}, codec.ResetNone},
			{"one older", codec.Position{Epoch: epoch, Offset: 1}, codec.ResetExpired},
			{"before the first event", codec.Position{Epoch: epoch}, codec.ResetExpired},
			{"the head", codec.Position{Epoch: epoch, Offset: 5}, codec.ResetNone},
			{"beyond the head", codec.Position{Epoch: epoch, Offset: 6}, codec.ResetEpoch},
			{"the largest offset", codec.Position{Epoch: epoch, Offset: codec.MaxOffset}, codec.ResetEpoch},
			{"another epoch at the head", codec.Position{Epoch: "foreign", Offset: 5}, codec.ResetEpoch},
			{"another epoch, expired offset", codec.Position{Epoch: "foreign", Offset: 1}, codec.ResetEpoch},
			{"no epoch", codec.Position{Offset: 4}, codec.ResetEpoch},
			{"nothing", codec.Position{}, codec.ResetEpoch},
			{"the epoch in another case", codec.Position{Epoch: epoch + " ", Offset: 4}, codec.ResetEpoch},
		} {
			page := tr.since(room, c.since)
			if page.Reset != c.want || page.Head != (codec.Position{Epoch: epoch, Offset: 5}) {
				t.Errorf("%s: reset %v, head %v, want reset %v", c.name, page.Reset, page.Head, c.want)
			}
			if page.Reset != codec.ResetNone && (len(page.Events) != 0 || page.More) {
				t.Errorf("%s: a reset with events %v", c.name, offsets(page.Events))
			}
			backwards := tr.read(room, bridge.ReadRequest{Since: c.since, HasSince: true, Limit: 9, Reverse: true})
			if want := c.want; want == codec.ResetEpoch && backwards.Reset != want || want != codec.ResetEpoch && backwards.Reset != codec.ResetNone {
				t.Errorf("%s, in reverse: reset %v", c.name, backwards.Reset)
			}
		}
	})

	// https://github.com/centrifugal/centrifugo/issues/230
	t.Run("B032 nothing was missed, though nothing is kept", func(t *testing.T) {
		tr := begin(t, factory)
		empty := topicOf("acme", "chat:empty")
		f := Follow(tr, empty)
		tr.reach(f, 0)
		at := f.Position()
		f.Close()
		if page := tr.since(empty, at); at.Epoch == "" || page.Reset != codec.ResetNone || page.Head != at {
			t.Errorf("(a) an empty topic, after leaving it at %v: %+v", at, page)
		}
		brief := plenty
		brief.Age = tr.clock.seconds(10)
		at = tr.fill(room, brief, 1)[0].Position
		tr.clock.pass(11)
		if page := tr.since(room, at); page.Reset != codec.ResetNone || page.Head != at || len(page.Events) != 0 {
			t.Errorf("(b) the event that it has went of age: %+v", page)
		}
		if page := tr.since(room, codec.Position{Epoch: at.Epoch}); page.Reset != codec.ResetExpired {
			t.Errorf("whoever did not have it: %+v", page)
		}
	})

	// https://github.com/centrifugal/centrifuge-go/issues/159
	t.Run("B036 a position of another generation", func(t *testing.T) {
		old := begin(t, factory)
		before := old.fill(room, plenty, 7)[6].Position
		tr := begin(t, factory) // the same topic after everything was lost
		now := tr.fill(room, plenty, 10)[9].Position
		if now.Epoch == before.Epoch || len(now.Epoch) > 16 || now.Epoch == "" {
			t.Fatalf("epochs %q, then %q", before.Epoch, now.Epoch)
		}
		for _, c := range []struct {
			since codec.Position
			want  codec.ResetReason
		}{
			{before, codec.ResetEpoch},
			{codec.Position{Offset: 7}, codec.ResetEpoch},
			{codec.Position{Epoch: now.Epoch, Offset: 7}, codec.ResetNone},
			{codec.Position{Epoch: now.Epoch, Offset: 11}, codec.ResetEpoch},
		} {
			if page := tr.since(room, c.since); page.Reset != c.want {
				t.Errorf("since %v: reset %v, want %v", c.since, page.Reset, c.want)
			}
		}
	})

	// https://github.com/centrifugal/centrifuge/issues/636
	t.Run("B038 history went of age, the head did not", func(t *testing.T) {
		tr := begin(t, factory)
		brief := plenty
		brief.Age = tr.clock.seconds(10)
		first := tr.fill(room, brief, 3)[0].Position
		tr.clock.pass(11)
		if page := tr.since(room, first); page.Reset != codec.ResetExpired || len(page.Events) != 0 || page.Head.Offset != 3 {
			t.Errorf("from 1: %+v", page)
		}
		if page := tr.since(room, codec.Position{Epoch: first.Epoch, Offset: 3}); page.Reset != codec.ResetNone {
			t.Errorf("from 3: %+v", page)
		}
		if got := tr.fill(room, brief, 1)[0].Position; got != (codec.Position{Epoch: first.Epoch, Offset: 4}) {
			t.Errorf("the next event is at %v", got)
		}
	})

	t.Run("an untouched topic has a position too", func(t *testing.T) {
		tr := begin(t, factory)
		head := tr.head(room)
		if head.Epoch == "" || head.Offset != 0 {
			t.Fatalf("head %v", head)
		}
		tr.fill(room, plenty, 2)
		if page := tr.since(room, head); page.Reset != codec.ResetNone || len(page.Events) != 2 {
			t.Errorf("what came after it: %+v", page)
		}
	})

	t.Run("a follower is told what it lost, and goes on", func(t *testing.T) {
		tr := begin(t, factory)
		f := FollowFrom(tr, room, codec.Position{Epoch: "foreign", Offset: 3})
		defer f.Close()
		tr.fill(room, plenty, 3)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// It says itself that it is at offset 3, so that the reset is waited for.
		if err := f.Until(ctx, func(p codec.Position, resets int) bool { return resets > 0 && p.Offset >= 3 }); err != nil {
			tr.Fatal(err)
		}
		resets := f.Resets()
		if len(resets) != 1 || resets[0].Reason != codec.ResetEpoch {
			t.Fatalf("resets %v", resets)
		}
		consecutive(t, f.Log(), resets[0].At.Offset+1)
	})
}
