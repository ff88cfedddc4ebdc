package engine

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/internal/telemetry"
)

// brokerCounts are what goes through a broker, whichever it is.
type brokerCounts struct {
	// atomics
	ok, duplicates, writes atomic.Uint64
	refused                message.Refusals
	receives               atomic.Uint64
	hits, misses           atomic.Uint64

	took metric.Float64Histogram // immutable
}

// countedBroker counts on the way. Only an engine that is measured has one.
type countedBroker struct {
	bridge.Broker
	counts *brokerCounts
}

func (b countedBroker) Publish(topic codec.Topic, r bridge.Retention, batch []bridge.Publication, done func([]bridge.Published)) {
	var began time.Time
	if rand.Uint32()%telemetry.EveryCall == 0 {
		began = time.Now()
	}
	b.Broker.Publish(topic, r, batch, func(results []bridge.Published) {
		b.counts.published(results)
		if !began.IsZero() {
			b.counts.took.Record(context.Background(), time.Since(began).Seconds()*1_000)
		}
		done(results)
	})
}

func (c *brokerCounts) published(results []bridge.Published) {
	var ok, writes uint64
	for i := range results {
		switch res := &results[i]; {
		case res.Err != nil:
			c.refused.Count(res.Err)
		case res.Duplicate:
			c.duplicates.Add(1)
		default:
			ok++
			if !res.Position.IsZero() {
				writes++
			}
		}
	}
	c.ok.Add(ok)
	c.writes.Add(writes)
}

func (b countedBroker) Read(topic codec.Topic, req bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	b.Broker.Read(topic, req, func(p bridge.Page, err *codec.Error) {
		if len(p.Events) > 0 {
			b.counts.hits.Add(1)
		} else {
			b.counts.misses.Add(1)
		}
		done(p, err)
	})
}

func (b countedBroker) Subscribe(topic codec.Topic, s bridge.Sink) {
	b.Broker.Subscribe(topic, countedSink{s, b.counts})
}

func (b countedBroker) Unsubscribe(topic codec.Topic, s bridge.Sink) {
	b.Broker.Unsubscribe(topic, countedSink{s, b.counts})
}

// countedSink is equal to another of the same sink, as brokers tell them apart.
type countedSink struct {
	bridge.Sink
	counts *brokerCounts
}

func (s countedSink) Arrived(b bridge.Batch) {
	s.counts.receives.Add(uint64(len(b.Events)))
	s.Sink.Arrived(b)
}
