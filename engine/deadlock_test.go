package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport/memory"
)

// replies reads until the n requests that were sent are answered, and tells the
// answers by id. One that is answered twice, before a ping that follows is, is a
// failure.
func (c *client) replies(n int) map[int]frame {
	c.t.Helper()
	got := make(map[int]frame, n)
	take := func(f frame) {
		if f.t() != "reply" {
			return
		}
		id, _ := f["id"].(json.Number).Int64()
		if _, ok := got[int(id)]; ok {
			c.t.Errorf("%d is answered twice: %v and %v", id, got[int(id)], f)
		}
		got[int(id)] = f
	}
	for len(got) < n {
		take(c.next())
	}
	c.send(`{"t":"ping","id":777777}`)
	for f := c.next(); f.t() != "pong"; f = c.next() {
		take(f)
	}
	return got
}

// request sends a request with the next id, and does not wait.
func (c *client) request(doc string) int {
	c.t.Helper()
	c.id++
	c.send(fmt.Sprintf(`{"id":%d,%s`, c.id, strings.TrimPrefix(doc, "{")))
	return c.id
}

func TestJoinOfOneRoomTooManyIsRefusedAndTheSessionGoesOn(t *testing.T) {
	e := start(t, func(c *Config) { c.TenantDefaults.MaxRooms = 1 })
	c := join(t, e, "acme/a", "chat:1")
	for range 3 {
		if r, _ := c.ask(`{"t":"join","room":"chat:2"}`); r.at("err.code") != "quota_exceeded" || r.at("err.scope") != "tenant" {
			t.Fatalf("answered %v", r)
		}
	}
	e.publish(t, "acme", "chat:1", "message", 1)
	c.until("event")
	other := dial(t, e, codec.JSON, memory.Options{})
	if w := other.hello("acme/b", "chat:2", "chat:1"); w.at("rooms.0.err.code") != "quota_exceeded" || w.at("rooms.1.ok") == nil {
		t.Errorf("welcome: %v", w)
	}
}

var callbacks = []string{"new", "publish", "join", "leave", "apply", "snapshot", "restore"}

// misbehaving is a kind whose handlers call f with the name of each callback, in
// that callback.
func misbehaving(f func(callback string)) room.Kind {
	return kind("bad", func() room.Handler {
		f("new")
		return &puppet{
			publish:  func(*room.Context, *room.Event) error { f("publish"); return nil },
			join:     func(*room.Context, *room.Member) error { f("join"); return nil },
			leave:    func(*room.Context, *room.Member) { f("leave") },
			apply:    func(*room.Context, *room.Applied) { f("apply") },
			snapshot: func() (any, error) { f("snapshot"); return 0, nil },
			restore:  func(codec.Data, codec.Position) error { f("restore"); return nil },
		}
	})
}

// A handler that panics in a callback, each time: every request has its answer,
// and the tenant's other rooms do not notice.
func TestHandlerThatPanicsInEveryCallback(t *testing.T) {
	for _, where := range callbacks {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var panics atomic.Int64
				e := start(t, func(c *Config) {
					c.Limits.Ping = 24 * time.Hour // rooms are away for long, and nobody answers pings
					c.Kinds = []room.Kind{openKind, misbehaving(func(in string) {
						if in == where || where == "restore" && in == "leave" {
							panics.Add(1)
							panic("handler: " + in)
						}
					})}
				})
				bystander := join(t, e, "acme/b", "chat:1")
				c := join(t, e, "acme/c")
				for range 20 {
					for range 2 {
						c.request(`{"t":"join","room":"bad:1"}`)
						for range 5 {
							c.request(`{"t":"publish","room":"bad:1","event":"message","data":1}`)
						}
						c.request(`{"t":"leave","room":"bad:1"}`)
					}
					c.replies(14)
					e.publish(t, "acme", "chat:1", "message", 1)
					bystander.until("event")
				}
				if panics.Load() == 0 {
					t.Error("nothing panicked")
				}
			})
		})
	}
}

