package memory_test

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

// CONFIG "meta": how long a record lives, that is, how long a position holds.
func TestLifeOfARecord(t *testing.T) {
	topic := topicOf("acme", "chat:1")
	const age, hour, minute = 5 * time.Minute, time.Hour, time.Minute
	write := func(b *memory.Broker) {
		publish(b, topic, bridge.Retention{Events: 10, Age: age}, buffered(topic, 1))
	}
	join := func(b *memory.Broker) {
		s := &counter{}
		b.Subscribe(topic, s)
		b.Unsubscribe(topic, s)
	}
	for _, c := range []struct {
		name string
		do   func(b *memory.Broker, clock *stepped)
		life time.Duration
	}{
		{"never joined: its history's age and an hour", func(b *memory.Broker, _ *stepped) { write(b) }, age + hour},
		{"only looked at", func(b *memory.Broker, _ *stepped) {
			b.Read(topic, bridge.ReadRequest{}, func(bridge.Page, *codec.Error) {})
		}, hour},
		{"joined: a day", func(b *memory.Broker, _ *stepped) { write(b); join(b) }, 24 * hour},
		{"joined and empty", func(b *memory.Broker, _ *stepped) { join(b) }, 24 * hour},
		{"joined with a position", func(b *memory.Broker, _ *stepped) {
			write(b)
			b.Read(topic, bridge.ReadRequest{HasSince: true}, func(bridge.Page, *codec.Error) {})
		}, 24 * hour},
		{"joined, long history: it outlives it by an hour", func(b *memory.Broker, _ *stepped) {
			publish(b, topic, bridge.Retention{Events: 10, Age: 48 * hour}, buffered(topic, 1))
			join(b)
		}, 49 * hour},
		{"a write begins it anew", func(b *memory.Broker, clock *stepped) {
			write(b)
			clock.pass(50 * minute)
			write(b)
		}, age + hour},
		{"so does a join", func(b *memory.Broker, clock *stepped) {
			join(b)
			clock.pass(23 * hour)
			b.Read(topic, bridge.ReadRequest{HasSince: true}, func(bridge.Page, *codec.Error) {})
		}, 24 * hour},
		{"keys hold it", func(b *memory.Broker, _ *stepped) {
			p := bridge.Publication{Event: event(topic, "e", 1), DedupKey: "k"}
			publish(b, topic, bridge.Retention{DedupWindow: 3 * hour}, p)
		}, 3 * hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, clock := start(t, memory.Config{})
			c.do(b, clock)
			clock.pass(c.life - minute)
			b.Sweep()
			if n, _ := b.Records(); n != 1 {
				t.Errorf("gone before its time")
			}
			clock.pass(minute)
			b.Sweep()
			if n, tenants := b.Records(); n != 0 || tenants != 0 || b.Used() != 0 {
				t.Errorf("%d records, %d tenants, %d bytes after its time", n, tenants, b.Used())
			}
		})
	}
}

func TestSubscriptionHoldsARecord(t *testing.T) {
	b, clock := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	s := &counter{}
	b.Subscribe(topic, s)
	before := history(t, b, topic).Head
	clock.pass(1000 * time.Hour)
	b.Sweep()
	if got := history(t, b, topic).Head; got != before {
		t.Errorf("%v became %v under a subscription", before, got)
	}
	b.Unsubscribe(topic, s)
	clock.pass(23 * time.Hour)
	b.Sweep()
	if n, _ := b.Records(); n != 1 {
		t.Error("gone within a day after the last subscription")
	}
	clock.pass(time.Hour)
	b.Sweep()
	if n, _ := b.Records(); n != 0 {
		t.Error("kept a day after the last subscription")
	}
	if got := history(t, b, topic).Head; got.Epoch == before.Epoch || got.Offset != 0 {
		t.Errorf("a new record goes on at %v", got)
	}
}

// History without a bound of age lives as long as the budget lets it.
func TestHistoryWithoutAgeHoldsARecord(t *testing.T) {
	b, clock := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	publish(b, topic, bridge.Retention{Events: 10}, buffered(topic, 1))
	clock.pass(1000 * time.Hour)
	b.Sweep()
	if n := len(history(t, b, topic).Events); n != 1 {
		t.Errorf("%d of 1 event kept", n)
	}
}

