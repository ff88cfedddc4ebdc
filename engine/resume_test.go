package engine

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/bridge"
	membridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// held is a broker whose answers wait for the test.
type held struct {
	bridge.Broker
	subscribe, read chan struct{} // nil: not held; else each answer waits until it is closed
	asked           chan struct{} // gets one for each read that is held
}

func (h *held) Read(topic codec.Topic, r bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	h.Broker.Read(topic, r, func(p bridge.Page, err *codec.Error) { after(h.read, func() { done(p, err) }) })
	if h.read != nil {
		h.asked <- struct{}{}
	}
}

func (h *held) Subscribe(topic codec.Topic, s bridge.Sink) {
	after(h.subscribe, func() { h.Broker.Subscribe(topic, s) })
}

func after(gate chan struct{}, do func()) {
	if gate == nil {
		do()
		return
	}
	go func() { <-gate; do() }()
}

// Source: https://github.com/dunglas/mercure/issues/178 and .../issues/179
func TestB028_WhatComesBetweenTheReadAndTheJoinIsNotLost(t *testing.T) {
	t.Run("one by one", func(t *testing.T) {
		inner := membridge.New(membridge.Config{})
		t.Cleanup(inner.Close)
		broker := &held{Broker: inner, read: make(chan struct{}), asked: make(chan struct{}, 10)}
		e := start(t, func(c *Config) { c.Broker = broker })
		var epoch string
		for range 50 { // more than a room holds by itself
			epoch = e.publish(t, "acme", "chat:1", "message", 0).Position.Epoch
		}
		c := join(t, e, "acme/alice")
		c.send(fmt.Sprintf(`{"t":"join","id":7,"room":"chat:1","epoch":%q,"offset":2}`, epoch))
		<-broker.asked
		for range 3 {
			e.publish(t, "acme", "chat:1", "message", 0)
		}
		close(broker.read)
		if f := c.until("reply"); f.at("ok.recovered") != true || fmt.Sprint(f.at("ok.offset")) != "2" {
			t.Fatalf("join: %v", f)
		}
		for i := uint64(3); i <= 53; i++ {
			if f := c.next(); f.offset() != i {
				t.Fatalf("want event %d: %v", i, f)
			}
		}
	})
	for name, broker := range brokers(3) {
		t.Run("under full speed over "+name, func(t *testing.T) {
			const clients, runs, kept = 6, 30, 30_000
			b := broker(t)
			if b != nil {
				t.Cleanup(b.Close)
			}
			e := start(t, func(c *Config) { c.Broker = b; c.Kinds = []room.Kind{roomy(kept)} })
			ctx, stop := context.WithCancel(t.Context())
			var publisher, readers sync.WaitGroup
			for range 4 {
				publisher.Go(func() {
					for n := 0; n < kept/4 && ctx.Err() == nil; n++ {
						e.Publish(ctx, Event{Tenant: "acme", Room: "chat:1", Name: "message"}) // its reply may be lost
					}
				})
			}
			for i := range clients {
				a := newAudit(t, e, fmt.Sprint("acme/m", i), codec.Codec(i%2), memory.Options{Window: 2 << 10})
				readers.Go(func() {
					a.dial("chat:1")
					for run := range runs {
						for seen := a.events; a.events < seen+run && !a.failed; {
							if f, ok := a.recv(); ok {
								a.frame(f)
							}
						}
						a.cut()
						a.dial()
					}
					a.cut()
					if len(a.resets) > 0 {
						t.Errorf("resets %v, though everything is kept", a.resets)
					}
				})
			}
			readers.Wait()
			stop()
			publisher.Wait()
		})
	}
}

