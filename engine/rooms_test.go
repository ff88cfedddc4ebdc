package engine

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
)

// A room may be made and end a hundred thousand times without leaving anything,
// B135 (asynkron/protoactor-go#111, Tochemey/goakt#382) by rooms of an engine.
func TestB135_RoomsMadeAndEndedLeaveNothing(t *testing.T) {
	rooms := 100_000 / scale
	k := kind("brief", func() room.Handler { return &puppet{} })
	k.Linger = time.Millisecond
	e := start(t, func(c *Config) {
		c.Kinds = []room.Kind{k}
		c.Broker = forgetful{}
		c.TenantDefaults.MaxRooms = 1_000
	})
	began := time.Now()
	touch := func(from, to int) {
		for i := from; i < to; i++ {
			ev := Event{Tenant: "acme", Room: fmt.Sprint("brief:", i), Name: "typing", Data: i}
			for o, err := e.TryPublish(ev); ; o, err = e.TryPublish(ev) {
				if err != nil {
					t.Fatal(err)
				}
				if o.Took() {
					break
				}
				if o != backpressure.QuotaExceeded {
					t.Fatalf("room %d: %v", i, o)
				}
				runtime.Gosched() // the tenant has as many rooms as it may
			}
		}
		for e.rooms() > 0 {
			runtime.Gosched()
		}
	}
	touch(0, rooms/2)
	before := heap()
	touch(rooms/2, rooms)
	after := heap()
	t.Logf("%d rooms in %v; heap %d KiB, then %d KiB", rooms, time.Since(began), before>>10, after>>10)
	// protoactor's registry is 32,768 maps, each of which keeps its first memory:
	// most of what is there before, and what little it grows by.
	if scale == 1 && after > before+before/4 {
		t.Errorf("the heap has grown from %d to %d KiB", before>>10, after>>10)
	}
	eventually(t, "the tenant's actor alone is left", func() bool { return e.system.Live() == 1 })
}

func (e *Engine) rooms() (n int) {
	for _, t := range e.all() {
		n += t.Rooms()
	}
	return n
}

// heap is what is live after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what pools held goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