// A room whose handler panics again and again is stopped, and told so; the next
// join makes it anew.
func TestHandlerOverItsLimitStopsItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bad atomic.Bool
		bad.Store(true)
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{misbehaving(func(in string) {
				if in == "publish" && bad.Load() {
					panic("handler")
				}
			})}
		})
		c := join(t, e, "acme/a", "bad:1")
		internal := 0
		for {
			r, before := c.ask(`{"t":"publish","room":"bad:1","event":"message","data":1}`)
			if r.at("err.code") != "internal" {
				if internal != 9 || len(before) != 1 || before[0].t() != "left" || before[0]["reason"] != "stopped" {
					t.Errorf("after %d panics: %v, before it %v", internal, r, before)
				}
				break
			}
			if internal++; internal == 9 {
				if f := c.next(); f.t() != "left" || f["reason"] != "stopped" {
					t.Errorf("over the limit: %v", f)
				}
				break
			}
		}
		bad.Store(false)
		r, _ := c.ask(`{"t":"join","room":"bad:1"}`)
		for r.at("err.retry_after_ms") != nil { // the stopped one is being taken down
			time.Sleep(100 * time.Millisecond)
			r, _ = c.ask(`{"t":"join","room":"bad:1"}`)
		}
		if r["ok"] == nil {
			t.Errorf("joining it anew: %v", r)
		}
		if r, _ := c.ask(`{"t":"publish","room":"bad:1","event":"message","data":1}`); r["ok"] == nil {
			t.Errorf("publishing to it: %v", r)
		}
	})
}

// B131, lightninglabs/wavelength#1123: after a recovered panic the half-changed
// instance went on serving.
func TestB131_AHandlerThatPanickedIsNeverCalledAgain(t *testing.T) {
	for _, where := range callbacks[1:6] {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made atomic.Int64
				var armed atomic.Bool
				e := start(t, func(c *Config) {
					c.Kinds = []room.Kind{kind("bank", func() room.Handler {
						made.Add(1)
						broken := false
						check := func(in string) {
							if broken {
								t.Errorf("%s on an instance that has panicked in %s", in, where)
							}
							if in == where && armed.CompareAndSwap(true, false) {
								broken = true
								panic("half changed")
							}
						}
						return &puppet{
							publish:  func(*room.Context, *room.Event) error { check("publish"); return nil },
							join:     func(*room.Context, *room.Member) error { check("join"); return nil },
							leave:    func(*room.Context, *room.Member) { check("leave") },
							apply:    func(*room.Context, *room.Applied) { check("apply") },
							snapshot: func() (any, error) { check("snapshot"); return 0, nil },
							restore:  func(codec.Data, codec.Position) error { check("restore"); return nil },
						}
					})}
				})
				a, b := join(t, e, "acme/a", "bank:1"), join(t, e, "acme/b", "bank:1")
				armed.Store(true)
				for range 100 { // beyond a snapshot that is taken for the successor
					a.request(`{"t":"publish","room":"bank:1","event":"message","data":1}`)
					if a.id%50 == 0 {
						a.replies(50)
					}
				}
				b.ask(`{"t":"leave","room":"bank:1"}`)
				b.ask(`{"t":"join","room":"bank:1"}`)
				a.ask(`{"t":"publish","room":"bank:1","event":"message","data":1}`)
				if armed.Load() || made.Load() != 2 {
					t.Errorf("armed still: %v; %d instances", armed.Load(), made.Load())
				}
			})
		})
	}
}

