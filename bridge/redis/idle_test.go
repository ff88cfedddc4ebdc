package redis_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

const manyRooms = 10_000

// interest has a node follow many rooms.
func interest(tb testing.TB, b *redis.Bridge) {
	tb.Helper()
	ready := make(chan struct{}, 512)
	for from := 0; from < manyRooms; from += cap(ready) {
		n := min(cap(ready), manyRooms-from)
		for i := range n {
			b.Subscribe(codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", from+i)}, visitor{ready})
		}
		for range n {
			select {
			case <-ready:
			case <-time.After(30 * time.Second):
				tb.Fatal("a room is not subscribed")
			}
		}
	}
}

// visitor is a member of nothing; each is another one, by its channel.
type visitor struct{ ready chan struct{} }

func (v visitor) Subscribed(codec.Position, *codec.Error) { v.ready <- struct{}{} }
func (v visitor) Arrived(bridge.Batch)                    {}
func (v visitor) Gap(codec.Position)                      {}

// Subscription follows interest by exact names, and a room costs no goroutine.
func TestTenThousandRoomsCostNeitherPatternsNorGoroutines(t *testing.T) {
	s := server.Start(t)
	b := open(t, s.Address())
	before := runtime.NumGoroutine()
	interest(t, b)
	until(t, func() string { return fmt.Sprintf("%d goroutines, %d before", runtime.NumGoroutine(), before) },
		func() bool { return runtime.NumGoroutine() <= before })
	if n := s.Do("PUBSUB", "NUMPAT"); n != "0" {
		t.Errorf("%s patterns", n)
	}
	if n := len(strings.Fields(s.Do("PUBSUB", "CHANNELS"))); n != manyRooms+1 { // and the probe's
		t.Errorf("%d channels", n)
	}
}

// BenchmarkIdleRooms is a node with 10,000 rooms of interest and leases of 10,000
// sessions, in which nothing happens: what a room takes on the node and on the server, and
// what the server has to do. A call carries several of what stands beside it.
func BenchmarkIdleRooms(b *testing.B) {
	for range b.N {
		s := server.Start(b)
		broker := open(b, s.Address())
		heap, memory := heapInUse(), stat(b, s, "memory", "used_memory")
		interest(b, broker)
		b.ReportMetric(float64(heapInUse()-heap)/manyRooms, "node-B/room")
		b.ReportMetric(float64(stat(b, s, "memory", "used_memory")-memory)/manyRooms, "server-B/room")
		leases := leasesOf(broker)
		var all []bridge.Lease
		for n := range manyRooms {
			all = append(all, numbered(n))
		}
		memory = stat(b, s, "memory", "used_memory")
		if err := leases.renew(all...); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(stat(b, s, "memory", "used_memory")-memory)/manyRooms, "server-B/session")
		<-time.After(10 * time.Second) // until each room is compared for the first time nothing is usual
		s.Do("CONFIG", "RESETSTAT")
		used, began := cpu(b, s), time.Now()
		<-time.After(30 * time.Second) // all of them are compared once
		took := time.Since(began).Seconds()
		b.ReportMetric(float64(calls(b, s))/took, "calls/s")
		b.ReportMetric(float64(stat(b, s, "stats", "total_commands_processed"))/took, "commands/s")
		b.ReportMetric(float64((cpu(b, s)-used).Microseconds())/took, "server-µs/s")
		broker.Close()
		runtime.KeepAlive(broker)
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// stat is a number of INFO.
func stat(tb testing.TB, s *server.Server, section, name string) int64 {
	tb.Helper()
	_, rest, _ := strings.Cut(s.Do("INFO", section), "\n"+name+":")
	text, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// calls are the scripts that were called, and the rest that no script did.
func calls(tb testing.TB, s *server.Server) (n int64) {
	for _, name := range []string{"evalsha", "eval", "publish", "subscribe", "ping"} {
		_, rest, ok := strings.Cut(s.Do("INFO", "commandstats"), "cmdstat_"+name+":calls=")
		if !ok {
			continue
		}
		text, _, _ := strings.Cut(rest, ",")
		count, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		n += count
	}
	return n
}
