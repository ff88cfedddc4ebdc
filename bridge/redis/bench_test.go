package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

const inFlight = 128

// BenchmarkPublish keeps 128 publications in flight, beside what a driver does when a
// plain script takes one event a call, in pipelines of 128.
func BenchmarkPublish(b *testing.B) {
	s := server.Start(b)
	b.Run("reference", func(b *testing.B) { plainScripts(b, s) })
	for _, rooms := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("bridge/%d rooms", rooms), func(b *testing.B) {
			broker := open(b, s.Address())
			topics := make([]codec.Topic, rooms)
			events := make([]*codec.Event, rooms)
			for i := range topics {
				topics[i] = codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", i)}
				events[i] = benchEvent(topics[i])
			}
			r := bridge.Retention{Events: 256, Age: 5 * time.Minute, Bytes: 1 << 20}
			slots := make(chan struct{}, inFlight)
			b.ReportAllocs()
			b.ResetTimer()
			began := cpu(b, s)
			for i := range b.N {
				slots <- struct{}{}
				n := i % rooms
				broker.Publish(topics[n], r, []bridge.Publication{{Event: events[n], Buffered: true}}, func(p []bridge.Published) {
					if p[0].Err != nil {
						b.Error(p[0].Err)
					}
					<-slots
				})
			}
			for range inFlight {
				slots <- struct{}{}
			}
			report(b, s, began)
		})
	}
}

func benchEvent(topic codec.Topic) *codec.Event {
	data, err := codec.MakeData(codec.JSON, []byte(`"`+strings.Repeat("x", 126)+`"`))
	if err != nil {
		panic(err)
	}
	return codec.NewEvent(topic, "message", data, codec.Origin{EID: "0123456789abcdef", From: "alice", Session: "s1", TS: 1})
}

var plain = goredis.NewScript(`
local id = redis.call('INCR', KEYS[1])
redis.call('ZADD', KEYS[2], id, id .. '|' .. ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -257)
redis.call('EXPIRE', KEYS[2], 300)
redis.call('PUBLISH', KEYS[3], ARGV[1])
return id`)

func plainScripts(b *testing.B, s *server.Server) {
	client := goredis.NewClient(&goredis.Options{Addr: s.Address(), Protocol: 2})
	defer func() { _ = client.Close() }() // the server is the test's
	ctx := b.Context()
	if err := plain.Load(ctx, client).Err(); err != nil {
		b.Fatal(err)
	}
	payload := strings.Repeat("x", 220)
	b.ReportAllocs()
	b.ResetTimer()
	began := cpu(b, s)
	for done := 0; done < b.N; done += inFlight {
		pipe := client.Pipeline()
		for range min(inFlight, b.N-done) {
			plain.EvalSha(ctx, pipe, []string{"plain:id", "plain:buffer", "plain:channel"}, payload)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			b.Fatal(err)
		}
	}
	report(b, s, began)
}

// cpu is what the server has used so far.
func cpu(b *testing.B, s *server.Server) (total time.Duration) {
	for _, line := range strings.Split(s.Do("INFO", "cpu"), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if name == "used_cpu_user_main_thread" || name == "used_cpu_sys_main_thread" {
			d, err := time.ParseDuration(value + "s")
			if err != nil {
				b.Fatal(err)
			}
			total += d
		}
	}
	return total
}

func report(b *testing.B, s *server.Server, began time.Duration) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64((cpu(b, s)-began).Microseconds())/float64(b.N), "server-µs/event")
}
