package engine

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// nullConn is a connection whose descriptor is replaced: it takes every write at
// once. Everything above it is the production path.
type nullConn struct {
	framing *codec.Framing
	frames  *atomic.Int64
}

func (c *nullConn) Framing() *codec.Framing { return c.framing }
func (c *nullConn) Name() string            { return "null" }
func (c *nullConn) Write(b []byte) (bool, error) {
	c.frames.Add(1)
	return true, nil
}
func (c *nullConn) OnReady(func(error))       {}
func (c *nullConn) Close(codec.Cause, string) {}

// members joins n members with null connections to a room.
func members(tb testing.TB, e *Engine, n int, room string, writes *atomic.Int64) {
	framing := &codec.Framing{Name: "null", Protocol: protocol(codec.JSON)}
	for i := range n {
		c := &nullConn{framing: framing, frames: writes}
		if err := e.Admit(request()); err != nil {
			tb.Fatal(err)
		}
		r := e.Accept(c, transport.NewRequest(request()))
		r.Message([]byte(fmt.Sprintf(`{"t":"hello","token":"acme/m%d","rooms":[{"room":%q}]}`, i, room)), false)
		tb.Cleanup(func() { r.Closed(codec.CauseNormal) })
	}
	for writes.Load() < int64(n) {
		time.Sleep(time.Millisecond)
	}
}

func request() *http.Request {
	r, _ := http.NewRequest(http.MethodGet, "http://memory/v1/ws", nil)
	r.RemoteAddr = "127.0.0.1:1"
	return r
}

// BenchmarkFanOut is user space per delivery through Publish, the room, 1,000
// sessions and the drain, descriptors replaced, with 1 and 16 events in flight.
func BenchmarkFanOut(b *testing.B) {
	for _, inFlight := range []int{1, 4, 16, 32} {
		for _, name := range []string{"message", "typing"} {
			b.Run(fmt.Sprintf("%s/inflight=%d", name, inFlight), func(b *testing.B) {
				const n = 1000
				cfg := Config{Kinds: []room.Kind{openKind}, Authenticator: asTold{}, TenantDefaults: TenantLimits{SessionRate: noRate}}
				e, err := Start(context.Background(), cfg)
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close(context.Background())
				var writes atomic.Int64
				members(b, e, n, "chat:1", &writes)
				data, _ := codec.NewData("0123456789012345678901234567890123456789012345678901234567890123")
				b.ReportAllocs()
				b.ResetTimer()
				before, used := writes.Load(), userTime()
				var wg sync.WaitGroup
				left := atomic.Int64{}
				left.Store(int64(b.N))
				for range inFlight {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							if _, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "chat:1", Name: name, Data: data}); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				b.ReportMetric(float64(userTime()-used)/float64(b.N)/n, "user-ns/delivery")
				b.ReportMetric(float64(writes.Load()-before)/float64(b.N)/n, "writes/delivery")
			})
		}
	}
}