// A handler that does not return loses its room after a second: its members are
// told, what waits is answered once, the tenant's other rooms go on meanwhile,
// and the room can be made anew.
func TestHandlerThatDoesNotReturnLosesItsRoom(t *testing.T) {
	for _, where := range callbacks {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var armed, fail atomic.Bool
				e := start(t, func(c *Config) {
					c.Kinds = []room.Kind{openKind, misbehaving(func(in string) {
						if in == where && armed.CompareAndSwap(true, false) {
							<-release
						}
						if in == "publish" && fail.CompareAndSwap(true, false) {
							panic("handler")
						}
					})}
				})
				name := "bad:1"
				member, leaver := join(t, e, "acme/m", name), join(t, e, "acme/l", name)
				publisher, joiner := join(t, e, "acme/p", name), join(t, e, "acme/j")
				other := join(t, e, "acme/o", "chat:1")
				switch where {
				case "new":
					name = "bad:2"
				case "snapshot":
					e.publish(t, "acme", name, "message", 1) // the one that was taken for earlier joins is of the past
				case "restore":
					for range 70 {
						e.publish(t, "acme", name, "message", 1)
					}
					fail.Store(true)
				}
				armed.Store(true)
				began := time.Now()
				publish := fmt.Sprintf(`{"t":"publish","room":%q,"event":"message","data":1}`, name)
				joining := fmt.Sprintf(`{"t":"join","room":%q}`, name)
				switch where {
				case "new", "join", "snapshot":
					joiner.request(joining)
				case "leave":
					leaver.request(`{"t":"leave","room":"bad:1"}`)
				default:
					publisher.request(publish)
				}
				synctest.Wait() // it hangs now
				if where != "leave" {
					leaver.request(`{"t":"leave","room":"bad:1"}`)
				}
				for range 20 {
					publisher.request(publish)
				}
				joiner.request(joining)
				joiner.request(publish)
				embedded := make(chan error, 1)
				go func() {
					_, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: name, Name: "message", Data: 1})
					embedded <- err
				}()
				e.publish(t, "acme", "chat:1", "message", 1)
				other.until("event")
				if took := time.Since(began); took >= time.Second {
					t.Errorf("another room of the tenant waited %v", took)
				}
				if where != "new" {
					if left := member.until("left"); left["reason"] != "stopped" || left["room"] != name {
						t.Errorf("its member is told %v", left)
					}
					if took := time.Since(began); took < time.Second || took > 2*time.Second {
						t.Errorf("its member is told after %v", took)
					}
				}
				publisher.replies(publisher.id)
				joiner.replies(joiner.id)
				leaver.replies(leaver.id)
				<-embedded
				if r, _ := joiner.ask(joining); r["ok"] == nil {
					t.Errorf("a new room of that name: %v", r)
				}
				close(release)
				synctest.Wait() // the old handler is back, and touches nothing
				if r, _ := joiner.ask(publish); r["ok"] == nil {
					t.Errorf("publishing to it: %v", r)
				}
			})
		})
	}
}

// A tenant that has as many handlers that do not return as it may have is refused
// more, at once; nobody else notices, and it goes on when they come back.
func TestTenantWhoseHandlersDoNotReturnIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := start(t, func(c *Config) {
			c.Limits.Workers, c.Limits.HandshakeTimeout = 1, 3*time.Second
			c.Kinds = []room.Kind{openKind, kind("hang", one(&puppet{
				publish: func(*room.Context, *room.Event) error { <-release; return nil },
			}))}
		})
		event := func(tenant, room string) Event { return Event{Tenant: tenant, Room: room, Name: "message", Data: 1} }
		for i := range scheduler.StuckPerTenant {
			if o, err := e.TryPublish(event("bad", fmt.Sprint("hang:", i))); !o.Took() || err != nil {
				t.Fatalf("%v, %v", o, err)
			}
			time.Sleep(2 * time.Second) // until it has been found not to return
		}
		if o, err := e.TryPublish(event("bad", "chat:1")); o != backpressure.Unavailable || err != nil {
			t.Errorf("tried: %v, %v", o, err)
		}
		var refusal *codec.Error
		if _, err := e.Publish(t.Context(), event("bad", "chat:1")); !errors.As(err, &refusal) || refusal.Code != codec.CodeUnavailable {
			t.Errorf("published: %v", err)
		}
		began := time.Now()
		c := join(t, e, "good/a", "chat:1")
		e.publish(t, "good", "chat:1", "message", 1)
		c.until("event")
		if took := time.Since(began); took > 0 {
			t.Errorf("another tenant waited %v", took)
		}
		late := dial(t, e, codec.JSON, memory.Options{})
		late.send(`{"t":"hello","token":"bad/a"}`)
		if code := late.closed(); code != 4500 && code != 1013 {
			t.Errorf("a session of it is closed with %d", code)
		}
		close(release)
		synctest.Wait()
		join(t, e, "bad/a", "chat:1")
		e.publish(t, "bad", "chat:1", "message", 1)
	})
}

