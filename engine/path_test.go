package engine

import (
	"fmt"
	"testing"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

func TestHelloJoinPublishAndResumeWithoutAGap(t *testing.T) {
	for _, c := range []struct{ alice, bob codec.Codec }{
		{codec.JSON, codec.JSON}, {codec.Msgpack, codec.Msgpack}, {codec.JSON, codec.Msgpack}, {codec.Msgpack, codec.JSON},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			e := start(t, nil)
			alice := dial(t, e, c.alice, memory.Options{})
			alice.hello("acme/alice")
			bob := dial(t, e, c.bob, memory.Options{})
			bob.hello("acme/bob", "chat:1")

			if r, _ := alice.ask(`{"t":"publish","room":"chat:1","event":"message","data":1}`); r.at("err.code") != "not_joined" {
				t.Fatalf("published without having joined: %v", r)
			}
			joined, _ := alice.ask(`{"t":"join","room":"chat:1"}`)
			if joined.at("ok.recovered") != false {
				t.Fatalf("joined: %v", joined)
			}
			for i := 1; i <= 3; i++ {
				alice.ask(fmt.Sprintf(`{"t":"publish","room":"chat:1","event":"message","data":{"n":%d}}`, i))
			}
			var epoch any
			for i := 1; i <= 3; i++ {
				ev := bob.until("event")
				if fmt.Sprint(ev.at("data.n")) != fmt.Sprint(i) || ev.offset() != uint64(i) || ev["from"] != "alice" {
					t.Fatalf("event %d: %v", i, ev)
				}
				epoch = ev["epoch"]
			}
			bob.conn.Cut()
			<-bob.conn.Done()
			for i := 4; i <= 6; i++ {
				alice.ask(fmt.Sprintf(`{"t":"publish","room":"chat:1","event":"message","data":{"n":%d}}`, i))
			}
			bob = dial(t, e, c.bob, memory.Options{})
			w := bob.hello("acme/bob", fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":3}`, epoch))
			if w.at("rooms.0.ok.recovered") != true {
				t.Fatalf("welcome: %v", w)
			}
			for i := 4; i <= 6; i++ {
				if ev := bob.until("event"); fmt.Sprint(ev.at("data.n")) != fmt.Sprint(i) || ev.offset() != uint64(i) {
					t.Fatalf("event %d: %v", i, ev)
				}
			}
		})
	}
}
