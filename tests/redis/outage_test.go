package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// The scenario of the specification: publishes go on through a short bounce, and the
// outage is counted once.
func TestShortRedisBounceRecoversTransparentlyAndCounterIncrements(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	a, b := node(t, s.Address()), node(t, s.Address())
	f := follow(t, b, room)
	fill(t, a, room, 3)
	s.Stop()
	until(t, a, bridge.Down)
	until(t, b, bridge.Down)
	waiting := send(a, room, kept(room))
	s.Restart()
	if got := receive(t, waiting, "the answer to what waited"); got[0].Err != nil || got[0].Position.Offset != 4 {
		t.Fatalf("%+v", got[0])
	}
	until(t, a, bridge.Up)
	until(t, b, bridge.Up)
	fill(t, a, room, 3)
	whole(t, f, 0, 7)
	for _, n := range []*redis.Bridge{a, b} {
		if got := n.Counters().ConnectionLost.Load(); got != 1 {
			t.Errorf("%d outages", got)
		}
	}
}

// A node starts though there is no server, says so, and comes good by itself.
func TestStartsWithoutAServer(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	s.Stop()
	b := start(t, s.Address(), func(c *redis.Config) { c.Outage.Wait = time.Second })
	if h := b.Health(); h.State != bridge.Connecting || h.Why == "" {
		t.Errorf("%+v", h)
	}
	if got := publish(t, b, room, kept(room)); got[0].Err == nil || got[0].Err.Code != codec.CodeUnavailable {
		t.Errorf("without a server: %+v", got)
	}
	passing := bridge.Publication{Event: event(room, "p")}
	accept(t, b, room, passing) // nobody else hears it; this node's members have
	f := bridgetest.Follow(b, room)
	if err := f.Until(t.Context(), func(codec.Position, int) bool { return true }); err == nil {
		t.Error("subscribed to nothing")
	}
	s.Restart()
	until(t, b, bridge.Up)
	again := follow(t, b, room)
	fill(t, b, room, 2)
	whole(t, again, 0, 2)
	if got := b.Counters().ConnectionLost.Load(); got != 0 {
		t.Errorf("%d outages before it was ever up", got)
	}
}

// What waits is bounded, by tenant and in all, and fails after its time.
func TestOutageQueueIsBounded(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	b := node(t, s.Address(), func(c *redis.Config) { c.Outage = redis.OutageQueue{Items: 8, Bytes: 1 << 20, Wait: time.Second} })
	s.Pause()
	defer s.Resume()
	// One is taken by each pipeline at once; what follows waits.
	var waits []<-chan []bridge.Published
	codes := map[codec.Code]int{}
	for i := range 12 {
		tenant := codec.Topic{Tenant: fmt.Sprintf("t%d", i/6), Room: "chat:1"}
		waits = append(waits, send(b, tenant, kept(tenant)))
	}
	for _, w := range waits {
		if got := receive(t, w, "an answer")[0]; got.Err != nil {
			codes[got.Err.Code]++
		}
	}
	if codes[codec.CodeBackpressured] != 8 || codes[codec.CodeUnavailable] != 4 {
		t.Errorf("2 tenants with a quarter of 8 each: %v", codes)
	}
}

// https://github.com/redis/ioredis/issues/85
func TestB062_SubscriptionsComeBackAfterAttemptsThatFailed(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--appendonly", "yes")
	p := server.NewProxy(t, s.Address())
	a, b := node(t, s.Address()), node(t, p.Address())
	var followers []*bridgetest.Follower
	topics := make([]codec.Topic, 20)
	for i := range topics {
		topics[i] = codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", i)}
		followers = append(followers, follow(t, b, topics[i]))
	}
	p.Refuse(true)
	p.Cut()
	until(t, b, bridge.Down)
	for _, topic := range topics {
		fill(t, a, topic, 2)
	}
	<-time.After(1500 * time.Millisecond) // some five attempts
	p.Refuse(false)
	until(t, b, bridge.Up)
	for i, f := range followers {
		fill(t, a, topics[i], 1)
		whole(t, f, 0, 3)
	}
	if got := b.Counters().ConnectionLost.Load(); got != 1 {
		t.Errorf("%d outages", got)
	}
}