// Source: https://github.com/dunglas/mercure/issues/1321 and .../issues/704
func TestB029_APositionThatIsUnknownIsToldSo(t *testing.T) {
	for _, c := range []struct {
		name, fields string // EPOCH stands for the room's own
		want         string // recovered, reset, offset; or the code
		next         uint64
	}{
		{"an epoch that never was", `"epoch":"does-not-exist","offset":3`, "false epoch 5", 6},
		{"an epoch that never was, from the beginning", `"epoch":"does-not-exist","offset":0`, "false epoch 5", 6},
		{"beyond the newest", `"epoch":"EPOCH","offset":99`, "false epoch 5", 6},
		{"one beyond the newest", `"epoch":"EPOCH","offset":6`, "false epoch 5", 6},
		{"the newest", `"epoch":"EPOCH","offset":5`, "true <nil> 5", 6},
		{"the beginning", `"epoch":"EPOCH","offset":0`, "true <nil> 0", 1},
		{"below zero", `"epoch":"EPOCH","offset":-1`, "bad_request", 0},
		{"no number", `"epoch":"EPOCH","offset":"5x"`, "bad_request", 0},
		{"no epoch", `"offset":5`, "bad_request", 0},
		{"no offset", `"epoch":"EPOCH"`, "bad_request", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, nil)
			var p codec.Position
			for range 5 {
				p = e.publish(t, "acme", "chat:1", "message", 0).Position
			}
			alice := join(t, e, "acme/alice")
			r, _ := alice.ask(`{"t":"join","room":"chat:1",` + strings.ReplaceAll(c.fields, "EPOCH", p.Epoch) + `}`)
			got := fmt.Sprint(r.at("ok.recovered"), " ", r.at("ok.reset"), " ", r.at("ok.offset"))
			if code := r.at("err.code"); code != nil {
				got = fmt.Sprint(code)
			}
			if got != c.want {
				t.Fatalf("%s, want %s: %v", got, c.want, r)
			}
			if c.next == 0 {
				return
			}
			if epoch := r.at("ok.epoch"); epoch != p.Epoch {
				t.Fatalf("epoch %v, the room's is %s", epoch, p.Epoch)
			}
			e.publish(t, "acme", "chat:1", "message", 0)
			for next := c.next; next <= 6; next++ {
				if f := alice.next(); f.offset() != next {
					t.Fatalf("want event %d: %v", next, f)
				}
			}
		})
	}
}

// Source: https://github.com/centrifugal/centrifugo/issues/230
func TestB032_WhoMissedNothingRecovers(t *testing.T) {
	for _, events := range []int{0, 1} {
		for _, away := range []time.Duration{time.Second, 2 * time.Minute, 20 * time.Minute} {
			t.Run(fmt.Sprint(events, " events, away for ", away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kind := roomy(100)
					kind.History.Age = time.Minute
					e := start(t, func(c *Config) { c.Kinds = []room.Kind{kind} })
					c := dial(t, e, codec.JSON, memory.Options{})
					w := c.hello("acme/alice", "chat:1")
					epoch, offset := w.at("rooms.0.ok.epoch"), w.at("rooms.0.ok.offset")
					for range events {
						e.publish(t, "acme", "chat:1", "message", 0)
						f := c.until("event")
						epoch, offset = f["epoch"], f["offset"]
					}
					c.conn.Cut()
					<-c.conn.Done()
					time.Sleep(away)
					c = dial(t, e, codec.JSON, memory.Options{})
					w = c.hello("acme/alice", fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":%v}`, epoch, offset))
					if w.at("rooms.0.ok.recovered") != true {
						t.Fatalf("nothing was missed: %v", w.at("rooms.0"))
					}
					e.publish(t, "acme", "chat:1", "message", 0)
					if f := c.until("event"); f.offset() != uint64(events+1) || f["epoch"] != epoch {
						t.Fatalf("next event: %v", f)
					}
				})
			})
		}
	}
	t.Run("and who missed what has expired does not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			kind := roomy(100)
			kind.History.Age = time.Minute
			e := start(t, func(c *Config) { c.Kinds = []room.Kind{kind} })
			c := dial(t, e, codec.JSON, memory.Options{})
			w := c.hello("acme/alice", "chat:1")
			c.conn.Cut()
			<-c.conn.Done()
			e.publish(t, "acme", "chat:1", "message", 0)
			time.Sleep(2 * time.Minute)
			c = dial(t, e, codec.JSON, memory.Options{})
			w = c.hello("acme/alice", fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":0}`, w.at("rooms.0.ok.epoch")))
			if w.at("rooms.0.ok.recovered") != false || w.at("rooms.0.ok.reset") != "expired" || fmt.Sprint(w.at("rooms.0.ok.offset")) != "1" {
				t.Fatalf("an event was missed and is gone: %v", w.at("rooms.0"))
			}
		})
	})
}

