package redis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// What is kept is the newest events within number and bytes, whichever is reached first,
// and also where the server has lost the buffer and kept its record.
func TestWhatIsKeptAgainstNaiveHistory(t *testing.T) {
	s := server.Start(t)
	b := open(t, s.Address(), prefixed("k:"))
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 3))
		topic := codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", seed)}
		r := bridge.Retention{Events: 5 + random.IntN(20), Age: time.Minute, Bytes: int64(1500 + random.IntN(4000))}
		var naive []*codec.Event // by eid and size
		var kept int64
		size := func(e *codec.Event) int64 { return int64(e.Size() + 16) } // and an epoch
		number := 0
		for range 60 {
			if random.IntN(30) == 0 {
				s.Do("DEL", "k:buffer:"+topic.String())
				naive, kept = nil, 0
			}
			if random.IntN(20) == 0 {
				r.Events, r.Bytes = 5+random.IntN(20), int64(1500+random.IntN(4000))
			}
			var batch []bridge.Publication
			for range 1 + random.IntN(4) {
				number++
				data, err := codec.MakeData(codec.JSON, []byte(`"`+strings.Repeat("x", random.IntN(400))+`"`))
				if err != nil {
					t.Fatal(err)
				}
				e := codec.NewEvent(topic, "message", data, codec.Origin{EID: fmt.Sprint(number), From: "alice", Session: "s1", TS: 1})
				batch = append(batch, bridge.Publication{Event: e, Buffered: true})
				naive, kept = append(naive, e), kept+size(e)
			}
			for len(naive) > r.Events || kept > r.Bytes {
				kept -= size(naive[0])
				naive = naive[1:]
			}
			done := make(chan []bridge.Published, 1)
			b.Publish(topic, r, batch, func(p []bridge.Published) { done <- p })
			for _, p := range <-done {
				if p.Err != nil {
					t.Fatal(p.Err)
				}
			}
			pages := make(chan bridge.Page, 1)
			b.Read(topic, bridge.ReadRequest{Limit: 100}, func(p bridge.Page, err *codec.Error) {
				if err != nil {
					t.Error(err)
				}
				pages <- p
			})
			var got, want []string
			for _, e := range (<-pages).Events {
				got = append(got, e.EID)
			}
			for i := range naive {
				want = append(want, naive[i].EID)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v: kept %v, not %v", seed, r, got, want)
			}
		}
	}
}