// https://github.com/redis/go-redis/issues/1070 https://github.com/redis/redis/issues/3559
func TestB063_WhatWasPublishedWhileTheLinkWasCutComesBeforeWhatFollows(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	a, b := node(t, s.Address()), node(t, p.Address())
	f := follow(t, b, room)
	fill(t, a, room, 2)
	reach(t, f, 2)
	p.Refuse(true)
	p.CutLinks()
	until(t, b, bridge.Down)
	fill(t, a, room, 5)
	p.Refuse(false)
	fill(t, a, room, 1)
	whole(t, f, 0, 8)
	until(t, b, bridge.Up)
}

// slowReader is a sink that reads what it missed when it is told to.
type slowReader struct {
	joined chan struct{}
	missed chan codec.Position
}

func (s *slowReader) Subscribed(codec.Position, *codec.Error) { close(s.joined) }
func (s *slowReader) Arrived(bridge.Batch)                    {}
func (s *slowReader) Gap(head codec.Position)                 { s.missed <- head }

// The bridge is up again when what was missed has been read, not when it is known
// that something was.
func TestTheBridgeIsUpWhenGapsAreFilled(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	a, b := node(t, s.Address()), node(t, p.Address())
	sink := &slowReader{joined: make(chan struct{}), missed: make(chan codec.Position, 1)}
	b.Subscribe(room, sink)
	receive(t, sink.joined, "the subscription")
	at := fill(t, a, room, 1)
	p.Refuse(true)
	p.CutLinks()
	until(t, b, bridge.Down)
	fill(t, a, room, 5)
	p.Refuse(false)
	if head := receive(t, sink.missed, "a gap"); head.Offset != 6 {
		t.Fatalf("a gap up to %v", head)
	}
	if h := b.Health(); h.State != bridge.Down {
		t.Errorf("it is %v while five events have yet to be read", h)
	}
	if page := since(t, b, room, at); len(page.Events) != 5 {
		t.Errorf("%d events", len(page.Events))
	}
	until(t, b, bridge.Up)
}

