package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	membridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// pageOf says what a history reply has: "1 2 3, on from 3", and what else.
func pageOf(f frame) string {
	if code := f.at("err.code"); code != nil {
		return fmt.Sprint(code)
	}
	var offsets []string
	for _, e := range f.at("ok.events").([]any) {
		offsets = append(offsets, fmt.Sprint(e.(map[string]any)["offset"]))
	}
	s := fmt.Sprintf("[%s] on from %v", strings.Join(offsets, " "), f.at("ok.offset"))
	if f.at("ok.more") == true {
		s += ", more"
	}
	if r := f.at("ok.reset"); r != nil {
		s += ", reset " + fmt.Sprint(r)
	}
	return s
}

// The room keeps 5 of 9 events; EPOCH stands for its own.
func TestHistoryPages(t *testing.T) {
	kept := openKind
	kept.History = room.History{Events: 5}
	none := room.Kind{Name: "none", NoHistory: true, Events: map[string]room.EventPolicy{
		"typing": {Delivery: room.Transient, Lane: backpressure.Lossy},
	}}
	e := start(t, func(c *Config) { c.Kinds = []room.Kind{kept, none} })
	epoch := ""
	for i := range 9 {
		epoch = e.publish(t, "acme", "chat:1", "message", i).Position.Epoch
	}
	rooms := e.rooms()
	for _, in := range []codec.Codec{codec.JSON, codec.Msgpack} {
		c := dial(t, e, in, memory.Options{})
		c.hello("acme/alice")
		for _, tt := range []struct{ rule, fields, want string }{
			{"from the oldest kept", `"room":"chat:1"`, "[5 6 7 8 9] on from 9"},
			{"as many as asked for", `"room":"chat:1","limit":2`, "[5 6] on from 6, more"},
			{"after a position", `"room":"chat:1","epoch":"EPOCH","offset":6,"limit":2`, "[7 8] on from 8, more"},
			{"up to the newest", `"room":"chat:1","epoch":"EPOCH","offset":7`, "[8 9] on from 9"},
			{"nothing after the newest", `"room":"chat:1","epoch":"EPOCH","offset":9`, "[] on from 9"},
			{"a limit above 1000 is 1000", `"room":"chat:1","limit":100000`, "[5 6 7 8 9] on from 9"},
			{"a limit under 1", `"room":"chat:1","limit":0`, "bad_request"},
			{"an epoch without an offset", `"room":"chat:1","epoch":"EPOCH"`, "bad_request"},
			{"newest first", `"room":"chat:1","reverse":true`, "[9 8 7 6 5] on from 5"},
			{"newest first, before a position", `"room":"chat:1","reverse":true,"epoch":"EPOCH","offset":8,"limit":2`, "[7 6] on from 6, more"},
			{"nothing before the oldest", `"room":"chat:1","reverse":true,"epoch":"EPOCH","offset":5`, "[] on from 5"},
			{"nor before what is gone", `"room":"chat:1","reverse":true,"epoch":"EPOCH","offset":2`, "[] on from 2"},
			{"what is gone is told, and where the rest begins", `"room":"chat:1","epoch":"EPOCH","offset":3`, "[] on from 4, more, reset expired"},
			{"so is another history", `"room":"chat:1","epoch":"other","offset":7`, "[] on from 4, more, reset epoch"},
			{"and what has not been reached", `"room":"chat:1","epoch":"EPOCH","offset":10`, "[] on from 4, more, reset epoch"},
			{"backwards, too", `"room":"chat:1","reverse":true,"epoch":"other","offset":7`, "[] on from 9, reset epoch"},
			{"a room that never was", `"room":"chat:new"`, "[] on from 0"},
			{"from a position, too", `"room":"chat:new","epoch":"other","offset":7`, "[] on from 0, reset epoch"},
			{"a kind without history", `"room":"none:1"`, "[] on from 0"},
		} {
			f, _ := c.ask(`{"t":"history",` + strings.ReplaceAll(tt.fields, "EPOCH", epoch) + `}`)
			if got := pageOf(f); got != tt.want {
				t.Errorf("%s, %s: %s, want %s", in, tt.rule, got, tt.want)
			}
		}
		f, _ := c.ask(`{"t":"history","room":"chat:1","limit":1}`)
		event := f.at("ok.events.0").(map[string]any)
		var names []string
		for name := range event {
			names = append(names, name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "data eid epoch event offset ts" || event["epoch"] != epoch || fmt.Sprint(event["data"]) != "4" {
			t.Errorf("%s: an event of a page: %v", in, event)
		}
	}
	if e.rooms() != rooms {
		t.Errorf("%d rooms were made", e.rooms()-rooms)
	}
}

// Right, then kind; nothing of the room is needed, and joining it is not.
func TestHistoryIsRefusedInOrder(t *testing.T) {
	e := start(t, func(c *Config) { c.Kinds[0].Name = "chat" })
	e.publish(t, "acme", "chat:1", "message", 1)
	e.publish(t, "other", "chat:1", "message", 1)
	for _, tt := range []struct{ token, room, want string }{
		{`acme/a/[{"rooms":"chat:*","allow":["join","publish"]}]`, "chat:1", "forbidden"},
		{`acme/a/[{"rooms":"chat:*","allow":["join","publish"]}]`, "nosuch", "forbidden"},
		{`acme/a/[{"rooms":"chat:*","allow":["history"]}]`, "chat", "forbidden"},
		{`acme/a/[{"rooms":"*","allow":["history"]}]`, "nosuch", "not_found"},
		{`acme/a/[{"rooms":"chat:*","allow":["history"]}]`, "chat:1", "[1] on from 1"},
		{`third/a`, "chat:1", "[] on from 0"}, // another tenant's room of that name
	} {
		c := dial(t, e, codec.JSON, memory.Options{})
		c.hello(tt.token)
		if f, _ := c.ask(fmt.Sprintf(`{"t":"history","room":%q}`, tt.room)); pageOf(f) != tt.want {
			t.Errorf("%s in %s: %s, want %s", tt.token, tt.room, pageOf(f), tt.want)
		}
	}
}

// A page is cut to max_frame_bytes as its client gets it, and going on page by page
// misses and repeats nothing, in either direction.
func TestHistoryPagesFitAFrame(t *testing.T) {
	kept := openKind
	kept.History = room.History{Events: 1000, Bytes: 64 << 20}
	e := start(t, func(c *Config) {
		c.Kinds = []room.Kind{kept}
		c.Limits.MaxMessageBytes, c.Limits.MaxFrameBytes = 2<<10, 6*2<<10+4<<10
	})
	const events = 300
	for i := range events {
		// Some grow by six on their way to JSON.
		e.publish(t, "acme", "chat:1", "message", strings.Repeat([]string{"\x01", "x", `"`}[i%3], i%300))
	}
	for _, in := range []codec.Codec{codec.JSON, codec.Msgpack} {
		for _, reverse := range []bool{false, true} {
			c := dial(t, e, in, memory.Options{})
			c.hello("acme/alice")
			var got []string
			position, pages := "", 0
			for more := true; more; pages++ {
				c.id++
				c.send(fmt.Sprintf(`{"t":"history","id":%d,"room":"chat:1","limit":1000,"reverse":%v%s}`, c.id, reverse, position))
				raw, err := c.conn.Recv(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(raw) > e.cfg.Limits.MaxFrameBytes {
					t.Fatalf("%s: a frame of %d bytes of %d", in, len(raw), e.cfg.Limits.MaxFrameBytes)
				}
				f := decode(t, in, raw)
				for _, event := range f.at("ok.events").([]any) {
					got = append(got, fmt.Sprint(event.(map[string]any)["offset"]))
				}
				position = fmt.Sprintf(`,"epoch":%q,"offset":%v`, f.at("ok.epoch"), f.at("ok.offset"))
				more = f.at("ok.more") == true
			}
			if reverse {
				slices.Reverse(got)
			}
			for i := range max(len(got), events) {
				if i >= len(got) || got[i] != fmt.Sprint(i+1) {
					t.Fatalf("%s, reverse %v: after %d pages %v", in, reverse, pages, got)
				}
			}
			if pages < 3 {
				t.Errorf("%s: %d pages, too few to show anything", in, pages)
			}
		}
	}
}

// While the bridge is away a page is unavailable, and may be asked for again; a
// client that reads none of its pages is not given more.
func TestHistoryThatCannotBeHad(t *testing.T) {
	inner := membridge.New(membridge.Config{})
	t.Cleanup(inner.Close)
	broker := &held{Broker: inner, read: make(chan struct{}), asked: make(chan struct{}, 10)}
	e := start(t, func(c *Config) { c.Broker = broker })
	c := join(t, e, "acme/alice")
	for id := 1; id <= 3; id++ { // a queue of 1 MiB has place for two frames of 512 KiB
		c.send(fmt.Sprintf(`{"t":"history","id":%d,"room":"chat:1"}`, id))
	}
	if f := c.next(); fmt.Sprint(f["id"]) != "3" || f.at("err.code") != "backpressured" || f.at("err.scope") != "session" || f.at("err.retry_after_ms") == nil {
		t.Fatalf("a third page at once: %v", f)
	}
	<-broker.asked
	<-broker.asked
	close(broker.read)
	for range 2 {
		if f := c.next(); f.at("ok.events") == nil {
			t.Errorf("%v", f)
		}
	}
	inner.Close()
	f, _ := c.ask(`{"t":"history","room":"chat:1"}`)
	if n, _ := f.at("err.retry_after_ms").(json.Number); f.at("err.code") != "unavailable" || n == "" {
		t.Errorf("while the bridge is away: %v", f)
	}
}

// B044, socketio/socket.io-redis-streams-adapter#48: the window of recovery began
// with the connection. An event counts from when it was accepted, however long who
// missed it had been there.
func TestB044_WhatIsKeptCountsFromTheEventAndNotFromTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		clock := make(chan time.Time, 1)
		clock <- now
		inner := membridge.New(membridge.Config{Now: func() time.Time { at := <-clock; clock <- at; return at }})
		t.Cleanup(inner.Close)
		pass := func(d time.Duration) { at := <-clock; clock <- at.Add(d) }
		e := start(t, func(c *Config) {
			c.Broker = inner
			c.Kinds = []room.Kind{{Name: "chat", History: room.History{Age: 120 * time.Second}}}
		})
		c := join(t, e, "acme/alice", "chat:1")
		pass(10 * time.Minute)
		at := e.publish(t, "acme", "chat:1", "message", 1).Position
		c.until("event")
		c.conn.Cut()
		synctest.Wait() // the room keeps for itself what somebody is behind with
		for range 20 {  // more than a room holds by itself
			e.publish(t, "acme", "chat:1", "message", 2)
		}
		for _, tt := range []struct {
			away time.Duration
			want string
		}{{5 * time.Second, "true <nil>"}, {116 * time.Second, "false expired"}} {
			pass(tt.away)
			c := dial(t, e, codec.JSON, memory.Options{})
			w := c.hello("acme/alice", fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":%d}`, at.Epoch, at.Offset))
			if got := fmt.Sprint(w.at("rooms.0.ok.recovered"), " ", w.at("rooms.0.ok.reset")); got != tt.want {
				t.Errorf("after %v: %s, want %s", tt.away, got, tt.want)
			}
			f, _ := c.ask(fmt.Sprintf(`{"t":"history","room":"chat:1","epoch":%q,"offset":%d}`, at.Epoch, at.Offset))
			if reset := f.at("ok.reset"); fmt.Sprint(reset) != strings.Fields(tt.want)[1] {
				t.Errorf("after %v: history %v", tt.away, f)
			}
			c.conn.Cut()
			synctest.Wait()
		}
	})
}

var _ bridge.Broker = (*held)(nil)
