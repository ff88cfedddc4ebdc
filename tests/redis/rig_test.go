package redis_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
)

// The driver's pool tries a server that is down once a second, and finds out only then
// that it was closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// patience is how long what must come may take.
const patience = time.Minute

var plenty = bridge.Retention{Events: 10_000, Age: time.Hour, Bytes: 16 << 20, DedupWindow: time.Minute}

var room = codec.Topic{Tenant: "acme", Room: "chat:1"}

var made atomic.Uint64

// start makes a node's bridge; all of one test's share keys and channels.
func start(t testing.TB, address string, change ...func(*redis.Config)) *redis.Bridge {
	t.Helper()
	c := redis.Config{Addresses: []string{address}, KeyPrefix: "pulse:", ChannelPrefix: "pulse:"}
	for _, f := range change {
		f(&c)
	}
	b, err := redis.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// node is start, and waits until it is up.
func node(t testing.TB, address string, change ...func(*redis.Config)) *redis.Bridge {
	t.Helper()
	b := start(t, address, change...)
	until(t, b, bridge.Up)
	return b
}

// until waits for a state.
func until(t testing.TB, b *redis.Bridge, want bridge.State) {
	t.Helper()
	there := make(chan struct{}, 1)
	stop := b.Watch(func(h bridge.Health) {
		if h.State == want {
			select {
			case there <- struct{}{}:
			default:
			}
		}
	})
	defer stop()
	select {
	case <-there:
	case <-time.After(patience):
		t.Fatalf("it is %+v, not %v", b.Health(), want)
	}
}

func event(topic codec.Topic, eid string) *codec.Event {
	data, err := codec.MakeData(codec.JSON, []byte(`"`+strings.Repeat("x", 32)+`"`))
	if err != nil {
		panic(err)
	}
	return codec.NewEvent(topic, "message", data, codec.Origin{EID: eid, From: "alice", Session: "s1", TS: 1})
}

// kept is a publication that is buffered, under a key of its own.
func kept(topic codec.Topic) bridge.Publication {
	eid := fmt.Sprintf("e%d", made.Add(1))
	return bridge.Publication{Event: event(topic, eid), Buffered: true, DedupKey: eid}
}

func receive[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	return v
}

// send publishes without waiting.
func send(b bridge.Broker, topic codec.Topic, batch ...bridge.Publication) <-chan []bridge.Published {
	answer := make(chan []bridge.Published, 2)
	b.Publish(topic, plenty, batch, func(p []bridge.Published) { answer <- p })
	return answer
}

func publish(t testing.TB, b bridge.Broker, topic codec.Topic, batch ...bridge.Publication) []bridge.Published {
	t.Helper()
	return receive(t, send(b, topic, batch...), "the answer to a publish")
}

// accept publishes what must be accepted.
func accept(t testing.TB, b bridge.Broker, topic codec.Topic, batch ...bridge.Publication) []bridge.Published {
	t.Helper()
	got := publish(t, b, topic, batch...)
	for i, p := range got {
		if p.Err != nil {
			t.Fatalf("publication %d: %v", i, p.Err)
		}
	}
	return got
}

// fill publishes n events, one by one.
func fill(t testing.TB, b bridge.Broker, topic codec.Topic, n int) (last codec.Position) {
	t.Helper()
	for range n {
		last = accept(t, b, topic, kept(topic))[0].Position
	}
	return last
}

func read(t testing.TB, b bridge.Broker, topic codec.Topic, req bridge.ReadRequest) bridge.Page {
	t.Helper()
	type answer struct {
		page bridge.Page
		err  *codec.Error
	}
	answers := make(chan answer, 2)
	b.Read(topic, req, func(p bridge.Page, err *codec.Error) { answers <- answer{p, err} })
	a := receive(t, answers, "a page")
	if a.err != nil {
		t.Fatalf("read: %v", a.err)
	}
	return a.page
}

func since(t testing.TB, b bridge.Broker, topic codec.Topic, p codec.Position) bridge.Page {
	t.Helper()
	return read(t, b, topic, bridge.ReadRequest{Since: p, HasSince: true, Limit: 1000})
}

// follow begins at the head and waits until it is subscribed.
func follow(t testing.TB, b bridge.Broker, topic codec.Topic) *bridgetest.Follower {
	t.Helper()
	f := bridgetest.Follow(b, topic)
	t.Cleanup(f.Close)
	reach(t, f, 0)
	return f
}

func reach(t testing.TB, f *bridgetest.Follower, offset uint64) {
	t.Helper()
	meet(t, f, fmt.Sprintf("offset %d", offset), func(p codec.Position, _ int) bool { return p.Offset >= offset })
}

func meet(t testing.TB, f *bridgetest.Follower, what string, met func(codec.Position, int) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f.Until(ctx, met); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// whole fails unless f has from+1 … to, in order and once, and was never reset.
func whole(t testing.TB, f *bridgetest.Follower, from, to uint64) {
	t.Helper()
	reach(t, f, to)
	log := f.Log()
	if uint64(len(log)) != to-from || len(f.Resets()) != 0 {
		t.Fatalf("%d events, want %d; resets %v", len(log), to-from, f.Resets())
	}
	for i, e := range log {
		if e.Position.Offset != from+uint64(i)+1 {
			t.Fatalf("offset %d at place %d", e.Position.Offset, i)
		}
	}
}
