package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// An event that fits a message but never its room's history is too_large, for its
// publisher alone.
func TestEventLargerThanTheHistoryIsTooLarge(t *testing.T) {
	for _, in := range []codec.Codec{codec.JSON, codec.Msgpack} {
		t.Run(fmt.Sprint(in), func(t *testing.T) {
			e := start(t, func(c *Config) {
				k := openKind
				// What an event is charged beside its data is what does not fit here.
				k.History = room.History{Bytes: 64 << 10}
				c.Kinds = []room.Kind{k}
			})
			c := dial(t, e, in, memory.Options{})
			c.hello("acme/a", "chat:1")
			data := strings.Repeat("x", 64<<10-200)
			if r, _ := c.ask(fmt.Sprintf(`{"t":"publish","room":"chat:1","event":"m","data":%q}`, data)); r.at("err.code") != "too_large" || r.at("err.retry_after_ms") != nil {
				t.Errorf("reply %.200v", r)
			}
			if r, _ := c.ask(`{"t":"publish","room":"chat:1","event":"m","data":"fits"}`); r.at("ok.offset") == nil {
				t.Errorf("what fits: %v", r)
			}
		})
	}
}
