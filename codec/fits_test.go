package codec

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// As many events of a page are sent as a frame holds, and a frame with them is not
// larger, whatever is in them.
func TestHistoryFitsTheFrame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for run := range 200 {
		page := &HistoryResult{Room: "chat:lobby"}
		for i := range random.IntN(70) {
			text := strings.Repeat(string(rune("a\x01é\""[random.IntN(4)])), random.IntN(400))
			d, err := NewData(map[string]any{"text": text, "n": random.Int64()})
			if err != nil {
				t.Fatal(err)
			}
			e := NewEvent(Topic{"acme", page.Room}, "said", d, Origin{EID: fmt.Sprint("e", i), From: "alice", Session: "s1", TS: int64(i)})
			page.Events = append(page.Events, e.At(Position{"ABCDEFGHIJKLMNOP", uint64(i + 1)}))
		}
		limit := 300 + random.IntN(20_000)
		for _, c := range []Codec{JSON, Msgpack} {
			size := func(n int) int {
				cut := &HistoryResult{Room: page.Room, Events: page.Events[:n], More: true, Position: Position{"ABCDEFGHIJKLMNOP", 70}}
				return len((&Reply{ID: 7, OK: cut}).encode(nil, c))
			}
			n := page.Fits(c, limit)
			if got := size(n); n > 0 && got > limit {
				t.Fatalf("run %d, %s: %d of %d events make %d bytes of %d", run, c, n, len(page.Events), got, limit)
			}
			// What is kept free is for the largest id, epoch and offset.
			if n < len(page.Events) && size(n+1)+150 < limit {
				t.Fatalf("run %d, %s: %d of %d events, though %d make %d bytes of %d", run, c, n, len(page.Events), n+1, size(n+1), limit)
			}
		}
	}
}
