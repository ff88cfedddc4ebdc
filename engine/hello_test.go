package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	membridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// joiner is an Authenticator: everybody is alice, who may join these rooms.
type joiner []string

func (j joiner) Authenticate(context.Context, auth.Credentials) (*auth.Identity, error) {
	var list []auth.Grant
	for _, rooms := range j {
		list = append(list, auth.Grant{Rooms: rooms, Allow: []auth.Right{auth.Join}})
	}
	grants, err := auth.NewGrants(list...)
	return &auth.Identity{Tenant: "acme", Subject: "alice", Grants: grants}, err
}

func TestHelloAnswersEachRoomInOrder(t *testing.T) {
	for _, in := range []codec.Codec{codec.JSON, codec.Msgpack} {
		e := start(t, func(c *Config) {
			c.Authenticator = joiner{"chat:*", "shy", "none:*"}
			c.Kinds = []room.Kind{{Name: "chat"}, {Name: "shy", New: func() room.Handler {
				return &puppet{join: func(*room.Context, *room.Member) error { return room.Refuse(codec.CodeConflict, "no") }}
			}}}
		})
		c := dial(t, e, in, memory.Options{})
		w := c.hello("any", "chat:1", "shy", "no room!", "none:1", "secret:1", "chat:2", "chat:1", `{"room":"chat:3","presence":true}`)
		want := []string{"chat:1 ", "shy conflict", "no room! bad_request", "none:1 not_found", "secret:1 forbidden", "chat:2 ", "chat:1 ", "chat:3 forbidden"}
		for i, s := range want {
			code := w.at(fmt.Sprint("rooms.", i, ".err.code"))
			if code == nil {
				code = ""
			}
			if got := fmt.Sprint(w.at(fmt.Sprint("rooms.", i, ".room")), " ", code); got != s {
				t.Errorf("%v: room %d: %q, want %q", in, i, got, s)
			}
			if ok := w.at(fmt.Sprint("rooms.", i, ".ok.room")); code == "" && ok == nil {
				t.Errorf("%v: room %d: no result", in, i)
			}
		}
		// Named twice, it is joined once.
		e.publish(t, "acme", "chat:1", "message", 1)
		e.publish(t, "acme", "chat:2", "message", 2)
		c.until("event")
		c.until("event")
		if r, before := c.ask(`{"t":"leave","room":"chat:1"}`); r.at("err") != nil || len(before) > 0 {
			t.Errorf("%v: joined twice: %v", in, before)
		}
		if r, _ := c.ask(`{"t":"leave","room":"chat:1"}`); r.at("err.code") != "not_joined" {
			t.Errorf("%v: left, and still there: %v", in, r)
		}
	}
}

// A room that does not answer within two seconds costs its own result only, and
// when it answers later nobody is in it.
func TestHelloDoesNotWaitForARoomForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := membridge.New(membridge.Config{})
		t.Cleanup(inner.Close)
		broker := &slowRoom{held: held{Broker: inner, subscribe: make(chan struct{})}, name: "slow"}
		census := &census{rooms: map[string][]string{}}
		e := start(t, func(c *Config) {
			c.Broker = broker
			c.Kinds = []room.Kind{{Name: room.Any, New: func() room.Handler { return census }}}
		})
		before := time.Now()
		c := dial(t, e, codec.JSON, memory.Options{})
		w := c.hello("acme/alice", "chat:1", "slow", "chat:2")
		if took := time.Since(before); took < 2*time.Second || took > 2100*time.Millisecond {
			t.Errorf("the welcome came after %v", took)
		}
		if got := fmt.Sprint(w.at("rooms.0.err"), w.at("rooms.1.err.code"), w.at("rooms.2.err")); got != "<nil>unavailable<nil>" || w.at("rooms.1.err.retry_after_ms") == nil {
			t.Errorf("%s: %v", got, w["rooms"])
		}
		close(broker.subscribe)
		census.check(t, e, []string{"slow"}, nil)
		if r, _ := c.ask(`{"t":"publish","room":"slow","event":"message","data":1}`); r.at("err.code") != "not_joined" {
			t.Errorf("publish: %v", r)
		}
		if r, _ := c.ask(`{"t":"join","room":"slow"}`); r.at("err") != nil {
			t.Errorf("join, once it answers: %v", r)
		}
	})
}

// slowRoom holds the subscription of one room.
type slowRoom struct {
	held
	name string
}

func (s *slowRoom) Subscribe(topic codec.Topic, sink bridge.Sink) {
	if topic.Room == s.name {
		s.held.Subscribe(topic, sink)
	} else {
		s.Broker.Subscribe(topic, sink)
	}
}

