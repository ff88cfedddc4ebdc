package memory_test

import (
	"fmt"
	"runtime"
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
		do   func(b *memory.Broker)
		life time.Duration
	}{
		{"never joined: its history's age and an hour", write, age + hour},
		{"only looked at", func(b *memory.Broker) { b.Read(topic, bridge.ReadRequest{}, func(bridge.Page, *codec.Error) {}) }, hour},
		{"joined: a day", func(b *memory.Broker) { write(b); join(b) }, 24 * hour},
		{"joined and empty", join, 24 * hour},
		{"joined with a position", func(b *memory.Broker) {
			write(b)
			b.Read(topic, bridge.ReadRequest{HasSince: true}, func(bridge.Page, *codec.Error) {})
		}, 24 * hour},
		{"joined, long history: it outlives it by an hour", func(b *memory.Broker) {
			publish(b, topic, bridge.Retention{Events: 10, Age: 48 * hour}, buffered(topic, 1))
			join(b)
		}, 49 * hour},
		{"keys hold it", func(b *memory.Broker) {
			p := bridge.Publication{Event: event(topic, "e", 1), DedupKey: "k"}
			publish(b, topic, bridge.Retention{DedupWindow: 3 * hour}, p)
		}, 3 * hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, clock := start(t, memory.Config{})
			c.do(b)
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
	clock.pass(24 * time.Hour)
	b.Sweep()
	if n, _ := b.Records(); n != 0 {
		t.Error("kept a day after the last subscription")
	}
	if got := history(t, b, topic).Head; got.Epoch == before.Epoch || got.Offset != 0 {
		t.Errorf("a new record goes on at %v", got)
	}
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
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	r := bridge.Retention{Events: 10, Age: time.Minute, DedupWindow: time.Minute}
	data := event(stays, "e", 100).Data
	for i := range 100_000 {
		topic := topicOf(fmt.Sprintf("tenant-%d", i%100), fmt.Sprintf("chat:%d", i))
		e := codec.NewEvent(topic, "message", data, codec.Origin{EID: fmt.Sprint("e", i), From: "alice"})
		if got := publish(b, topic, r, bridge.Publication{Event: e, Buffered: true, DedupKey: "k"})[0]; got.Err != nil {
			t.Fatal(got.Err)
		}
		passing := &counter{}
		b.Subscribe(topic, passing)
		b.Unsubscribe(topic, passing)
	}
	full := heap()
	if n := runtime.NumGoroutine(); n != goroutines {
		t.Errorf("%d goroutines for 100,000 rooms", n-goroutines)
	}
	used := b.Used()
	t.Logf("full: %d bytes of heap a room, %d charged", (full-before)/100_000, used/100_000)
	if grown := full - before; grown > used {
		t.Errorf("the heap grew by %d, charged %d", grown, used)
	}
	clock.pass(25 * time.Hour)
	b.Sweep()
	if left := heap() - before; left > 256<<10 {
		t.Errorf("%d bytes of heap left behind", left)
	}
	if n, tenants := b.Records(); n != 1 || tenants != 1 {
		t.Errorf("%d records of %d tenants left", n, tenants)
	}
}