// https://github.com/phoenixframework/phoenix_pubsub_redis/issues/26
// https://github.com/redis/go-redis/issues/379
func TestB052_B053_OneDeliveryANodeHoweverOftenItWasCut(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	nodes := []*redis.Bridge{node(t, p.Address()), node(t, p.Address()), node(t, p.Address())}
	var followers []*bridgetest.Follower
	for _, n := range nodes {
		followers = append(followers, follow(t, n, room))
	}
	channels := s.Do("PUBSUB", "NUMSUB", "pulse:room:acme:chat:1")
	for range 20 {
		p.Cut()
		for _, n := range nodes {
			until(t, n, bridge.Up)
		}
	}
	fill(t, nodes[0], room, 4)
	for _, f := range followers {
		whole(t, f, 0, 4)
	}
	passing := bridge.Publication{Event: event(room, "p")}
	accept(t, nodes[0], room, passing)
	fill(t, nodes[0], room, 1)
	for i, f := range followers {
		reach(t, f, 5)
		if got, want := len(f.Passing()), flag(i > 0); got != want {
			t.Errorf("node %d had what is not kept %d times, want %d", i, got, want)
		}
	}
	if got := s.Do("PUBSUB", "NUMSUB", "pulse:room:acme:chat:1"); got != channels {
		t.Errorf("subscriptions: %q, before %q", got, channels)
	}
	if got := s.Do("PUBSUB", "NUMPAT"); got != "0" {
		t.Errorf("%s patterns", got)
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// https://github.com/redis/go-redis/issues/2339
func TestB054_AReplyThatIsLostLeavesOneEntryAndOneDelivery(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	b := node(t, p.Address())
	f := follow(t, b, room)
	fill(t, b, room, 1)
	for i := range 5 {
		lost := p.Swallow("evalsha")
		pub := kept(room)
		if i%2 == 0 {
			pub.DedupKey = ""
		}
		waiting := send(b, room, pub)
		receive(t, lost, "the reply that is lost")
		got := receive(t, waiting, "the answer")[0]
		if got.Err != nil || got.Duplicate || got.Position.Offset != uint64(i+2) {
			t.Fatalf("%+v", got)
		}
	}
	whole(t, f, 0, 6)
	if n := s.Do("ZCARD", "pulse:buffer:acme:chat:1"); n != "6" {
		t.Errorf("%s entries", n)
	}
}

// https://github.com/redis/go-redis/issues/879
func TestB072_AFrozenServerIsNoticedAndDeliveryGoesOn(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	a, b := node(t, s.Address()), node(t, s.Address())
	f := follow(t, b, room)
	fill(t, a, room, 1)
	s.Pause()
	until(t, b, bridge.Down)
	s.Resume()
	until(t, a, bridge.Up)
	until(t, b, bridge.Up)
	fill(t, a, room, 2)
	whole(t, f, 0, 3)
	if got := b.Counters().ConnectionLost.Load(); got != 1 {
		t.Errorf("%d outages", got)
	}
}

// A link that stands and brings nothing is found out by what the node itself publishes.
func TestALinkThatBringsNothingIsReplaced(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	a, b := node(t, s.Address()), node(t, p.Address())
	f := follow(t, b, room)
	fill(t, a, room, 1)
	reach(t, f, 1)
	p.Hold(true)
	until(t, b, bridge.Down)
	if why := b.Health().Why; why != "what is published does not arrive" {
		t.Errorf("down for %q", why)
	}
	fill(t, a, room, 2)
	p.Hold(false)
	whole(t, f, 0, 3)
	until(t, b, bridge.Up)
	if b.Counters().ProbesMissed.Load() == 0 {
		t.Error("no probe was missed")
	}
}

// https://github.com/StackExchange/StackExchange.Redis/issues/517
func TestB061_ASecondCutInTheMiddleOfSubscribingAnew(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	a, b := node(t, s.Address()), node(t, p.Address())
	const n = 2000
	topics := make([]codec.Topic, n)
	followers := make([]*bridgetest.Follower, n)
	for i := range topics {
		topics[i] = codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", i)}
		followers[i] = bridgetest.Follow(b, topics[i])
		defer followers[i].Close()
		if i%500 == 499 {
			for _, f := range followers[i-499 : i+1] {
				reach(t, f, 0)
			}
		}
	}
	p.CutLinks()
	<-time.After(20 * time.Millisecond)
	p.CutLinks()
	var answers []<-chan []bridge.Published
	for i, topic := range topics {
		answers = append(answers, send(a, topic, kept(topic)))
		if i%500 == 499 {
			for _, w := range answers {
				if got := receive(t, w, "an answer"); got[0].Err != nil {
					t.Fatal(got[0].Err)
				}
			}
			answers = nil
		}
	}
	for _, f := range followers {
		whole(t, f, 0, 1)
	}
	until(t, b, bridge.Up)
}

// A batch is known again by its token alone, whatever numbers are beside it: the token of
// one is the offset of another here.
func TestABatchIsTakenForARepeatByItsTokenAlone(t *testing.T) {
	s := server.Start(t)
	b := node(t, s.Address())
	other := codec.Topic{Tenant: "acme", Room: "chat:2"}
	for i := range 40 {
		for n := range i % 4 { // tokens run ahead of offsets, by more and more
			accept(t, b, other, bridge.Publication{Event: event(other, fmt.Sprint(n)), Buffered: true})
		}
		if got := accept(t, b, room, kept(room))[0]; got.Position.Offset != uint64(i+1) {
			t.Fatalf("publication %d is at %v", i+1, got.Position)
		}
	}
	for i := range 120 { // and offsets ahead of tokens
		accept(t, b, room, kept(room), kept(room))
		if n := read(t, b, room, bridge.ReadRequest{}).Head.Offset; n != uint64(42+2*i) {
			t.Fatalf("%d events, want %d", n, 42+2*i)
		}
	}
}
