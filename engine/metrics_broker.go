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
)

// brokerCounts are what goes through a broker, whichever it is, beside what is counted
// by kinds of rooms.
type brokerCounts struct {
	// immutable
	kinds *message.Declared
	took  metric.Float64Histogram
	every uint32 // one publish in so many is timed

	// atomics
	writes, hits, misses atomic.Uint64
}

// meter is that of a topic's kind; nil: the kind is not declared any more.
func (c *brokerCounts) meter(topic codec.Topic) *message.Meter {
	kind := c.kinds.Of(topic.Kind())
	if kind == nil {
		return nil
	}
	return kind.Meter
}

// countedBroker counts on the way. Only an engine that is measured has one.
type countedBroker struct {
	bridge.Broker
	counts *brokerCounts
}

func (b countedBroker) Publish(topic codec.Topic, r bridge.Retention, batch []bridge.Publication, done func([]bridge.Published)) {
	var began time.Time
	if rand.Uint32()%b.counts.every == 0 {
		began = time.Now()
	}
	b.Broker.Publish(topic, r, batch, func(results []bridge.Published) {
		b.counts.published(topic, results)
		if !began.IsZero() {
			b.counts.took.Record(context.Background(), time.Since(began).Seconds()*1_000)
		}
		done(results)
	})
}

func (c *brokerCounts) published(topic codec.Topic, results []bridge.Published) {
	m := c.meter(topic)
	if m == nil {
		return
	}
	var ok, writes uint64
	for i := range results {
		switch res := &results[i]; {
		case res.Err != nil:
			m.Broker.Refused.Count(res.Err)
		case res.Duplicate:
			m.Broker.Duplicates.Add(1)
		default:
			ok++
			if !res.Position.IsZero() {
				writes++
			}
		}
	}
	m.Broker.Taken.Add(ok)
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
	if m := s.counts.meter(b.Events[0].Topic); m != nil {
		m.Broker.Received.Add(uint64(len(b.Events)))
	}
	s.Sink.Arrived(b)
}

// brokerStats is what the broker tells of itself; of one that tells nothing, what can be
// seen of it.
func (e *Engine) brokerStats() bridge.Counts {
	if b, ok := e.cfg.Broker.(bridge.Counted); ok {
		return b.Counts()
	}
	return bridge.Counts{Outages: e.counts.outages.Load()}
}
