package engine

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// countConn is a nullConn that counts bytes.
type countConn struct {
	nullConn
	bytes *atomic.Int64
}

func (c *countConn) Write(b []byte) (bool, error) {
	c.bytes.Add(int64(len(b)))
	return c.nullConn.Write(b)
}

// joinStorm lets n members join at once a room in which each wants to see the
// others, and waits until all are told of all.
func joinStorm(b *testing.B, e *Engine, n int, fields string) (writes, bytes int64, receivers []transport.Receiver) {
	var w, size atomic.Int64
	framing := &codec.Framing{Name: "null", Protocol: protocol(codec.JSON)}
	for i := range n {
		if err := e.Admit(request()); err != nil {
			b.Fatal(err)
		}
		c := &countConn{nullConn{framing: framing, frames: &w}, &size}
		r := e.Accept(c, transport.NewRequest(request()))
		r.Message(fmt.Appendf(nil, `{"t":"hello","token":"acme/m%05d","rooms":[{"room":"seen:1"%s}]}`, i, fields), false)
		receivers = append(receivers, r)
	}
	for last := int64(-1); w.Load() < int64(n) || w.Load() != last; { // no frame for as long as they are gathered
		last = w.Load()
		time.Sleep(1200 * time.Millisecond)
	}
	return w.Load(), size.Load(), receivers
}

// BenchmarkPresenceJoinStorm is a room that fills at once: what each join costs
// all together. The last name is the reference: the same without anybody looking.
func BenchmarkPresenceJoinStorm(b *testing.B) {
	for _, look := range []bool{true, false} {
		for _, n := range []int{1000, 3000, 10_000} {
			fields := ""
			if look {
				fields = `,"presence":true`
			}
			b.Run(fmt.Sprintf("look=%v/members=%d", look, n), func(b *testing.B) {
				b.ReportAllocs()
				for range b.N {
					b.StopTimer()
					e, err := Start(context.Background(), Config{Kinds: []room.Kind{seenKind}, Authenticator: asTold{}})
					if err != nil {
						b.Fatal(err)
					}
					used := userTime()
					b.StartTimer()
					writes, bytes, receivers := joinStorm(b, e, n, fields)
					b.StopTimer()
					b.ReportMetric(float64(userTime()-used)/float64(n), "user-ns/join")
					b.ReportMetric(float64(writes)/float64(n), "writes/join")
					b.ReportMetric(float64(bytes)/float64(n), "B/join")
					for _, r := range receivers {
						r.Closed(codec.CauseNormal)
					}
					if err := e.Close(context.Background()); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkPresentMember is the memory of one member of a room: in a kind with
// presence, and without.
func BenchmarkPresentMember(b *testing.B) {
	const n = 10_000
	for _, present := range []bool{false, true} {
		b.Run(fmt.Sprintf("presence=%v", present), func(b *testing.B) {
			for range b.N {
				k := seenKind
				k.Presence = present
				e, err := Start(context.Background(), Config{Kinds: []room.Kind{k}, Authenticator: asTold{}})
				if err != nil {
					b.Fatal(err)
				}
				before := inUse()
				_, _, receivers := joinStorm(b, e, n, `,"data":{"name":"somebody"}`)
				b.ReportMetric(float64(inUse()-before)/n, "B/member")
				for _, r := range receivers {
					r.Closed(codec.CauseNormal)
				}
				if err := e.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
