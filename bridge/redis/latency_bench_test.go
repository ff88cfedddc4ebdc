package redis_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// BenchmarkDelivery has one node publish 200 events a second and another deliver them to
// members of one room, in turns with a bare PUBLISH and SUBSCRIBE of as many bytes. An
// event's time runs from when it was due, and nothing that is slow holds the next one up.
func BenchmarkDelivery(b *testing.B) {
	const every = time.Second / 200
	s := server.Start(b)
	for _, members := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d members", members), func(b *testing.B) {
			ours, theirs := make(chan time.Duration, members*b.N), make(chan time.Duration, b.N)
			due := make([][2]atomic.Int64, b.N) // of ours and theirs
			began := time.Now()
			late := func(side, i int) time.Duration { return time.Since(began) - time.Duration(due[i][side].Load()) }

			prefix := prefixed("d:")
			from, to := open(b, s.Address(), prefix), open(b, s.Address(), prefix)
			topic := codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d:%d", members, b.N)}
			for range members {
				m := &stopwatch{ready: make(chan struct{}), arrived: func(eid string) {
					i, err := strconv.Atoi(eid)
					if err != nil {
						b.Error(err)
					}
					ours <- late(0, i)
				}}
				to.Subscribe(topic, m)
				<-m.ready
			}

			client := goredis.NewClient(&goredis.Options{Addr: s.Address(), Protocol: 2})
			bare := client.Subscribe(b.Context(), topic.String())
			if _, err := bare.Receive(b.Context()); err != nil {
				b.Fatal(err)
			}
			read := make(chan struct{})
			go func() {
				defer close(read)
				for m := range bare.Channel() {
					i, err := strconv.Atoi(m.Payload[:8])
					if err != nil {
						b.Error(err)
					}
					theirs <- late(1, i)
				}
			}()
			ticks := make(chan int, b.N)
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for i := range ticks {
					if err := client.Publish(b.Context(), topic.String(), fmt.Sprintf("%08d%s", i, plainPayload[8:])).Err(); err != nil {
						b.Error(err)
					}
				}
			}()

			data := benchEvent(topic).Data
			tick := time.NewTicker(every / 2)
			b.ResetTimer()
			for i := range b.N {
				<-tick.C
				due[i][0].Store(int64(time.Since(began)))
				e := codec.NewEvent(topic, "message", data, codec.Origin{EID: strconv.Itoa(i), From: "alice", Session: "s1", TS: 1})
				from.Publish(topic, benchRetention, []bridge.Publication{{Event: e, Buffered: true}}, func(p []bridge.Published) {
					if p[0].Err != nil {
						b.Error(p[0].Err)
					}
				})
				<-tick.C
				due[i][1].Store(int64(time.Since(began)))
				ticks <- i
			}
			close(ticks)
			<-sent
			reportTimes(b, collect(ours, members*b.N), collect(theirs, b.N))
			b.StopTimer()
			tick.Stop()
			_ = bare.Close() // the server is the test's
			_ = client.Close()
			<-read
		})
	}
}

// BenchmarkPublishAlone has nothing else under way: one publication at a time, in turns
// with one call of the plain script.
func BenchmarkPublishAlone(b *testing.B) {
	s := server.Start(b)
	broker, driver := newBenchBroker(b, s, 1, 1), newBenchDriver(b, s, 1)
	e := broker.events[0]
	var ours, theirs []time.Duration
	done := make(chan struct{})
	for i := range 300 + b.N {
		if i == 300 {
			ours, theirs = nil, nil
			b.ResetTimer()
		}
		began := time.Now()
		broker.broker.Publish(e.Topic, benchRetention, []bridge.Publication{{Event: e, Buffered: true}}, func(p []bridge.Published) {
			if p[0].Err != nil {
				b.Error(p[0].Err)
			}
			done <- struct{}{}
		})
		<-done
		ours = append(ours, time.Since(began))
		began = time.Now()
		if err := plain.EvalSha(b.Context(), driver.client, driver.keys[0], plainPayload).Err(); err != nil {
			b.Fatal(err)
		}
		theirs = append(theirs, time.Since(began))
	}
	reportTimes(b, ours, theirs)
}

func collect(from chan time.Duration, n int) (list []time.Duration) {
	for range n {
		list = append(list, <-from)
	}
	return list
}

func reportTimes(b *testing.B, ours, theirs []time.Duration) {
	slices.Sort(ours)
	slices.Sort(theirs)
	for _, q := range []int{50, 99} {
		o, t := ours[(len(ours)-1)*q/100], theirs[(len(theirs)-1)*q/100]
		b.ReportMetric(float64(o.Microseconds()), fmt.Sprintf("p%d-µs", q))
		b.ReportMetric(float64(t.Microseconds()), fmt.Sprintf("bare-p%d-µs", q))
		b.ReportMetric(float64(o)/float64(t), fmt.Sprintf("x-bare-p%d", q))
	}
}

// stopwatch is a member that tells of each event.
type stopwatch struct {
	ready   chan struct{}
	arrived func(eid string)
}

func (w *stopwatch) Subscribed(codec.Position, *codec.Error) { close(w.ready) }
func (w *stopwatch) Gap(codec.Position)                      {}
func (w *stopwatch) Arrived(batch bridge.Batch) {
	for _, e := range batch.Events {
		w.arrived(e.EID)
	}
}
