package redis_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// Of two nodes one had seen what a failover lost: its members are reset, and nobody else.
func TestAFailoverResetsNobodyWhoDidNotSeeLostEvents(t *testing.T) {
	t.Parallel()
	old, replica := server.Start(t), server.Start(t)
	replica.Replicate(old)
	wayA, wayB := server.NewProxy(t, old.Address()), server.NewProxy(t, old.Address())
	a, b := node(t, wayA.Address()), node(t, wayB.Address())
	saw, missed := follow(t, a, room), follow(t, b, room)
	fill(t, a, room, 3)
	reach(t, saw, 3)
	reach(t, missed, 3)
	replica.CatchUp(old)
	replica.Promote()
	wayB.Refuse(true)
	wayB.Cut()
	until(t, b, bridge.Down)
	fill(t, a, room, 2) // lost
	reach(t, saw, 5)
	wayA.Redirect(replica.Address())
	wayB.Redirect(replica.Address())
	wayB.Refuse(false)
	wayA.Cut()
	until(t, a, bridge.Up)
	until(t, b, bridge.Up)
	last := fill(t, b, room, 2)
	meet(t, saw, "the new epoch", func(p codec.Position, _ int) bool { return p == last })
	if n := len(saw.Resets()); n != 1 {
		t.Errorf("who saw what was lost was reset %d times", n)
	}
	whole(t, missed, 0, 5)
}

// Sixteen past epochs are remembered, and of each exactly the positions that it reached.
func TestPositionsOfPastEpochs(t *testing.T) {
	t.Parallel()
	const remembered = 16
	s := server.Start(t)
	b := node(t, s.Address())
	ends := []codec.Position{fill(t, b, room, 2)}
	for i := range remembered + 1 {
		// Written by another server, and what the scripts remember of this one is not there.
		s.Do("HSET", "pulse:meta:acme:chat:1", "r", fmt.Sprint("another server ", i), "k", "")
		ends = append(ends, fill(t, b, room, 2))
	}
	head := ends[len(ends)-1].Offset
	for i, end := range ends {
		want := codec.ResetNone
		if len(ends)-1-i > remembered {
			want = codec.ResetEpoch
		}
		page := since(t, b, room, end)
		if page.Reset != want || want == codec.ResetNone && uint64(len(page.Events)) != head-end.Offset {
			t.Errorf("since %v, %d epochs ago: reset %v, %d events", end, len(ends)-1-i, page.Reset, len(page.Events))
		}
		end.Offset++
		if page := since(t, b, room, end); page.Reset != codec.ResetEpoch {
			t.Errorf("since %v, which was never reached: reset %v", end, page.Reset)
		}
	}
}

// What is only passed on is not sent again when the reply to it is lost.
func TestWhatIsPassedOnIsNeverRepeated(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	a, b := node(t, p.Address()), node(t, s.Address())
	f := follow(t, b, room)
	fill(t, a, room, 1)
	for i := range 3 {
		lost := p.Swallow("room:acme:chat:1")
		for sent := false; !sent; { // what the node refuses since it knows of no server never left it
			until(t, a, bridge.Up)
			publish(t, a, room, bridge.Publication{Event: event(room, fmt.Sprint("p", i))})
			select {
			case <-lost:
				sent = true
			default:
			}
		}
	}
	fill(t, a, room, 1)
	reach(t, f, 2)
	var got []string
	for _, e := range f.Passing() {
		got = append(got, e.EID)
	}
	if fmt.Sprint(got) != "[p0 p1 p2]" {
		t.Errorf("what was passed on arrived as %v", got)
	}
}

// A publication whose time passes while the server is away is refused, and takes no offset.
func TestTimeRunsOutInTheOutageQueue(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	b := node(t, s.Address(), func(c *redis.Config) { c.Outage.Wait = time.Minute })
	fill(t, b, room, 1)
	s.Pause()
	answers := []<-chan []bridge.Published{send(b, room, kept(room))} // under way: the others wait for it
	until(t, b, bridge.Down)
	late := kept(room)
	late.Expires = time.Now().Add(100 * time.Millisecond)
	answers = append(answers, send(b, room, late), send(b, room, kept(room)))
	<-time.After(time.Until(late.Expires))
	s.Resume()
	for i, want := range []struct {
		offset uint64
		code   codec.Code
	}{{2, 0}, {0, codec.CodeExpired}, {3, 0}} {
		got := receive(t, answers[i], "an answer")[0]
		if got.Position.Offset != want.offset || (got.Err == nil) != (want.code == 0) || got.Err != nil && got.Err.Code != want.code {
			t.Errorf("publication %d: %+v, %v", i, got.Position, got.Err)
		}
	}
}

// https://github.com/apache/geode/pull/4705
func TestB055_OnePublishIsOneArrivalWhateverIsFollowed(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	a, b := node(t, s.Address()), node(t, s.Address())
	// One name begins another, and all are followed, some twice on one node.
	names := []codec.Topic{{Tenant: "acme", Room: "chat"}, {Tenant: "acme", Room: "chat:1"}, {Tenant: "acme", Room: "chat:1:2"}, {Tenant: "ac", Room: "chat:1"}}
	for range 2 {
		for _, topic := range names {
			follow(t, b, topic)
		}
	}
	f, other := follow(t, b, names[1]), follow(t, b, names[0])
	fill(t, a, names[1], 5)
	whole(t, f, 0, 5)
	fill(t, a, names[0], 1)
	whole(t, other, 0, 1)
	whole(t, f, 0, 5)
	// What has no position is not told apart from a repeat: it must come once.
	accept(t, a, names[1], bridge.Publication{Event: event(names[1], "p")})
	fill(t, a, names[1], 1)
	reach(t, f, 6)
	if n := len(f.Passing()); n != 1 {
		t.Errorf("one publish arrived %d times", n)
	}
}

// https://github.com/redis/go-redis/issues/3839: what the server sends is cut anywhere.
func TestB057_MessagesInPieces(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	a, b := node(t, s.Address()), node(t, p.Address())
	f := follow(t, b, room)
	n := 0
	for _, size := range []int{1, 3, 4, 5, 6, 8, 13, 15} {
		p.Chop(func() int { return size })
		fill(t, a, room, 20)
		n += 20
		whole(t, f, 0, uint64(n))
	}
	random := rand.New(rand.NewPCG(1, 1))
	p.Chop(func() int { return 1 + random.IntN(40) })
	topics := topicsOf(50)
	var followers []*bridgetest.Follower
	for i := range topics {
		topics[i].Room += ":pieces"
		followers = append(followers, follow(t, b, topics[i]))
	}
	const rounds, each = 5, 40
	for range rounds { // 10,000 in all, of which no more wait at once than may
		for range each {
			for _, topic := range topics {
				send(a, topic, kept(topic))
			}
		}
		for _, topic := range topics {
			fill(t, a, topic, 1)
		}
	}
	for _, f := range followers {
		whole(t, f, 0, rounds*(each+1))
	}
	if gaps := b.Counters().Gaps.Load(); gaps > 0 {
		t.Errorf("%d gaps: something was passed over, and read", gaps)
	}
}
