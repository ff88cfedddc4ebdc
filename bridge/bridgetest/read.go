package bridgetest

import (
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func testRead(t *testing.T, factory Factory) {
	room := topicOf("acme", "chat:1")

	t.Run("pages", func(t *testing.T) {
		tr := begin(t, factory)
		// Offsets 1 to 10, of which 4 to 10 are kept.
		seven := plenty
		seven.Events = 7
		epoch := tr.fill(room, seven, 10)[9].Position.Epoch
		at := func(o uint64) codec.Position { return codec.Position{Epoch: epoch, Offset: o} }
		for _, c := range []struct {
			name string
			req  bridge.ReadRequest
			want []uint64
			more bool
		}{
			{"from the oldest kept", bridge.ReadRequest{Limit: 3}, []uint64{4, 5, 6}, true},
			{"everything kept", bridge.ReadRequest{Limit: 100}, []uint64{4, 5, 6, 7, 8, 9, 10}, false},
			{"exactly to the head", bridge.ReadRequest{Limit: 7}, []uint64{4, 5, 6, 7, 8, 9, 10}, false},
			{"after a position", bridge.ReadRequest{Since: at(6), HasSince: true, Limit: 2}, []uint64{7, 8}, true},
			{"after the newest that is gone", bridge.ReadRequest{Since: at(3), HasSince: true, Limit: 1}, []uint64{4}, true},
			{"after the last but one", bridge.ReadRequest{Since: at(9), HasSince: true, Limit: 5}, []uint64{10}, false},
			{"after the head", bridge.ReadRequest{Since: at(10), HasSince: true, Limit: 5}, nil, false},
			{"head alone", bridge.ReadRequest{}, nil, true},
			{"validity alone", bridge.ReadRequest{Since: at(10), HasSince: true}, nil, false},
			{"a limit below nought is none", bridge.ReadRequest{Limit: -1}, nil, true},
			{"reverse from the newest", bridge.ReadRequest{Limit: 3, Reverse: true}, []uint64{10, 9, 8}, true},
			{"reverse, all", bridge.ReadRequest{Limit: 100, Reverse: true}, []uint64{10, 9, 8, 7, 6, 5, 4}, false},
			{"reverse before a position", bridge.ReadRequest{Since: at(7), HasSince: true, Limit: 2, Reverse: true}, []uint64{6, 5}, true},
			{"reverse before the head", bridge.ReadRequest{Since: at(10), HasSince: true, Limit: 1, Reverse: true}, []uint64{9}, true},
			{"reverse down to the oldest", bridge.ReadRequest{Since: at(6), HasSince: true, Limit: 5, Reverse: true}, []uint64{5, 4}, false},
			{"reverse before the oldest kept", bridge.ReadRequest{Since: at(4), HasSince: true, Limit: 5, Reverse: true}, nil, false},
			{"reverse before what is gone", bridge.ReadRequest{Since: at(2), HasSince: true, Limit: 5, Reverse: true}, nil, false},
			{"reverse before the first position", bridge.ReadRequest{Since: at(0), HasSince: true, Limit: 5, Reverse: true}, nil, false},
		} {
			page := tr.read(room, c.req)
			if !slices.Equal(offsets(page.Events), c.want) || page.More != c.more || page.Reset != codec.ResetNone || page.Head != at(10) {
				t.Errorf("%s: got %v more=%v reset=%v head=%v, want %v more=%v", c.name, offsets(page.Events), page.More, page.Reset, page.Head, c.want, c.more)
			}
		}
	})

	t.Run("bounded by bytes, but never without progress", func(t *testing.T) {
		tr := begin(t, factory)
		for range 4 {
			tr.accept(room, plenty, bridge.Publication{Event: tr.event(room, 1000), Buffered: true})
		}
		size := tr.all(room).Events[0].Size()
		for _, c := range []struct{ bytes, want int }{{2*size + 10, 2}, {size + 10, 1}, {1, 1}, {0, 4}} {
			page := tr.read(room, bridge.ReadRequest{Limit: 100, Bytes: c.bytes})
			if len(page.Events) != c.want || page.More != (c.want < 4) {
				t.Errorf("%d bytes: %d events, more=%v, want %d", c.bytes, len(page.Events), page.More, c.want)
			}
		}
	})

	t.Run("page after page covers the history, both ways", func(t *testing.T) {
		tr := begin(t, factory)
		tr.fill(room, plenty, 25)
		for _, reverse := range []bool{false, true} {
			var got []uint64
			req := bridge.ReadRequest{Limit: 4, Reverse: reverse}
			for {
				page := tr.read(room, req)
				got = append(got, offsets(page.Events)...)
				if !page.More {
					break
				}
				req.Since, req.HasSince = page.Events[len(page.Events)-1].Position, true
			}
			if reverse {
				slices.Reverse(got)
			}
			if len(got) != 25 || got[0] != 1 || got[24] != 25 || !slices.IsSorted(got) {
				t.Errorf("reverse=%v: %v", reverse, got)
			}
		}
	})
}
