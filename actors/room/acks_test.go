package room

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// orders is a kind with events that members must acknowledge, and others of the
// same lane. The window of a peer is of four.
var orders = Kind{Name: "orders", History: History{Events: 1000, Age: time.Hour, Bytes: 1 << 20}, Events: map[string]EventPolicy{
	"order": {Delivery: AtLeastOnce, Lane: backpressure.Interactive, Overflow: backpressure.RequireAck},
	"note":  {Delivery: AtLeastOnce, Lane: backpressure.Interactive},
	"ping":  {Delivery: Transient, Lane: backpressure.Lossy},
}}

func (p *peer) ack(offset uint64) {
	p.out.Acknowledge(p.member.Seat, codec.Position{Epoch: p.s.broker.epoch, Offset: offset})
	p.s.run()
}

// A full window limits what its member is sent, and nobody else; it is fed as it
// acknowledges, and the publisher never hears of it.
func TestMemberWithAFullWindow(t *testing.T) {
	s := newStage(t, orders)
	slow, quick, author := s.peer("slow", 100), s.peer("quick", 100), s.peer("author", 100)
	slow.join()
	quick.join()
	author.join()
	for i := uint64(1); i <= 6; i++ {
		want(t, "publish", author.publish("order", "1"), "accepted")
		quick.ack(i)
	}
	want(t, "who acknowledges", fmt.Sprint(quick.frames()), "[event 1 event 2 event 3 event 4 event 5 event 6]")
	want(t, "who does not", fmt.Sprint(slow.frames()), "[event 1 event 2 event 3 event 4]")
	want(t, "publish", author.publish("note", "1"), "accepted")
	want(t, "publish", author.publish("ping", "1"), "accepted")
	want(t, "events that are kept wait behind the window, others do not", fmt.Sprint(slow.frames()), "[ping]")

	turns := s.room.behind
	s.run()
	want(t, "asked meanwhile", fmt.Sprint(turns, len(s.room.waiting), s.broker.count), "2 0 0") // author is behind, too
	slow.ack(1)
	want(t, "one place, one event", fmt.Sprint(slow.frames()), "[event 5]")
	slow.ack(1)
	slow.ack(9)
	want(t, "acknowledgements that mean nothing", fmt.Sprint(slow.frames()), "[]")
	slow.ack(5)
	want(t, "live again", fmt.Sprint(slow.frames()), "[event 6 event 7]")
	want(t, "publish", author.publish("order", "1"), "accepted")
	want(t, "live", fmt.Sprint(slow.frames()), "[event 8]")
}

// Redelivery: a client that comes back names what it has processed, and gets the
// rest, once.
func TestB041_AcknowledgementsBetweenTheResends(t *testing.T) {
	// Source: https://github.com/dotnet/aspnetcore/issues/50315
	s := newStage(t, orders)
	author := s.peer("author", 100)
	author.join()
	author.ack(0)
	for i := uint64(1); i <= 10; i++ {
		author.publish("order", "1")
		author.ack(i)
	}
	p := s.peer("p", 100)
	p.wire.full = true // the write of the reply blocks
	want(t, "while the write is blocked", fmt.Sprint(p.join(codec.Position{Epoch: "e0", Offset: 4})), "[]")
	p.ack(4) // of the connection before
	p.wire.open()
	s.run()
	want(t, "a window of the rest", fmt.Sprint(p.frames()), "[joined 4 recovered event 5 event 6 event 7 event 8]")
	p.wire.full = true
	p.ack(6) // while the next ones are on their way
	p.ack(5)
	want(t, "blocked again", fmt.Sprint(p.frames()), "[]")
	p.wire.open()
	s.run()
	want(t, "the rest, once", fmt.Sprint(p.frames()), "[event 9 event 10]")
	p.ack(10)
	want(t, "at the end", fmt.Sprint(p.frames(), s.room.waiting), "[] []")
}

