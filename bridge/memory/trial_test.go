package memory_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

func event(topic codec.Topic, eid string, size int) *codec.Event {
	data, err := codec.MakeData(codec.JSON, []byte(`"`+strings.Repeat("x", size)+`"`))
	if err != nil {
		panic(err)
	}
	return codec.NewEvent(topic, "message", data, codec.Origin{EID: eid, From: "alice", Session: "s1", TS: 1})
}

// stepped is a clock that tests move.
type stepped struct {
	mu  sync.Mutex
	now time.Time
}

func (c *stepped) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepped) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// start makes a broker on a stepped clock; when the test ends it is closed and
// must hold nothing.
func start(t *testing.T, config memory.Config) (*memory.Broker, *stepped) {
	t.Helper()
	clock := &stepped{now: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	config.Now = clock.Now
	b := memory.New(config)
	t.Cleanup(func() {
		b.Close()
		if n := b.Used(); n != 0 {
			t.Errorf("%d bytes still charged after Close", n)
		}
	})
	return b, clock
}

func topicOf(tenant, room string) codec.Topic { return codec.Topic{Tenant: tenant, Room: room} }

// The broker calls back before its calls return.

func publish(b *memory.Broker, topic codec.Topic, r bridge.Retention, batch ...bridge.Publication) (got []bridge.Published) {
	b.Publish(topic, r, batch, func(p []bridge.Published) { got = p })
	return got
}

func buffered(topic codec.Topic, size int) bridge.Publication {
	return bridge.Publication{Event: event(topic, "e", size), Buffered: true}
}

func history(t *testing.T, b *memory.Broker, topic codec.Topic) (page bridge.Page) {
	t.Helper()
	b.Read(topic, bridge.ReadRequest{Limit: 1 << 30}, func(p bridge.Page, err *codec.Error) {
		if err != nil {
			t.Fatalf("read %v: %v", topic, err)
		}
		page = p
	})
	return page
}

func since(t *testing.T, b *memory.Broker, topic codec.Topic, at codec.Position) (page bridge.Page) {
	t.Helper()
	b.Read(topic, bridge.ReadRequest{Since: at, HasSince: true, Limit: 1 << 30}, func(p bridge.Page, err *codec.Error) {
		if err != nil {
			t.Fatalf("read %v: %v", topic, err)
		}
		page = p
	})
	return page
}

func code(p bridge.Published) codec.Code {
	if p.Err == nil {
		return 0
	}
	return p.Err.Code
}

// subscribed is a sink that looks at the answer alone.
type subscribed func(*codec.Error)

func (s subscribed) Subscribed(_ codec.Position, err *codec.Error) { s(err) }
func (s subscribed) Arrived(bridge.Batch)                          {}
func (s subscribed) Gap(codec.Position)                            {}
