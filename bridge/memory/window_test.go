package memory_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
)

// B147, nats-io/nats-server#7302: whether a resend each minute passed depended on
// the one before it. Whenever a key comes, it is a repeat if and only if less than
// the window has passed since it was accepted last, and gets that one's result.
func TestB147_AWindowRunsFromTheAcceptanceAlone(t *testing.T) {
	type accepted struct {
		at     time.Time
		result bridge.Published
	}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 11))
		b, clock := start(t, memory.Config{})
		topic := topicOf("acme", "chat:1")
		window := time.Duration(1+random.IntN(120)) * time.Second
		keep := keepAll
		keep.DedupWindow = window
		model := map[string]accepted{}
		for i := range 300 {
			clock.pass(time.Duration(random.Int64N(int64(window) / 4)))
			if random.IntN(10) == 0 {
				b.Sweep() // forgets nothing early
			}
			p := buffered(topic, 8)
			p.DedupKey = fmt.Sprint("k", random.IntN(5))
			p.Event.EID = fmt.Sprint("e", i)
			p.Event.From = []string{"alice", "bob"}[random.IntN(2)]
			if p.Buffered = random.IntN(4) > 0; random.IntN(8) == 0 {
				p.Expires = clock.Now() // refused, unless it is a repeat; not remembered
			}
			name := p.Event.From + " " + p.DedupKey
			first, known := model[name]
			repeat := known && clock.Now().Sub(first.at) < window
			got := publish(b, topic, keep, p)[0]
			switch {
			case repeat:
				if want := first.result; !got.Duplicate || got.EID != want.EID || got.Position != want.Position {
					t.Fatalf("seed %d: %s after %v of %v: %+v, the first was %+v", seed, name, clock.Now().Sub(first.at), window, got, want)
				}
			case got.Duplicate:
				t.Fatalf("seed %d: %s is no repeat: %+v", seed, name, got)
			case (got.Err != nil) != !p.Expires.IsZero():
				t.Fatalf("seed %d: %s: %+v", seed, name, got)
			case got.Err == nil:
				model[name] = accepted{clock.Now(), got}
			}
		}
	}
}
