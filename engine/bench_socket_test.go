package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
	"github.com/yaza-dev/pulse/transport/ws"
)

// readersEnv makes this binary a second process that only reads: the clients of
// the benchmarks, so that what they cost is not counted.
const readersEnv = "PULSE_BENCH_READERS"

func TestMain(m *testing.M) {
	if at := os.Getenv(readersEnv); at != "" {
		readers(at)
		return
	}
	if at := os.Getenv(stormEnv); at != "" {
		storm(at)
		return
	}
	os.Exit(m.Run())
}

// readers opens as many connections as the address says, joins, and reads until
// its standard input ends.
func readers(at string) {
	var n int
	var url string
	fmt.Sscan(at, &n, &url)
	ctx := context.Background()
	for i := range n {
		c, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{"pulse.v1.json"}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		c.SetReadLimit(-1)
		hello := fmt.Sprintf(`{"t":"hello","token":"acme/m%d","rooms":[{"room":"chat:1"}]}`, i)
		if err := c.Write(ctx, websocket.MessageText, []byte(hello)); err != nil {
			os.Exit(1)
		}
		if _, _, err := c.Read(ctx); err != nil {
			os.Exit(1)
		}
		// From here on the bytes are only taken off the socket.
		go func() { _, _ = io.Copy(io.Discard, websocket.NetConn(ctx, c, websocket.MessageText)) }()
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startReaders runs readers for n connections to at, until the benchmark ends, and
// waits until all have joined.
func startReaders(b *testing.B, n int, at net.Addr) {
	b.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d ws://%s/v1/ws", readersEnv, n, at))
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stdin.Close(); _ = child.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		b.Fatal("readers: ", line, err)
	}
}

// counting tells how many frames the engine's connections have been given.
type counting struct {
	*Engine
	written atomic.Int64
	target  atomic.Int64
	reached chan struct{}
}

type countingConn struct {
	transport.Conn
	c *counting
}

func (c *counting) Accept(conn transport.Conn, r transport.Request) transport.Receiver {
	return c.Engine.Accept(countingConn{conn, c}, r)
}

func (c countingConn) Write(b []byte) (bool, error) {
	done, err := c.Conn.Write(b)
	c.c.add(1)
	return done, err
}

func (c *counting) add(n int64) {
	if c.written.Add(n) == c.target.Load() {
		select {
		case c.reached <- struct{}{}:
		default:
		}
	}
}

// keeping remembers the sockets, for the bare loop.
type keeping struct {
	net.Listener
	mu    sync.Mutex
	conns []syscall.RawConn
}

func (k *keeping) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err == nil {
		raw, _ := c.(*net.TCPConn).SyscallConn()
		k.mu.Lock()
		k.conns = append(k.conns, raw)
		k.mu.Unlock()
	}
	return c, err
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func userTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano())
}

// BenchmarkOverBareLoop is the process's CPU per delivery, one frame a write,
// beside a bare loop that writes the same bytes to the same sockets; pairs of
// both alternate, and the median of their ratios is reported.
func BenchmarkOverBareLoop(b *testing.B) {
	for _, size := range []int{128, 1024} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) { overBareLoop(b, 1000, size) })
	}
}

func overBareLoop(b *testing.B, n, size int) {
	e, err := Start(context.Background(), Config{Kinds: []room.Kind{openKind}, Authenticator: asTold{}, TenantDefaults: TenantLimits{SessionRate: noRate}, Limits: Limits{MaxUnauthenticatedPerAddress: n + 1}})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(context.Background())
	c := &counting{Engine: e, reached: make(chan struct{}, 1)}
	sockets := ws.NewHandler(ws.Config{Acceptor: c})
	defer sockets.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	kept := &keeping{Listener: l}
	server := &http.Server{Handler: sockets}
	go server.Serve(kept)
	defer server.Close()

	startReaders(b, n, l.Addr())

	text := make([]byte, size)
	for i := range text {
		text[i] = 'x'
	}
	data, _ := codec.NewData(string(text))
	frame := ws.TextJSON.Wrap(nil, ws.TextJSON.Protocol.Append(nil, codec.NewEvent(
		codec.Topic{Tenant: "acme", Room: "chat:1"}, "message", data, codec.Origin{EID: "0123456789-1", TS: 1}).At(codec.Position{Epoch: "0123456789", Offset: 1})))

	const events = 50
	engine := func() time.Duration {
		before := cpu()
		for range events {
			c.target.Store(c.written.Load() + int64(n))
			if _, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: data}); err != nil {
				b.Fatal(err)
			}
			<-c.reached
		}
		return (cpu() - before) / time.Duration(events*n)
	}
	bare := func() time.Duration {
		before := cpu()
		for range events {
			for _, raw := range kept.conns {
				for sent := false; !sent; {
					_ = raw.Write(func(fd uintptr) bool {
						k, err := syscall.Write(int(fd), frame)
						sent = err == nil && k == len(frame)
						return true
					})
				}
			}
		}
		return (cpu() - before) / time.Duration(events*n)
	}
	engine()
	bare()
	runtime.GC()
	b.ResetTimer()
	var ratios, ours, theirs []float64
	for i := 0; i < max(b.N, 10); i++ {
		var x, y time.Duration
		if i%2 == 0 {
			x, y = engine(), bare()
		} else {
			y, x = bare(), engine()
		}
		ours, theirs = append(ours, float64(x)), append(theirs, float64(y))
		ratios = append(ratios, float64(x)/float64(y))
	}
	slices.Sort(ratios)
	slices.Sort(ours)
	slices.Sort(theirs)
	b.ReportMetric(ours[len(ours)/2], "cpu-ns/delivery")
	b.ReportMetric(theirs[len(theirs)/2], "bare-cpu-ns/delivery")
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(ratios[0], "ratio-min")
	b.ReportMetric(ratios[len(ratios)-1], "ratio-max")
	b.ReportMetric(0, "ns/op")
}