// Source: https://github.com/centrifugal/centrifuge-dart/issues/142
func TestB034_LeavingAndJoiningFromAPositionRepeatsNothing(t *testing.T) {
	for name, broker := range brokers(2) {
		t.Run(name, func(t *testing.T) {
			const events, every = 300, 7
			b := broker(t)
			if b != nil {
				t.Cleanup(b.Close)
			}
			e := start(t, func(c *Config) { c.Broker, c.Kinds = b, []room.Kind{roomy(events)} })
			a := newAudit(t, e, "acme/alice", codec.JSON, memory.Options{})
			a.dial("chat:1")
			var publisher sync.WaitGroup
			publisher.Go(func() {
				for range events {
					e.TryPublish(Event{Tenant: "acme", Room: "chat:1", Name: "message"})
					runtime.Gosched()
				}
			})
			last := uint64(0)
			for last < events && !a.failed {
				f, ok := a.recv()
				if !ok {
					break
				}
				// What still comes of the old membership is not looked at: the client
				// has said that it leaves.
				stale := len(a.asked) > 0 && f.t() == "event"
				m := a.rooms["chat:1"]
				a.frame(f)
				if f.t() != "event" || stale {
					continue
				}
				if f.offset() != last+1 {
					t.Fatalf("event %d after %d", f.offset(), last)
				}
				if last = f.offset(); last%every == 0 {
					a.ask("leave", "chat:1", "")
					a.resume("chat:1", m.pos)
				}
			}
			publisher.Wait()
			a.cut()
		})
	}
}

// Source: https://github.com/centrifugal/centrifuge-go/issues/159 and .../issues/160
func TestB036_APositionOfAnotherHistoryIsNeverServed(t *testing.T) {
	before := start(t, nil)
	var a codec.Position
	for range 7 {
		a = before.publish(t, "acme", "chat:1", "message", "before").Position
	}
	e := start(t, nil) // what was kept is gone
	var b codec.Position
	for range 10 {
		b = e.publish(t, "acme", "chat:1", "message", "after").Position
	}
	for _, c := range []struct {
		name, fields string
		want         string
	}{
		{"of the old history", fmt.Sprintf(`"epoch":%q,"offset":7`, a.Epoch), "false epoch 10"},
		{"of the old history, from the beginning", fmt.Sprintf(`"epoch":%q,"offset":0`, a.Epoch), "false epoch 10"},
		{"of this one", fmt.Sprintf(`"epoch":%q,"offset":7`, b.Epoch), "true <nil> 7"},
	} {
		alice := join(t, e, "acme/alice")
		r, _ := alice.ask(fmt.Sprintf(`{"t":"join","room":"chat:1",%s}`, c.fields))
		if got := fmt.Sprint(r.at("ok.recovered"), " ", r.at("ok.reset"), " ", r.at("ok.offset")); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		r, before := alice.ask(`{"t":"leave","room":"chat:1"}`)
		if c.want[0] == 'f' && len(before) > 0 || r.at("err") != nil {
			t.Errorf("%s: served %v", c.name, before)
		}
	}
	alice := join(t, e, "acme/alice")
	if r, _ := alice.ask(`{"t":"join","room":"chat:1","offset":7}`); r.at("err.code") != "bad_request" {
		t.Errorf("an offset without its epoch: %v", r)
	}
}

// Source: https://github.com/centrifugal/centrifuge/issues/119
func TestB045_EventsThatAreNotKeptMoveNoPosition(t *testing.T) {
	e := start(t, nil)
	a := newAudit(t, e, "acme/alice", codec.JSON, memory.Options{})
	a.dial("chat:1")
	for round := range 5 {
		for _, name := range []string{"typing", "message", "cursor", "news", "message", "typing", "news"} {
			e.publish(t, "acme", "chat:1", name, map[string]int{})
		}
		for seen := a.events; a.events < seen+7 && !a.failed; {
			if f, ok := a.recv(); ok {
				a.frame(f)
			}
		}
		if pos := a.rooms["chat:1"].pos; pos.Offset != uint64(2*(round+1)) {
			t.Fatalf("round %d: at %v", round, pos)
		}
		a.cut()
		a.dial() // which the audit holds to be recovered at that position
		if a.failed || len(a.resets) > 0 {
			t.Fatalf("round %d: resets %v", round, a.resets)
		}
	}
	a.cut()
}
