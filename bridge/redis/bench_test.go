package redis_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

const (
	inFlight = 128
	slice    = 32 * inFlight // events of one side, then it is the other's turn
)

// BenchmarkPublish keeps 128 publications in flight, in turns with what a driver does when
// a plain script takes one event a call, in pipelines of 128, for as many rooms: x-plain is
// the median of how many times as fast the bridge was, server-x-plain what the server
// needed for an event beside what it needed for the plain script. Events come one by one,
// and 16 together, as a busy room hands on what one of its turns has taken.
func BenchmarkPublish(b *testing.B) {
	// The server has a core of its own, as it has where it matters: else three threads
	// that are busy share two cores, and what is measured is who waits for whom.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(1, runtime.NumCPU()-1)))
	s := server.Start(b)
	for _, together := range []int{1, 16} {
		for _, rooms := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("%d rooms, %d together", rooms, together), func(b *testing.B) {
				broker, driver := newBenchBroker(b, s, rooms, together), newBenchDriver(b, s, rooms)
				both := versus{b: b, s: s}
				for range 512 * rooms / slice { // so that buffers are full
					broker.publish(slice)
					driver.publish(slice)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for left := b.N; left > 0; left -= slice {
					n := min(left, slice)
					both.turn(n, broker.publish, driver.publish)
				}
				both.report()
			})
		}
	}
}

// versus takes turns with two sides.
type versus struct {
	b *testing.B
	s *server.Server

	events    int
	took, cpu [2]time.Duration
	ratios    []float64 // of each turn
}

func (v *versus) turn(n int, ours, theirs func(n int)) {
	var took [2]time.Duration
	for i, side := range []func(int){ours, theirs} {
		if i == 1 {
			v.b.StopTimer()
		}
		used, began := cpu(v.b, v.s), time.Now()
		side(n)
		took[i] = time.Since(began)
		v.took[i] += took[i]
		v.cpu[i] += cpu(v.b, v.s) - used
	}
	v.b.StartTimer()
	v.events += n
	v.ratios = append(v.ratios, took[1].Seconds()/took[0].Seconds())
}

func (v *versus) report() {
	slices.Sort(v.ratios)
	v.b.ReportMetric(float64(v.events)/v.took[0].Seconds(), "events/s")
	v.b.ReportMetric(v.ratios[len(v.ratios)/2], "x-plain")
	v.b.ReportMetric(float64(v.cpu[0].Microseconds())/float64(v.events), "server-µs/event")
	v.b.ReportMetric(v.cpu[0].Seconds()/v.cpu[1].Seconds(), "server-x-plain")
}

// benchBroker publishes through a bridge, to some rooms in turn.
type benchBroker struct {
	b        *testing.B
	broker   bridge.Broker
	events   []*codec.Event
	together int // events of one publish
	slots    chan struct{}
	next     int
}

var benchRetention = bridge.Retention{Events: 256, Age: 5 * time.Minute, Bytes: 1 << 20}

func newBenchBroker(b *testing.B, s *server.Server, rooms, together int) *benchBroker {
	p := &benchBroker{b: b, broker: open(b, s.Address()), together: together, slots: make(chan struct{}, inFlight)}
	for i := range rooms {
		p.events = append(p.events, benchEvent(codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", i)}))
	}
	return p
}

func (p *benchBroker) publish(n int) {
	for left := n; left > 0; left -= p.together {
		e := p.events[p.next%len(p.events)]
		p.next++
		batch := make([]bridge.Publication, 0, p.together)
		for range min(left, p.together) {
			p.slots <- struct{}{}
			batch = append(batch, bridge.Publication{Event: e, Buffered: true})
		}
		p.broker.Publish(e.Topic, benchRetention, batch, p.done)
	}
	for range inFlight {
		p.slots <- struct{}{}
	}
	for range inFlight {
		<-p.slots
	}
}

func (p *benchBroker) done(results []bridge.Published) {
	for i := range results {
		if err := results[i].Err; err != nil {
			p.b.Error(err)
		}
		<-p.slots
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

// benchDriver is the reference.
type benchDriver struct {
	b      *testing.B
	client *goredis.Client
	keys   [][]string
	next   int
}

func newBenchDriver(b *testing.B, s *server.Server, rooms int) *benchDriver {
	d := &benchDriver{b: b, client: goredis.NewClient(&goredis.Options{Addr: s.Address(), Protocol: 2})}
	b.Cleanup(func() { _ = d.client.Close() }) // the server is the test's
	if err := plain.Load(b.Context(), d.client).Err(); err != nil {
		b.Fatal(err)
	}
	for i := range rooms {
		d.keys = append(d.keys, []string{fmt.Sprintf("plain:id:%d", i), fmt.Sprintf("plain:buffer:%d", i), fmt.Sprintf("plain:channel:%d", i)})
	}
	return d
}

var plainPayload = strings.Repeat("x", 220) // as long as what the bridge sends

func (d *benchDriver) publish(n int) {
	ctx := d.b.Context()
	for done := 0; done < n; done += inFlight {
		pipe := d.client.Pipeline()
		for range min(inFlight, n-done) {
			plain.EvalSha(ctx, pipe, d.keys[d.next%len(d.keys)], plainPayload)
			d.next++
		}
		if _, err := pipe.Exec(ctx); err != nil {
			d.b.Fatal(err)
		}
	}
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
