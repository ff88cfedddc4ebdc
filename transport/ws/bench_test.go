package ws

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/lxzan/gws"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// drained makes a connection whose client throws away what it reads, without
// looking at it: the client is in this process and must cost as little as it can.
func drained(t testing.TB, s side) *guest {
	t.Helper()
	a := newHall()
	site := serve(t, s, Config{Acceptor: a})
	raw, err := net.Dial("tcp", site.addr)
	if err != nil {
		t.Fatal(err)
	}
	client := raw
	if s.tls {
		client = tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	}
	t.Cleanup(func() { _ = raw.Close() })
	if _, err := io.WriteString(client, handshake+"\r\n"); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, client) }() // ends with the connection
	return soon(t, a.guests, "Accept")
}

// A write that the socket takes at once allocates nothing. The client runs in the
// same process, so it is raw and its own reading must not allocate either.
func TestWriteAllocatesNothing(t *testing.T) {
	_, w, g := open(t, Config{Acceptor: newHall()}, nil)
	frame := g.conn.Framing().Wrap(nil, make([]byte, 128))
	buf := make([]byte, 64<<10)
	allocs := testing.AllocsPerRun(1000, func() {
		if done, err := g.conn.Write(frame); !done || err != nil {
			t.Fatalf("write: %v, %v", done, err)
		}
		if _, err := io.ReadFull(w.r, buf[:len(frame)]); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per write", allocs)
	}
}

// BenchmarkWrite measures one write of one frame to a peer that reads, beside
// the bare net.Conn.Write that it is to be compared with.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{128, 4096} {
		b.Run(fmt.Sprintf("net.Conn/%d", size), func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			server, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			defer server.Close()
			go func() { _, _ = io.Copy(io.Discard, client) }() // ends with the connection
			frame := make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := server.Write(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, s := range sides {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(s.name, " ", "-"), size), func(b *testing.B) {
				g := drained(b, s)
				ready := make(chan error, 1)
				g.conn.ready = func(err error) { ready <- err }
				frame := g.conn.Framing().Wrap(nil, make([]byte, size))
				b.ReportAllocs()
				for b.Loop() {
					done, err := g.conn.Write(frame)
					if err == nil && !done {
						err = <-ready
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// repeat is a client that sends the same bytes n times, without a kernel.
type repeat struct {
	script
	b []byte
	n int
	i int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b[r.i:])
	if r.i += n; r.i == len(r.b) {
		r.i, r.n = 0, r.n-1
	}
	return n, nil
}

type counter struct{ witness }

func (*counter) Message([]byte, bool) {}
func (*counter) Closed(codec.Cause)   {}

// lobby is an Acceptor that keeps nothing but how many came.
type lobby struct {
	counter
	came chan struct{}
}

func (l *lobby) Accept(transport.Conn, transport.Request) transport.Receiver {
	l.came <- struct{}{}
	return &l.counter
}

type bareEvents struct {
	gws.BuiltinEventHandler
	n int
}

func (e *bareEvents) OnMessage(_ *gws.Conn, m *gws.Message) {
	_ = append([]byte(nil), m.Bytes()...)
	e.n++
	_ = m.Close()
}

// BenchmarkInbound measures a message through the checker and gws, beside gws
// alone with the same read buffer, both copying the message.
func BenchmarkInbound(b *testing.B) {
	for _, size := range []int{128, 4096} {
		frame := clientFrame(0x81, bytes.Repeat([]byte("x"), size))
		b.Run(fmt.Sprintf("bare-gws/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			u := gws.NewUpgrader(&bareEvents{}, &gws.ServerOption{CheckUtf8Enabled: true})
			c := &repeat{b: frame, n: b.N}
			socket, err := u.UpgradeFromConn(c, bufio.NewReaderSize(c, 512), upgrade{key: "AAAAAAAAAAAAAAAAAAAAAA=="}.request())
			if err != nil {
				b.Fatal(err)
			}
			socket.ReadLoop()
		})
		b.Run(fmt.Sprintf("reader/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			h := NewHandler(Config{Acceptor: new(counter)})
			c := &repeat{b: frame, n: b.N}
			u := upgrade{key: "AAAAAAAAAAAAAAAAAAAAAA==", protocol: codec.Protocols()[0]}
			r := h.newReader(c, bufio.NewReader(bytes.NewReader(nil)), u)
			var err error
			if r.gws, err = h.upgraders[flavour{}].UpgradeFromConn(r, bufio.NewReaderSize(r, 512), u.request()); err != nil {
				b.Fatal(err)
			}
			r.upgraded()
			r.receiver = new(counter)
			r.gws.ReadLoop()
		})
	}
}

const (
	idleClients = 2000
	idleEnv     = "PULSE_WS_IDLE_CLIENTS" // address to connect to; see TestIdleClients
)

// TestIdleClients is the client process of BenchmarkIdle, which needs one of its
// own so that only the server's memory is measured. On its own it checks only
// that it was not started by accident.
func TestIdleClients(t *testing.T) {
	addr := os.Getenv(idleEnv)
	if addr == "" {
		return
	}
	site := &site{addr: addr}
	for range idleClients {
		site.wire(t).upgrade(nil)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the server's process is done
}

// BenchmarkIdle reports what an idle connection costs its server: resident
// memory, heap, stacks and goroutines.
func BenchmarkIdle(b *testing.B) {
	for b.Loop() {
		a := &lobby{came: make(chan struct{}, idleClients)}
		site := serve(b, sides[0], Config{Acceptor: a})
		before := measure(b)
		clients := exec.Command(os.Args[0], "-test.run=^TestIdleClients$", "-test.count=1")
		clients.Env = append(os.Environ(), idleEnv+"="+site.addr)
		stdin, err := clients.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := clients.Start(); err != nil {
			b.Fatal(err)
		}
		for range idleClients {
			soon(b, a.came, "Accept")
		}
		after := measure(b)
		b.ReportMetric((after.resident-before.resident)/idleClients, "resident-B/conn")
		b.ReportMetric((after.heap-before.heap)/idleClients, "heap-B/conn")
		b.ReportMetric((after.stack-before.stack)/idleClients, "stack-B/conn")
		b.ReportMetric((after.goroutines-before.goroutines)/idleClients, "goroutines/conn")
		if err := stdin.Close(); err != nil {
			b.Fatal(err)
		}
		if err := clients.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

type footprint struct{ resident, heap, stack, goroutines float64 }

func measure(b *testing.B) footprint {
	b.Helper()
	runtime.GC() // pools let go of what they hold in the second collection
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("no /proc")
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		b.Fatal(err)
	}
	return footprint{
		resident:   float64(pages * os.Getpagesize()),
		heap:       float64(m.HeapAlloc),
		stack:      float64(m.StackInuse),
		goroutines: float64(runtime.NumGoroutine()),
	}
}
