package redis_test

import (
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

func prefixed(prefix string) func(*redis.Config) {
	return func(c *redis.Config) { c.KeyPrefix, c.ChannelPrefix = prefix, prefix }
}

// A room that cannot be written spoils none of those that go in one call with it: they are
// accepted, each of their events once.
func TestARoomThatCannotBeWrittenSpoilsNoOther(t *testing.T) {
	s := server.Start(t)
	b := open(t, s.Address(), prefixed("g:"))
	const rooms, broken = 8, 5
	answers := make([]chan bridge.Published, rooms)
	publish := func(i int) {
		answers[i] = make(chan bridge.Published, 1)
		e := benchEvent(codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", i)})
		b.Publish(e.Topic, benchRetention, []bridge.Publication{{Event: e, Buffered: true}}, func(p []bridge.Published) { answers[i] <- p[0] })
	}
	publish(broken)
	<-answers[broken]
	s.Do("SET", fmt.Sprintf("g:buffer:acme:chat:%d", broken), "no history")
	s.Pause() // whatever comes after the first two goes together
	for i := range rooms {
		publish(i)
	}
	s.Resume()
	for i, answer := range answers {
		switch p := <-answer; {
		case i == broken:
			if p.Err == nil {
				t.Errorf("room %d: %+v", i, p)
			}
		case p.Err != nil || p.Position.Offset != 1:
			t.Errorf("room %d: %+v", i, p)
		default:
			if n := s.Do("ZCARD", fmt.Sprintf("g:buffer:acme:chat:%d", i)); n != "1" {
				t.Errorf("room %d has %s events", i, n)
			}
		}
	}
}

// Every message of an epoch names the one before and its end, not only the first.
func TestEveryMessageNamesThePastEpoch(t *testing.T) {
	s := server.Start(t)
	b := open(t, s.Address(), prefixed("p:"))
	e := benchEvent(codec.Topic{Tenant: "acme", Room: "chat:1"})
	ready := make(chan struct{}, 1)
	b.Subscribe(e.Topic, visitor{ready})
	<-ready
	publish := func() codec.Position {
		answer := make(chan bridge.Published, 1)
		b.Publish(e.Topic, benchRetention, []bridge.Publication{{Event: e, Buffered: true}}, func(p []bridge.Published) { answer <- p[0] })
		p := <-answer
		if p.Err != nil {
			t.Fatal(p.Err)
		}
		return p.Position
	}
	publish()
	before := publish()
	s.Do("HSET", "p:meta:acme:chat:1", "o", "1") // the server has lost one
	client := goredis.NewClient(&goredis.Options{Addr: s.Address(), Protocol: 2})
	defer func() { _ = client.Close() }() // the server is the test's
	raw := client.Subscribe(t.Context(), "p:room:acme:chat:1")
	if _, err := raw.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		now := publish()
		if now.Epoch == before.Epoch {
			t.Fatalf("the epoch is the same: %v", now)
		}
		m, err := raw.ReceiveMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(m.Payload, "\n")
		if want := before.Epoch + " 1"; !strings.HasSuffix(line, want) {
			t.Errorf("message %d begins %q, which does not end in %q", n, line, want)
		}
	}
}

// Heads that are read together are each that of its own topic.
func TestHeadsOfManyTopicsAreReadTogether(t *testing.T) {
	s := server.Start(t)
	b := open(t, s.Address(), prefixed("h:"))
	const rooms = 12
	topics, heads := make([]codec.Topic, rooms), make([]codec.Position, rooms)
	for i := range topics {
		topics[i] = codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", i)}
		batch := make([]bridge.Publication, i+1)
		for n := range batch {
			batch[n] = bridge.Publication{Event: benchEvent(topics[i]), Buffered: true}
		}
		answer := make(chan bridge.Published, 1)
		b.Publish(topics[i], benchRetention, batch, func(p []bridge.Published) { answer <- p[i] })
		heads[i] = (<-answer).Position
	}
	s.Do("CONFIG", "RESETSTAT")
	s.Pause()
	answers := make([]chan bridge.Page, rooms)
	for i := range topics {
		answers[i] = make(chan bridge.Page, 1)
		b.Read(topics[i], bridge.ReadRequest{Since: heads[i], HasSince: true}, func(p bridge.Page, err *codec.Error) {
			if err != nil {
				t.Error(err)
			}
			answers[i] <- p
		})
	}
	s.Resume()
	for i, answer := range answers {
		if p := <-answer; p.Head != heads[i] || p.Reset != codec.ResetNone {
			t.Errorf("room %d: %+v, not at %v", i, p, heads[i])
		}
	}
	if n := calls(t, s); n > 6 {
		t.Errorf("%d calls", n)
	}
}