// A tenant or a broker that ends under a caller's feet loses nothing that was
// accepted, and charges nothing afterwards.
func TestEndsBesideCallers(t *testing.T) {
	topic := topicOf("acme", "chat:1")
	beside := func(end func(), b *memory.Broker) (got bridge.Published) {
		var both sync.WaitGroup
		both.Go(end)
		both.Go(func() { got = publish(b, topic, keepAll, buffered(topic, 1))[0] })
		both.Wait()
		return got
	}
	t.Run("sweep", func(t *testing.T) {
		b, clock := start(t, memory.Config{})
		for i := range 5000 {
			clock.pass(48 * time.Hour)
			got := beside(b.Sweep, b)
			if page := history(t, b, topic); got.Err != nil || page.Head != got.Position {
				t.Fatalf("run %d: published %+v, head %v", i, got, page.Head)
			}
		}
	})
	t.Run("close", func(t *testing.T) {
		for range 2000 {
			b, _ := start(t, memory.Config{})
			publish(b, topic, keepAll, buffered(topic, 1))
			if got := beside(b.Close, b); got.Err != nil && got.Err.Code != codec.CodeUnavailable {
				t.Fatalf("%+v", got)
			}
		}
	})
}

// The sweeper comes by itself, and history goes of age without anybody asking.
func TestSweeperReturnsWhatWentOfAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		defer b.Close()
		topic := topicOf("acme", "chat:1")
		publish(b, topic, bridge.Retention{Events: 10, Age: time.Minute}, buffered(topic, 10_000))
		if b.Used() < 10_000 {
			t.Fatalf("%d bytes charged", b.Used())
		}
		time.Sleep(71 * time.Second)
		if b.Used() > 2_000 {
			t.Errorf("%d bytes charged after a minute", b.Used())
		}
		time.Sleep(time.Hour)
		if b.Used() != 0 {
			t.Errorf("%d bytes charged after an hour", b.Used())
		}
	})
}

// 100,000 rooms touched and gone cost nothing, in one tenant and in many, and
// beside one that lives on.
func TestHeapReturnsToItsBaseline(t *testing.T) {
	b, clock := start(t, memory.Config{})
	stays := topicOf("tenant-0", "stays")
	s := &counter{}
	b.Subscribe(stays, s)
	before, goroutines := heapAlloc(), runtime.NumGoroutine()
	r := bridge.Retention{Events: 10, Age: time.Minute, DedupWindow: time.Minute}
	data := event(stays, "e", 100).Data
	passing, answered := &counter{}, func(p []bridge.Published) {
		if p[0].Err != nil {
			t.Error(p[0].Err)
		}
	}
	batch := make([]bridge.Publication, 1)
	for i := range 100_000 {
		topic := topicOf("tenant-"+strconv.Itoa(i%2*(i/2%100)), "chat:"+strconv.Itoa(i)) // half of them in one tenant
		e := codec.NewEvent(topic, "message", data, codec.Origin{EID: topic.Room, From: "alice"})
		batch[0] = bridge.Publication{Event: e, Buffered: true, DedupKey: "k"}
		b.Publish(topic, r, batch, answered)
		b.Subscribe(topic, passing)
		b.Unsubscribe(topic, passing)
	}
	clear(batch)
	full := heapAlloc()
	if n := runtime.NumGoroutine(); n > goroutines { // those of tests before may end
		t.Errorf("%d goroutines for 100,000 rooms", n-goroutines)
	}
	used := b.Used()
	t.Logf("full: %d bytes of heap a room, %d charged", (full-before)/100_000, used/100_000)
	if grown := full - before; grown > used {
		t.Errorf("the heap grew by %d, charged %d", grown, used)
	}
	clock.pass(2 * time.Minute)
	b.Sweep()
	used = b.Used()
	idle := heapAlloc() - before
	t.Logf("records alone: %d bytes of heap each, %d charged", idle/100_000, used/100_000)
	if idle > used {
		t.Errorf("records alone take %d, charged %d", idle, used)
	}
	clock.pass(25 * time.Hour)
	b.Sweep()
	if left := heapAlloc() - before; left > 256<<10 {
		t.Errorf("%d bytes of heap left behind", left)
	}
	if n, tenants := b.Records(); n != 1 || tenants != 1 {
		t.Errorf("%d records of %d tenants left", n, tenants)
	}
}

// A quiet room that somebody has joined costs its record, not what its history
// once took.
func TestQuietRoomsGiveTheirHistoryBack(t *testing.T) {
	b, clock := start(t, memory.Config{})
	const rooms = 1000
	before := heapAlloc()
	for i := range rooms {
		topic := topicOf("acme", fmt.Sprintf("chat:%d", i))
		publish(b, topic, bridge.Retention{Events: 64, Age: time.Minute}, batchOf(topic, 64)...)
		passing := &counter{}
		b.Subscribe(topic, passing)
		b.Unsubscribe(topic, passing)
	}
	clock.pass(time.Minute)
	b.Sweep()
	if grown, used := heapAlloc()-before, b.Used(); grown > used {
		t.Errorf("%d bytes of heap a room, %d charged", grown/rooms, used/rooms)
	}
	runtime.KeepAlive(b)
}

func heapAlloc() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