// A room takes a member just when its session gives the join up: what the room
// sends until it hears of that holds up nothing of other rooms.
func TestHelloThatWasGivenUpHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := membridge.New(membridge.Config{})
		t.Cleanup(inner.Close)
		broker := &slowRoom{held: held{Broker: inner, subscribe: make(chan struct{})}, name: "slow"}
		joining := make(chan struct{})
		e := start(t, func(c *Config) {
			c.Broker = broker
			c.Kinds = []room.Kind{openKind, kind("slow", func() room.Handler {
				return &puppet{join: func(ctx *room.Context, m *room.Member) error {
					<-joining
					return nil
				}}
			})}
		})
		c := dial(t, e, codec.JSON, memory.Options{})
		c.send(`{"t":"hello","token":"acme/alice","rooms":[{"room":"slow"},{"room":"chat:1"}]}`)
		synctest.Wait()
		for range 20 { // so that the room is still busy with them when it could hear of it
			e.TryPublish(Event{Tenant: "acme", Room: "slow", Name: "typing"})
		}
		time.Sleep(1900 * time.Millisecond)
		close(broker.subscribe) // the room begins, and is in Join when the two seconds are over
		time.Sleep(200 * time.Millisecond)
		close(joining)
		if w := c.next(); w.at("rooms.0.err.code") != "unavailable" || w.at("rooms.1.ok") == nil {
			t.Fatalf("welcome: %v", w)
		}
		synctest.Wait()
		e.publish(t, "acme", "chat:1", "typing", 2)
		f := c.next()
		if f["room"] != "chat:1" || f["event"] != "typing" {
			t.Fatalf("after the welcome: %v", f)
		}
	})
}

// Requests that come before the welcome are answered behind it, and a join among
// them keeps its order though its room answers before the hello's rooms do.
func TestRequestsBeforeTheWelcome(t *testing.T) {
	for _, lane := range []backpressure.Lane{backpressure.Interactive, backpressure.Bulk, backpressure.Lossy} {
		synctest.Test(t, func(t *testing.T) {
			inner := membridge.New(membridge.Config{})
			t.Cleanup(inner.Close)
			broker := &slowRoom{held: held{Broker: inner, subscribe: make(chan struct{})}, name: "slow"}
			census := &census{rooms: map[string][]string{}}
			e := start(t, func(c *Config) {
				c.Broker = broker
				c.Kinds = append(crossing(48, census), room.Kind{Name: "slow"})
			})
			a := newAudit(t, e, "acme/alice", codec.JSON, memory.Options{})
			a.c = dial(t, e, codec.JSON, memory.Options{})
			a.c.send(`{"t":"hello","token":"acme/alice","rooms":[{"room":"slow"}]}`)
			name := lane.String()
			a.ask("join", name, "")
			for i, event := range []string{"i", "b", "l", "kept", "i", "b", "l", "kept"} {
				a.ask("publish", name, fmt.Sprintf(`,"event":%q,"data":{"n":%d}`, event, i))
			}
			a.ask("join", name, "")
			a.ask("publish", name, `,"event":"i","data":{"n":9}`)
			a.ask("leave", "slow", "")
			synctest.Wait()
			close(broker.subscribe)
			if w := a.c.next(); w.t() != "welcome" || w.at("rooms.0.ok") == nil {
				t.Fatalf("first: %v", w)
			}
			a.rooms["slow"] = &membership{}
			a.read(0)
			for seen := a.events; a.events < seen+1 && !a.failed && a.events < 1; {
				if f, ok := a.recv(); ok {
					a.frame(f)
				}
			}
		})
	}
}

// A join that the room has no place for is refused, and with its reply the
// membership that it was to replace is over.
func TestASecondJoinThatIsRefusedEndsTheFirst(t *testing.T) {
	synctest.Test(t, secondJoin)
}

func secondJoin(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	full := kind("chat", func() room.Handler {
		return &puppet{publish: func(_ *room.Context, e *room.Event) error {
			if e.Name == "stop" {
				close(inside)
				<-leave
			}
			return nil
		}}
	})
	full.MailboxItems = 1
	e := start(t, func(c *Config) { c.Kinds = []room.Kind{full} })
	c := dial(t, e, codec.JSON, memory.Options{Window: 64})
	c.hello("acme/alice", "chat:1")
	for range 10 { // which wait for the client to read
		e.publish(t, "acme", "chat:1", "message", 0)
	}
	if _, err := e.TryPublish(Event{Tenant: "acme", Room: "chat:1", Name: "stop"}); err != nil {
		t.Fatal(err)
	}
	<-inside
	for {
		o, err := e.TryPublish(Event{Tenant: "acme", Room: "chat:1", Name: "message"})
		if err != nil {
			t.Fatal(err)
		}
		if !o.Took() {
			break
		}
	}
	c.send(`{"t":"join","id":99,"room":"chat:1"}`)
	synctest.Wait() // refused, while the events wait
	r := c.until("reply")
	if r.at("err.code") != "backpressured" || r.at("err.retry_after_ms") == nil {
		t.Fatalf("join: %v", r)
	}
	close(leave)
	for {
		if _, err := e.Publish(t.Context(), Event{Tenant: "acme", Room: "chat:1", Name: "message"}); err == nil {
			break
		}
	}
	r, before := c.ask(`{"t":"publish","room":"chat:1","event":"message","data":1}`)
	if len(before) > 0 || r.at("err.code") != "not_joined" {
		t.Fatalf("no member, and was sent %v; publish: %v", before, r)
	}
}