// endless is data whose encoding does not return.
type endless chan struct{}

func (e endless) MarshalJSON() ([]byte, error) { <-e; return nil, context.Canceled }

// The encoding of what a handler sends is the handler's own code too: it may
// hang, panic or use the Context.
func TestDataOfAHandlerThatDoesNotEncode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(endless)
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{kind("bad", one(&puppet{
				publish: func(c *room.Context, e *room.Event) error {
					switch string(e.Data.In(codec.JSON)) {
					case `"hangs"`:
						return c.Broadcast("message", release)
					case `"panics"`:
						return c.Send(e.Session, "typing", panics{})
					}
					return c.Broadcast("typing", uses{c})
				},
			}))}
		})
		t.Cleanup(func() { close(release) })
		c := join(t, e, "acme/a", "bad:1")
		if r, _ := c.ask(`{"t":"publish","room":"bad:1","event":"message","data":"panics"}`); r.at("err.code") != "internal" {
			t.Errorf("panics: %v", r)
		}
		if r, _ := c.ask(`{"t":"publish","room":"bad:1","event":"message","data":"uses"}`); r["ok"] == nil {
			t.Errorf("uses the context: %v", r)
		}
		if r, _ := c.ask(`{"t":"publish","room":"bad:1","event":"message","data":"hangs"}`); r.at("err.code") != "unavailable" {
			t.Errorf("hangs: %v", r)
		}
	})
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("encoding") }

type uses struct{ c *room.Context }

func (u uses) MarshalJSON() ([]byte, error) { return json.Marshal(len(u.c.Members())) }

// A handler may fill its own room's mailbox, and others', as far as they go.
func TestHandlerFillsItsOwnMailbox(t *testing.T) {
	var e *Engine
	var offered, refusals atomic.Int64
	e = start(t, func(c *Config) {
		k := kind("own", one(&puppet{
			publish: func(_ *room.Context, ev *room.Event) error {
				if ev.Session == "" {
					return nil
				}
				for _, name := range []string{"own:1", "own:2", "chat:1"} {
					for {
						o, err := e.TryPublish(Event{Tenant: "acme", Room: name, Name: "message", Data: 1})
						if err != nil {
							t.Error(err)
						}
						offered.Add(1)
						if !o.Took() {
							refusals.Add(1)
							break
						}
					}
				}
				return nil
			},
		}))
		k.MailboxItems = 32
		c.Kinds = []room.Kind{openKind, k}
	})
	c := join(t, e, "acme/a", "own:1", "own:2")
	for range 50 {
		c.request(`{"t":"publish","room":"own:1","event":"message","data":1}`)
		c.request(`{"t":"publish","room":"own:2","event":"message","data":1}`)
		if c.id%50 == 0 {
			c.replies(50)
		}
	}
	if refusals.Load() == 0 || offered.Load() < 100 {
		t.Errorf("%d offered, %d refused", offered.Load(), refusals.Load())
	}
}

// A handler that waits for a publish to its own room waits for itself.
func TestHandlerThatWaitsForItsOwnRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *Engine
		told := make(chan error, 1)
		e = start(t, func(c *Config) {
			c.Kinds = []room.Kind{kind("own", one(&puppet{
				publish: func(_ *room.Context, ev *room.Event) error {
					if ev.Session == "" {
						return nil
					}
					_, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "own:1", Name: "message", Data: 1})
					told <- err
					return err
				},
			}))}
		})
		c := join(t, e, "acme/a", "own:1")
		c.request(`{"t":"publish","room":"own:1","event":"message","data":1}`)
		if r := c.replies(1)[1]; r.at("err.code") != "unavailable" {
			t.Errorf("the client's: %v", r)
		}
		if err := <-told; err == nil {
			t.Error("its own publish was accepted")
		}
	})
}

