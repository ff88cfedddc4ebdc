package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// A client that reads slowly lives for as long as it reads, however late its pongs
// are behind all that it has not read yet. When it reads nothing more it is closed as
// any that does not answer.
func TestASlowReaderLivesWhileItReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, each = 300, 250 * time.Millisecond
		e := start(t, nil)
		slow := dial(t, e, codec.JSON, memory.Options{Window: 4 << 10})
		slow.hello("acme/slow", "chat:1")
		for range events {
			e.publish(t, "acme", "chat:1", "message", strings.Repeat("x", 3<<10))
		}
		began := time.Now()
		for seen := uint64(0); seen < events-20; {
			time.Sleep(each)
			if f := slow.next(); f.t() == "event" {
				if seen++; f.offset() != seen {
					t.Fatalf("%d instead of %d", f.offset(), seen)
				}
			}
		}
		if took := time.Since(began); took < 2*(25+8)*time.Second {
			t.Fatalf("read in %v, before anybody asked for a pong", took)
		}
		time.Sleep(2 * (25 + 8) * time.Second)
		if n := e.Health().Sessions; n != 0 {
			t.Fatal("it is still there, and has read nothing for long")
		}
		for {
			_, err := slow.recv(context.Background())
			var end *memory.CloseError
			if errors.As(err, &end) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
