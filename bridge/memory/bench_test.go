package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

type counter struct{ events int }

func (c *counter) Subscribed(codec.Position, *codec.Error) {}
func (c *counter) Arrived(b bridge.Batch)                  { c.events += len(b.Events) }
func (c *counter) Gap(codec.Position)                      {}

var usual = bridge.Retention{Events: 256, Age: 5 * time.Minute, Bytes: 1 << 20, DedupWindow: 2 * time.Minute}

func batchOf(topic codec.Topic, n int) []bridge.Publication {
	batch := make([]bridge.Publication, n)
	for i := range batch {
		batch[i] = bridge.Publication{Event: event(topic, fmt.Sprintf("event-%016d", i), 120), Buffered: true}
	}
	return batch
}

// The reference does the least that any broker must: a place in a ring for a
// copy with a position, and the two calls.
func BenchmarkPublish(b *testing.B) {
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	for _, n := range []int{1, 16, 64} {
		batch := batchOf(topic, n)
		perEvent := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		}
		b.Run(fmt.Sprintf("reference/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			sink, ring, head := &counter{}, make([]*codec.Event, 256), uint64(0)
			for b.Loop() {
				results, fresh := make([]bridge.Published, n), make([]*codec.Event, n)
				for i, p := range batch {
					head++
					e := p.Event.At(codec.Position{Epoch: "ABCDEFGHIJKLMNOP", Offset: head})
					ring[head%256], fresh[i] = e, e
					results[i] = bridge.Published{EID: e.EID, Position: e.Position}
				}
				sink.Arrived(bridge.Batch{Events: fresh})
			}
			perEvent(b)
		})
		b.Run(fmt.Sprintf("memory/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			broker := memory.New(memory.Config{})
			defer broker.Close()
			broker.Subscribe(topic, &counter{})
			for b.Loop() {
				broker.Publish(topic, usual, batch, func([]bridge.Published) {})
			}
			perEvent(b)
		})
	}
	b.Run("keyed/1", func(b *testing.B) {
		b.ReportAllocs()
		broker := memory.New(memory.Config{})
		defer broker.Close()
		batch := batchOf(topic, 1)
		batch[0].DedupKey = "the same again"
		for b.Loop() {
			broker.Publish(topic, usual, batch, func([]bridge.Published) {})
		}
	})
}

func BenchmarkRead(b *testing.B) {
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	broker := memory.New(memory.Config{})
	defer broker.Close()
	for range 4 {
		broker.Publish(topic, usual, batchOf(topic, 64), func([]bridge.Published) {})
	}
	b.ReportAllocs()
	for b.Loop() {
		broker.Read(topic, bridge.ReadRequest{Limit: 64}, func(bridge.Page, *codec.Error) {})
	}
}

// BenchmarkSweep is the sweeper's cost a record that lives on.
func BenchmarkSweep(b *testing.B) {
	const rooms = 10_000
	broker := memory.New(memory.Config{})
	defer broker.Close()
	for i := range rooms {
		topic := codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", i)}
		broker.Publish(topic, usual, batchOf(topic, 1), func([]bridge.Published) {})
	}
	for b.Loop() {
		broker.Sweep()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rooms), "ns/record")
}
