package redis_test

import (
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// A failover resets exactly those who saw what was lost, and one that lost nothing
// resets nobody.
func TestAFailoverResetsWhoSawLostEvents(t *testing.T) {
	for _, c := range []struct {
		name string
		lost int // events that the replica did not get
	}{{"nothing was lost", 0}, {"two events were lost", 2}} {
		t.Run(c.name, func(t *testing.T) {
			old, replica := server.Start(t), server.Start(t)
			replica.Replicate(old)
			p := server.NewProxy(t, old.Address())
			a := node(t, p.Address())
			saw := follow(t, a, room)
			at := fill(t, a, room, 3) // on both
			replica.CatchUp(old)
			replica.Promote() // and from now on the old one is alone
			var last codec.Position
			if c.lost > 0 {
				last = fill(t, a, room, c.lost)
				reach(t, saw, last.Offset)
			}
			reach(t, saw, 3)
			p.Redirect(replica.Address())
			p.Cut()
			until(t, a, bridge.Up)
			after := fill(t, a, room, 2)
			meet(t, saw, "the new epoch", func(p codec.Position, _ int) bool { return p == after })
			if after.Epoch == at.Epoch {
				t.Error("the epoch is the same")
			}
			if got, want := len(saw.Resets()), min(c.lost, 1); got != want {
				t.Errorf("who saw %v was reset %d times, want %d: %v", last, got, want, saw.Resets())
			}
			// Whoever was away with a position of before.
			if page := since(t, a, room, at); page.Reset != codec.ResetNone || len(page.Events) != 2 {
				t.Errorf("since %v: reset %v, %d events", at, page.Reset, len(page.Events))
			}
			if c.lost > 0 {
				if page := since(t, a, room, last); page.Reset != codec.ResetEpoch {
					t.Errorf("since %v, which was lost: reset %v", last, page.Reset)
				}
			}
			if c.lost == 0 {
				whole(t, saw, 0, 5)
			}
		})
	}
}

// Where nothing is published after a change of servers nothing can be lost with the next
// one either: who has read meanwhile, and was told of nothing, goes on.
func TestWhoReadsBetweenTwoFailoversGoesOn(t *testing.T) {
	for _, c := range []struct {
		name string
		lost int // events that the replica did not get
	}{{"nothing was lost", 0}, {"an event was lost", 1}} {
		t.Run(c.name, func(t *testing.T) {
			old, replica := server.Start(t), server.Start(t)
			p := server.NewProxy(t, old.Address())
			a := node(t, p.Address())
			saw := follow(t, a, room)
			at := fill(t, a, room, 3)
			reach(t, saw, 3)
			replica.Replicate(old) // the first replica: the primary takes another id
			replica.CatchUp(old)
			replica.Promote() // what happens on the old one from now on is lost
			p.Refuse(true)
			p.CutLinks()
			until(t, a, bridge.Down)
			p.Refuse(false) // whoever follows compares, and reads
			until(t, a, bridge.Up)
			last := since(t, a, room, at).Head
			if last != at {
				t.Errorf("nothing happened at %v, and it is %v", at, last)
			}
			if c.lost > 0 {
				last = fill(t, a, room, c.lost)
				reach(t, saw, last.Offset)
			}
			p.Redirect(replica.Address())
			p.Cut()
			until(t, a, bridge.Up)
			if c.lost == 0 {
				if page := since(t, a, room, last); page.Reset != codec.ResetNone {
					t.Errorf("who was at %v is reset: %+v", last, page)
				}
			}
			after := fill(t, a, room, 2)
			meet(t, saw, "the new epoch", func(p codec.Position, _ int) bool { return p == after })
			if page := since(t, a, room, at); page.Reset != codec.ResetNone || len(page.Events) != 2 {
				t.Errorf("since %v: %+v", at, page)
			}
			if page := since(t, a, room, last); (page.Reset == codec.ResetEpoch) != (c.lost > 0) {
				t.Errorf("since %v: %+v", last, page)
			}
			if got := len(saw.Resets()); got != c.lost {
				t.Errorf("reset %d times: %v", got, saw.Resets())
			}
		})
	}
}

// What is published again and was taken before changes no more than a reader does: no epoch
// begins, which the next failover could lose.
func TestWhoRepeatsBetweenTwoFailoversGoesOn(t *testing.T) {
	old, replica := server.Start(t), server.Start(t)
	p := server.NewProxy(t, old.Address())
	a := node(t, p.Address())
	saw := follow(t, a, room)
	fill(t, a, room, 2)
	again := kept(room)
	at := accept(t, a, room, again)[0].Position
	reach(t, saw, 3)
	replica.Replicate(old) // the first replica: the primary takes another id
	replica.CatchUp(old)
	replica.Promote() // what happens on the old one from now on is lost
	for range 2 {
		if got := accept(t, a, room, again)[0]; !got.Duplicate || got.Position != at {
			t.Fatalf("%+v after %v", got, at)
		}
	}
	if last := since(t, a, room, at).Head; last != at {
		t.Errorf("nothing happened at %v, and it is %v", at, last)
	}
	p.Redirect(replica.Address())
	p.Cut()
	until(t, a, bridge.Down)
	until(t, a, bridge.Up)
	if got := accept(t, a, room, again, kept(room)); !got[0].Duplicate || got[1].Position.Epoch == at.Epoch || got[1].Position.Offset != 4 {
		t.Errorf("%+v after %v", got, at)
	}
	reach(t, saw, 4)
	if got := saw.Resets(); len(got) > 0 {
		t.Errorf("reset: %v", got)
	}
}

// A position beyond what a new primary has is of another history, though nobody else says
// so and nothing has been published there.
func TestWhoComesToANewPrimaryWithMoreThanItHasIsReset(t *testing.T) {
	old, replica := server.Start(t), server.Start(t)
	replica.Replicate(old)
	a := node(t, old.Address())
	at := fill(t, a, room, 3)
	replica.CatchUp(old)
	replica.Promote()
	lost := fill(t, a, room, 1)
	b := node(t, replica.Address()) // it has seen nothing of all that
	page := since(t, b, room, lost)
	if page.Reset != codec.ResetEpoch || page.Head.Epoch == lost.Epoch || page.Head.Offset != at.Offset {
		t.Errorf("since %v: %+v", lost, page)
	}
	if page := since(t, b, room, at); page.Reset != codec.ResetNone {
		t.Errorf("since %v: %+v", at, page)
	}
}

// A node that has seen more than there is says so, even where servers cannot be told
// apart.
func TestAClaimIsEnoughForANewEpoch(t *testing.T) {
	s := server.Start(t)
	a := node(t, s.Address())
	f := follow(t, a, room)
	at := fill(t, a, room, 5)
	reach(t, f, 5)
	s.Do("HSET", "pulse:meta:acme:chat:1", "o", "3")
	s.Do("ZREMRANGEBYSCORE", "pulse:buffer:acme:chat:1", "4", "5")
	now := accept(t, a, room, kept(room))[0].Position
	if now.Epoch == at.Epoch || now.Offset != 4 {
		t.Fatalf("%v after %v", now, at)
	}
	meet(t, f, "a reset", func(_ codec.Position, resets int) bool { return resets == 1 })
	three := codec.Position{Epoch: at.Epoch, Offset: 3}
	if page := since(t, a, room, three); page.Reset != codec.ResetNone || len(page.Events) != 1 {
		t.Errorf("since %v: %+v", three, page)
	}
}

// https://github.com/centrifugal/centrifuge/issues/412
func TestB037_TheRecordIsGoneButTheBufferIsNot(t *testing.T) {
	s := server.Start(t)
	a := node(t, s.Address())
	f := follow(t, a, room)
	at := fill(t, a, room, 10)
	reach(t, f, 10)
	s.Do("DEL", "pulse:meta:acme:chat:1")
	now := accept(t, a, room, kept(room))[0].Position
	if now.Epoch == at.Epoch || now.Offset != 1 {
		t.Fatalf("%v after %v", now, at)
	}
	meet(t, f, "a reset", func(_ codec.Position, resets int) bool { return resets == 1 })
	if page := since(t, a, room, at); page.Reset != codec.ResetEpoch {
		t.Errorf("since %v: %+v", at, page)
	}
	if n := s.Do("ZCARD", "pulse:buffer:acme:chat:1"); n != "1" {
		t.Errorf("%s events kept", n)
	}
}

// https://github.com/centrifugal/centrifuge/issues/636
func TestB038_TheBufferIsGoneButTheRecordIsNot(t *testing.T) {
	s := server.Start(t)
	a := node(t, s.Address())
	at := fill(t, a, room, 3)
	s.Do("DEL", "pulse:buffer:acme:chat:1")
	if page := since(t, a, room, at); page.Reset != codec.ResetNone || page.Head != at {
		t.Errorf("who has everything: %+v", page)
	}
	first := codec.Position{Epoch: at.Epoch, Offset: 1}
	if page := since(t, a, room, first); page.Reset != codec.ResetExpired {
		t.Errorf("who lacks two: %+v", page)
	}
	fill(t, a, room, 1)
	if page := since(t, a, room, first); page.Reset != codec.ResetExpired {
		t.Errorf("who lacks two of three: %+v", page)
	}
	if page := since(t, a, room, at); page.Reset != codec.ResetNone || len(page.Events) != 1 {
		t.Errorf("who lacks the one that is there: %+v", page)
	}
}

// A buffer that the server has evicted begins anew, and does not live for ever.
func TestABufferThatWasEvictedGetsItsTimeToLiveAnew(t *testing.T) {
	s := server.Start(t)
	a := node(t, s.Address())
	fill(t, a, room, 3)
	want := s.Do("PTTL", "pulse:buffer:acme:chat:1")
	s.Do("DEL", "pulse:buffer:acme:chat:1")
	fill(t, a, room, 1)
	got := s.Do("PTTL", "pulse:buffer:acme:chat:1")
	if len(got) != len(want) || got[0] != want[0] {
		t.Errorf("it lives for %s ms, and lived for %s", got, want)
	}
}

// The record names the oldest that is kept, at each moment: whoever looks at raw keys
// sees how far back a history goes.
func TestTheRecordNamesTheOldest(t *testing.T) {
	s := server.Start(t)
	a := node(t, s.Address())
	for _, tt := range []struct {
		name   string
		change func(*bridge.Retention)
	}{
		{"by number", func(r *bridge.Retention) { r.Events = 4 }},
		{"by bytes", func(r *bridge.Retention) { r.Bytes = 1000 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			topic := codec.Topic{Tenant: "acme", Room: "chat:" + tt.name[3:]}
			r := plenty
			tt.change(&r)
			for range 12 {
				sent := make(chan []bridge.Published, 1)
				a.Publish(topic, r, []bridge.Publication{kept(topic)}, func(p []bridge.Published) { sent <- p })
				if p := receive(t, sent, "an answer"); p[0].Err != nil {
					t.Fatal(p[0].Err)
				}
				oldest, _, _ := strings.Cut(s.Do("ZRANGE", "pulse:buffer:"+topic.String(), "0", "0"), "|")
				if low := s.Do("HGET", "pulse:meta:"+topic.String(), "low"); low != oldest {
					t.Fatalf("low is %s, the oldest %s", low, oldest)
				}
			}
			if s.Do("ZCARD", "pulse:buffer:"+topic.String()) == "12" {
				t.Error("everything is kept")
			}
		})
	}
}

// https://github.com/socketio/socket.io-redis-streams-adapter/issues/32
func TestB071_ARestartThatLostEverything(t *testing.T) {
	s := server.Start(t)
	a, b := node(t, s.Address()), node(t, s.Address())
	f := follow(t, b, room)
	fill(t, a, room, 9)
	reach(t, f, 9)
	s.Kill()
	until(t, a, bridge.Down)
	until(t, b, bridge.Down)
	s.Restart()
	until(t, a, bridge.Up)
	until(t, b, bridge.Up)
	fill(t, a, room, 2)
	meet(t, f, "a reset and what followed", func(p codec.Position, resets int) bool { return resets == 1 && p.Offset == 2 })
}

// https://github.com/Openpanel-dev/groupmq/issues/16
func TestB068_AServerThatForgetsScripts(t *testing.T) {
	s := server.Start(t)
	a := node(t, s.Address())
	f := follow(t, a, room)
	var answers []<-chan []bridge.Published
	for i := range 300 {
		if i%50 == 0 {
			s.Do("SCRIPT", "FLUSH")
		}
		answers = append(answers, send(a, room, kept(room)))
	}
	for i, w := range answers {
		if got := receive(t, w, "an answer")[0]; got.Err != nil || got.Position.Offset != uint64(i+1) {
			t.Fatalf("publication %d: %+v", i, got)
		}
	}
	whole(t, f, 0, 300)
}

// https://github.com/centrifugal/centrifugo/issues/766
func TestB064_AServerThatIsNoPrimaryAnyMore(t *testing.T) {
	s, other := server.Start(t), server.Start(t)
	b := node(t, s.Address(), func(c *redis.Config) { c.Outage.Wait = -1 })
	at := fill(t, b, room, 1)
	s.Replicate(other)
	got := publish(t, b, room, kept(room))[0]
	if got.Err == nil || got.Err.Code != codec.CodeUnavailable {
		t.Fatalf("%+v", got)
	}
	until(t, b, bridge.Down)
	if why := b.Health().Why; !strings.Contains(why, "primary") {
		t.Errorf("it is down for %q", why)
	}
	s.Promote()
	until(t, b, bridge.Up)
	if now := fill(t, b, room, 1); now.Epoch == at.Epoch {
		t.Errorf("the epoch is the same, though everything was replaced: %v", now)
	}
}

// https://github.com/redis/redis/issues/15824
func TestB148_OffsetsStopWhereNumbersAreNotExact(t *testing.T) {
	s := server.Start(t)
	b := node(t, s.Address())
	f := follow(t, b, room)
	epoch := fill(t, b, room, 1).Epoch
	reach(t, f, 1)
	s.Do("HSET", "pulse:meta:acme:chat:1", "o", "9007199254740988")
	s.Do("DEL", "pulse:buffer:acme:chat:1")
	got := publish(t, b, room, kept(room), kept(room), kept(room), kept(room), kept(room))
	for i, p := range got[:3] {
		if p.Err != nil || p.Position != (codec.Position{Epoch: epoch, Offset: 9007199254740989 + uint64(i)}) {
			t.Fatalf("publication %d: %+v", i, p)
		}
	}
	for i, p := range got[3:] {
		if p.Err == nil || p.Err.Code != codec.CodeInternal {
			t.Fatalf("publication %d, beyond all offsets: %+v", i+3, p)
		}
	}
	page := since(t, b, room, codec.Position{Epoch: epoch, Offset: codec.MaxOffset - 2})
	if len(page.Events) != 2 || page.Events[1].Position.Offset != codec.MaxOffset || page.Head.Offset != codec.MaxOffset {
		t.Fatalf("%+v", page)
	}
}
