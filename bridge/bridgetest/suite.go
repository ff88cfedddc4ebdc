package bridgetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// Options are what a factory has to look at.
type Options struct {
	// Clock is where the broker takes its time from, if it can; see Clock.
	Clock *Clock
}

// Factory makes a fresh broker, whose topics are empty, for one test. The suite
// closes it.
type Factory = func(t *testing.T, o Options) bridge.Broker

// TestBroker is what every Broker must pass. Budgets of at least 16 MiB for a
// tenant and no limit of new rooms are taken for granted.
func TestBroker(t *testing.T, factory Factory) {
	for _, part := range []struct {
		name string
		run  func(t *testing.T, factory Factory)
	}{
		{"order", testOrder},
		{"read", testRead},
		{"reset", testReset},
		{"repeats", testRepeats},
		{"attempts", testAttempts},
		{"retention", testRetention},
		{"subscription", testSubscription},
		{"isolation", testIsolation},
		{"close", testClose},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, factory) })
	}
}

// patience is how long the suite waits for what must come.
const patience = 20 * time.Second

// plenty is a retention that nothing in a test reaches.
var plenty = bridge.Retention{Events: 10_000, Age: time.Hour, Bytes: 16 << 20}

// trial is one test's broker, with its calls made synchronous.
type trial struct {
	*testing.T
	bridge.Broker
	clock *Clock

	mu sync.Mutex
	// guarded by mu
	made int // events so far
}

func begin(t *testing.T, factory Factory) *trial {
	t.Helper()
	clock := newClock()
	b := factory(t, Options{Clock: clock})
	t.Cleanup(b.Close)
	return &trial{T: t, Broker: b, clock: clock}
}

// event makes one with an EID of its own.
func (tr *trial) event(topic codec.Topic, size int) *codec.Event {
	tr.mu.Lock()
	tr.made++
	eid := fmt.Sprintf("e%d", tr.made)
	tr.mu.Unlock()
	data, err := codec.MakeData(codec.JSON, []byte(`"`+strings.Repeat("x", size)+`"`))
	if err != nil {
		tr.Fatal(err)
	}
	return codec.NewEvent(topic, "message", data, codec.Origin{EID: eid, From: "alice", Session: "s1", TS: 1})
}

func (tr *trial) buffered(topic codec.Topic) bridge.Publication {
	return bridge.Publication{Event: tr.event(topic, 8), Buffered: true}
}

func (tr *trial) keyed(topic codec.Topic, key string) bridge.Publication {
	p := tr.buffered(topic)
	p.DedupKey = key
	return p
}

// publish waits for the answer.
func (tr *trial) publish(topic codec.Topic, r bridge.Retention, batch ...bridge.Publication) []bridge.Published {
	tr.Helper()
	answer := make(chan []bridge.Published, 2)
	tr.Publish(topic, r, batch, func(p []bridge.Published) { answer <- p })
	p := receive(tr.T, answer, "the answer to a publish")
	if len(p) != len(batch) {
		tr.Fatalf("%d answers to %d publications", len(p), len(batch))
	}
	return p
}

// accept publishes what must be accepted, and returns it as it was placed.
func (tr *trial) accept(topic codec.Topic, r bridge.Retention, batch ...bridge.Publication) []bridge.Published {
	tr.Helper()
	results := tr.publish(topic, r, batch...)
	for i, p := range results {
		if p.Err != nil {
			tr.Fatalf("publication %d: %v", i, p.Err)
		}
	}
	return results
}

// fill publishes n buffered events, each in a batch of its own.
func (tr *trial) fill(topic codec.Topic, r bridge.Retention, n int) []bridge.Published {
	tr.Helper()
	var all []bridge.Published
	for range n {
		all = append(all, tr.accept(topic, r, tr.buffered(topic))...)
	}
	return all
}

func (tr *trial) read(topic codec.Topic, req bridge.ReadRequest) bridge.Page {
	tr.Helper()
	type answer struct {
		page bridge.Page
		err  *codec.Error
	}
	answers := make(chan answer, 2)
	tr.Read(topic, req, func(p bridge.Page, err *codec.Error) { answers <- answer{p, err} })
	a := receive(tr.T, answers, "a page")
	if a.err != nil {
		tr.Fatalf("read %+v: %v", req, a.err)
	}
	return a.page
}

// all reads the whole history.
func (tr *trial) all(topic codec.Topic) bridge.Page {
	tr.Helper()
	return tr.read(topic, bridge.ReadRequest{Limit: 1 << 20})
}

// head is the topic's newest position.
func (tr *trial) head(topic codec.Topic) codec.Position {
	tr.Helper()
	return tr.read(topic, bridge.ReadRequest{}).Head
}

// since reads everything after p.
func (tr *trial) since(topic codec.Topic, p codec.Position) bridge.Page {
	tr.Helper()
	return tr.read(topic, bridge.ReadRequest{Since: p, HasSince: true, Limit: 1 << 20})
}

// reach waits until a follower is at an offset.
func (tr *trial) reach(f *Follower, offset uint64) {
	tr.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f.Until(ctx, func(p codec.Position, _ int) bool { return p.Offset >= offset }); err != nil {
		tr.Fatalf("waiting for offset %d: %v", offset, err)
	}
}

func receive[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	return v
}

func topicOf(tenant, room string) codec.Topic {
	topic, err := codec.NewTopic(tenant, room)
	if err != nil {
		panic(err)
	}
	return topic
}

func offsets(events []*codec.Event) []uint64 {
	list := make([]uint64, len(events))
	for i, e := range events {
		list[i] = e.Position.Offset
	}
	return list
}

func eids(events []*codec.Event) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.EID
	}
	return list
}

// consecutive fails unless the events are from, from+1, …
func consecutive(t *testing.T, events []*codec.Event, from uint64) {
	t.Helper()
	for i, e := range events {
		if e.Position.Offset != from+uint64(i) {
			t.Fatalf("offset %d at place %d of %v, want %d", e.Position.Offset, i, offsets(events), from+uint64(i))
		}
	}
}