// A handler may broadcast and send without end: to members that do not read, to
// sessions that are not there, events that there are not.
func TestHandlerBroadcastsWildly(t *testing.T) {
	var full atomic.Int64
	e := start(t, func(c *Config) {
		c.Limits.SessionQueueItems = 64
		c.Kinds = []room.Kind{openKind, kind("wild", one(&puppet{
			publish: func(c *room.Context, ev *room.Event) error {
				for _, err := range []error{c.Broadcast("no event", 1), c.Send(ev.Session, "no event", 1)} {
					if !errors.Is(err, room.ErrUnknownEvent) {
						t.Errorf("an event whose name is none: %v", err)
					}
				}
				for i := range 3000 {
					for _, err := range []error{
						c.Broadcast("message", i), c.Broadcast("typing", i),
						c.Send(ev.Session, "typing", i), c.Send("nobody", "typing", i), c.Send(ev.Session, "message", i),
					} {
						if err == room.ErrFull {
							full.Add(1)
						}
					}
				}
				return nil
			},
		}))}
	})
	slow := dial(t, e, codec.JSON, memory.Options{Window: 1 << 10})
	slow.hello("acme/slow", "wild:1")
	c := join(t, e, "acme/a", "wild:1")
	other := join(t, e, "acme/o", "chat:1")
	for range 3 {
		if r, _ := c.ask(`{"t":"publish","room":"wild:1","event":"message","data":1}`); r["ok"] == nil && r.at("err.code") != "backpressured" {
			t.Errorf("answered %v", r)
		}
		e.publish(t, "acme", "chat:1", "message", 1)
		other.until("event")
	}
	if full.Load() == 0 {
		t.Error("nothing bounds what a handler broadcasts")
	}
}

// Each request that is taken on has its reply's place; the one too many is told
// so, and pings pass all the time.
func TestSixtyFourRequestsInFlightAndOneMore(t *testing.T) {
	h := hold(t)
	e := start(t, func(c *Config) { c.Broker = h })
	c := join(t, e, "acme/a", "chat:1")
	for range mailbox.MaxOwed {
		c.request(`{"t":"publish","room":"chat:1","event":"message","data":1}`)
	}
	for range 3 {
		if r, before := c.ask(`{"t":"publish","room":"chat:1","event":"message","data":1}`); r.at("err.code") != "rate_limited" || r.at("err.scope") != "session" || len(before) > 0 {
			t.Fatalf("one too many: %v, before it %v", r, before)
		}
	}
	c.send(`{"t":"ping","id":9}`)
	if f := c.next(); f.t() != "pong" {
		t.Errorf("a ping: %v", f)
	}
	defer h.letGo()()
	got := c.replies(mailbox.MaxOwed)
	for id := 1; id <= mailbox.MaxOwed; id++ {
		if got[id]["ok"] == nil {
			t.Errorf("%d: %v", id, got[id])
		}
	}
	if r, _ := c.ask(`{"t":"publish","room":"chat:1","event":"message","data":1}`); r["ok"] == nil {
		t.Errorf("afterwards: %v", r)
	}
}

// forgetful is a Broker without history, so that a heap measured beside it is the
// engine's own.
type forgetful struct{}

func (forgetful) Publish(codec.Topic, bridge.Retention, []bridge.Publication, func([]bridge.Published)) {
}
func (forgetful) Read(codec.Topic, bridge.ReadRequest, func(bridge.Page, *codec.Error)) {}
func (forgetful) Subscribe(_ codec.Topic, s bridge.Sink) {
	s.Subscribed(codec.Position{Epoch: "e"}, nil)
}
func (forgetful) Unsubscribe(codec.Topic, bridge.Sink) {}
func (forgetful) Attempt(_ codec.Topic, _ bridge.Attempt, done func(bridge.Attempted)) {
	done(bridge.Attempted{Token: 1})
}
func (forgetful) Settle(codec.Topic, bridge.Settlement) {}
func (forgetful) Health() bridge.Health                 { return bridge.Health{State: bridge.Up} }
func (forgetful) Watch(func(bridge.Health)) func()      { return func() {} }
func (forgetful) Close()                                {}
