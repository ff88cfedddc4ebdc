package memory

import (
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// The bound holds again and again: what is handed out makes room.
func TestOutboxBound(t *testing.T) {
	var o outbox[delivery]
	d := delivery{kind: arrived, batch: bridge.Batch{Events: make([]*codec.Event, 64)}}
	for round := range 3 {
		if mine, taken := o.offer(d); !mine || !taken {
			t.Fatalf("round %d: an idle outbox gave mine=%v taken=%v", round, mine, taken)
		}
		n := 0
		for {
			mine, taken := o.offer(d)
			if mine {
				t.Fatalf("round %d: two hand out at a time", round)
			}
			if !taken {
				break
			}
			n++
		}
		if n != maxDeliveryEvents/64 {
			t.Errorf("round %d: %d deliveries of 64 events taken, want %d", round, n, maxDeliveryEvents/64)
		}
		for {
			if _, ok := o.next(nil); !ok {
				break
			}
			n--
		}
		if n != 0 {
			t.Errorf("round %d: %d deliveries never came out", round, n)
		}
	}
}