// Whose position has left the history while its window was full is reset, once it
// can be sent something, and begins a new window.
func TestMemberWithAFullWindowIsResetWhenItsHistoryIsGone(t *testing.T) {
	kind := orders
	kind.History.Events = 20
	s := newStage(t, kind)
	p, author := s.peer("p", 100), s.peer("author", 100)
	p.join()
	for i := range 60 {
		want(t, "publish", s.offered(author, "order"), "accepted")
		s.broker.kept = uint64(max(0, i-19))
	}
	want(t, "a window", fmt.Sprint(p.frames()), "[event 1 event 2 event 3 event 4]")
	p.ack(2)
	want(t, "reset", fmt.Sprint(p.frames()), "[reset overflow 60]")
	p.ack(3) // void
	for range 5 {
		s.offered(author, "order")
	}
	want(t, "a new window", fmt.Sprint(p.frames()), "[event 61 event 62 event 63 event 64]")
}

// offered publishes for one who is no member.
func (s *stage) offered(p *peer, name string) string {
	d, _ := codec.MakeData(codec.JSON, []byte("1"))
	a, policy := &answer{}, s.room.cfg.Policy.Event(name)
	m := &message.Publish{By: a, Topic: testTopic, Event: name, Policy: policy, Data: d, Subject: p.name}
	s.room.mb.Post(policy.Lane, m.Item(message.NewCoalescer(), s.now))
	s.run()
	return a.String()
}

// Members acknowledge, block, go and come back from what they have acknowledged, at
// random: nobody is sent more than the window beyond that, everything comes in
// order and once a membership, and all goes on as long as it is acknowledged.
func TestWindowsAtRandom(t *testing.T) {
	for seed := range uint64(24) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := newStage(t, orders)
		s.broker.byHand = seed%3 == 0
		read := func() {
			reads := s.broker.reads
			s.broker.reads = nil
			for _, answer := range reads {
				answer()
			}
			s.run()
		}
		author := s.peer("author", 100)
		must := map[uint64]bool{} // offsets that are to be acknowledged
		head := uint64(0)
		type client struct {
			*peer
			got, acked uint64
		}
		var clients []*client
		check := func(c *client) {
			for _, f := range c.frames() {
				var offset uint64
				switch {
				case f == "ping", f == "parted":
				case strings.HasPrefix(f, "joined "):
					if fmt.Sscanf(f, "joined %d", &offset); offset != c.got {
						t.Fatalf("seed %d: %s is at %d: %s", seed, c.name, c.got, f)
					}
				default:
					if n, _ := fmt.Sscanf(f, "event %d", &offset); n != 1 || offset != c.got+1 {
						t.Fatalf("seed %d: %s is at %d: %s", seed, c.name, c.got, f)
					}
					c.got = offset
				}
			}
			open := 0
			for o := c.acked + 1; o <= c.got; o++ {
				if must[o] {
					open++
				}
			}
			if open > 4 {
				t.Fatalf("seed %d: %s has %d open", seed, c.name, open)
			}
		}
		for i := range 4 {
			c := &client{peer: s.peer(fmt.Sprint("c", i), 3+random.IntN(10))}
			c.join(codec.Position{Epoch: "e0"})
			read()
			clients = append(clients, c)
		}
		for range 150 {
			c := clients[random.IntN(len(clients))]
			switch n := random.IntN(12); {
			case n < 4:
				for range 1 + random.IntN(4) {
					name := []string{"order", "order", "note", "ping"}[random.IntN(4)]
					s.offered(author, name)
					if name != "ping" {
						head++
						must[head] = name == "order"
					}
				}
			case n < 8:
				if c.got > c.acked {
					c.acked += 1 + random.Uint64N(c.got-c.acked)
				}
				c.ack(c.acked)
			case n < 9:
				c.ack(head + 1 + random.Uint64N(3)) // what nobody was sent
			case n < 10:
				c.wire.full = true
			case n < 11:
				c.wire.open()
			default:
				c.wire.open()
				s.run()
				check(c)
				c.got = c.acked
				c.post(c.joining(codec.Position{Epoch: "e0", Offset: c.acked}))
			}
			if random.IntN(2) == 0 {
				read()
			}
			s.run()
			check(c)
		}
		for _, c := range clients {
			c.wire.open()
			for round := 0; c.got < head; round++ {
				if round > int(head)+10 {
					t.Fatalf("seed %d: %s stays at %d of %d", seed, c.name, c.got, head)
				}
				s.run()
				read()
				check(c)
				c.acked = c.got
				c.ack(c.acked)
				check(c)
			}
		}
	}
}
