package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
)

// BenchmarkIdleSession is what one idle WebSocket session, in one room, keeps:
// resident memory, heap and stack of the process, and goroutines. Its clients are
// another process.
func BenchmarkIdleSession(b *testing.B) {
	const n = 5000
	e, err := Start(context.Background(), Config{Kinds: []room.Kind{openKind}, Authenticator: asTold{}})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(context.Background())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: e.Handler()}
	go server.Serve(l)
	defer server.Close()

	resident, heap, stack, goroutines := usage(b)
	startReaders(b, n, l.Addr())
	r, h, s, g := usage(b)
	b.ReportMetric(float64(r-resident)/n, "rss-B/session")
	b.ReportMetric(float64(h-heap)/n, "heap-B/session")
	b.ReportMetric(float64(s-stack)/n, "stack-B/session")
	b.ReportMetric(float64(g-goroutines)/n, "goroutines/session")
	b.ReportMetric(0, "ns/op")
}

func usage(b *testing.B) (resident, heap, stack int64, goroutines int) {
	b.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("resident memory is read from /proc: ", err)
	}
	var size, pages int64
	fmt.Sscan(string(text), &size, &pages)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return pages * int64(os.Getpagesize()), int64(m.HeapAlloc), int64(m.StackInuse), runtime.NumGoroutine()
}
