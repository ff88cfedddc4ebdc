package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// orders is a kind whose events are to be acknowledged, four at a time.
func orders(c *Config) {
	c.Kinds = []room.Kind{{Name: "orders", Events: map[string]room.EventPolicy{
		"order": {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive, Overflow: backpressure.RequireAck},
	}}}
	c.Limits.Unacked = 4
}

func (c *client) ack(room, epoch string, offset uint64) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"t":"ack","room":%q,"epoch":%q,"offset":%d}`, room, epoch, offset))
}

// quiet is that nothing has come before what is asked for now.
func (c *client) quiet() {
	c.t.Helper()
	c.send(`{"t":"ping","id":77}`)
	if f := c.next(); f.t() != "pong" {
		c.t.Fatalf("before the pong: %v", f)
	}
}

// A client is sent as many events as it may leave unacknowledged, publishers are
// never held up, and what is about no membership means nothing.
func TestAcknowledgements(t *testing.T) {
	for _, in := range []codec.Codec{codec.JSON, codec.Msgpack} {
		t.Run(in.String(), func(t *testing.T) {
			e := start(t, orders)
			c := dial(t, e, in, memory.Options{})
			c.hello("acme/alice", "orders:1")
			var p codec.Position
			for range 10 {
				p = e.publish(t, "acme", "orders:1", "order", 1).Position
			}
			expect := func(from, to uint64) {
				t.Helper()
				for o := from; o <= to; o++ {
					if f := c.next(); f.t() != "event" || f.offset() != o {
						t.Fatalf("want event %d: %v", o, f)
					}
				}
				c.quiet()
			}
			expect(1, 4)
			c.ack("orders:2", p.Epoch, 4)
			c.ack("orders:1", "another", 4)
			c.ack("orders:1", p.Epoch, 9)
			c.quiet()
			c.ack("orders:1", p.Epoch, 1)
			expect(5, 5)
			c.ack("orders:1", p.Epoch, 5)
			expect(6, 9)
			c.ack("orders:1", p.Epoch, 3)
			c.quiet()

			// It comes back with what it has processed.
			c.conn.Cut()
			c = dial(t, e, in, memory.Options{})
			c.hello("acme/alice", fmt.Sprintf(`{"room":"orders:1","epoch":%q,"offset":7}`, p.Epoch))
			expect(8, 10)
			if s := e.Stats(); s.Unacked != 1 || s.Behind != 0 {
				t.Errorf("%d left behind by their window, %d by their queue", s.Unacked, s.Behind)
			}
		})
	}
}

// B040, dotnet/aspnetcore#50409: after a reconnect everything was dropped while a
// marker was waited for that had been seen already. However often a client comes
// back, and wherever it was cut, it goes on from what it has acknowledged.
func TestB040_ResumeStormsNeverWedge(t *testing.T) {
	const clients = 4
	storms := 10_000 / clients / scale
	e := start(t, func(c *Config) {
		orders(c)
		c.Kinds[0].History = room.History{Events: 64, Age: time.Hour, Bytes: 1 << 20}
	})
	epoch := ""
	for range 32 {
		epoch = e.publish(t, "acme", "orders:1", "order", 1).Position.Epoch
	}
	done := make(chan struct{})
	for i := range clients {
		go func() {
			defer func() { done <- struct{}{} }()
			random := rand.New(rand.NewPCG(uint64(i), 3))
			acked := uint64(0)
			for storm := range storms {
				c := dial(t, e, codec.Codec(storm%2), memory.Options{})
				c.send(fmt.Sprintf(`{"t":"hello","token":"acme/m%d","rooms":[{"room":"orders:1","epoch":%q,"offset":%d}]}`, i, epoch, acked))
				switch n := random.IntN(8); {
				case n == 0: // cut before the welcome
				case n == 1:
					c.ack("orders:1", epoch, acked+1) // of what it has not been sent yet
				default:
					if w := c.next(); w.at("rooms.0.ok.recovered") != true {
						t.Errorf("storm %d of client %d, from %d: %v", storm, i, acked, w)
						return
					}
					last := min(32, acked+uint64(random.IntN(7)))
					for o := acked + 1; o <= last; o++ {
						if f := c.next(); f.t() != "event" || f.offset() != o {
							t.Errorf("storm %d of client %d: want event %d: %v", storm, i, o, f)
							return
						}
						if o%2 == 0 {
							c.ack("orders:1", epoch, o)
						}
						acked = o
					}
				}
				if acked == 32 {
					acked = random.Uint64N(32)
				}
				c.conn.Cut()
				<-c.conn.Done()
			}
		}()
	}
	for range clients {
		<-done
	}
}
