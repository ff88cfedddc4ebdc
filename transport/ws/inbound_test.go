package ws

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/lxzan/gws"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// inboundEnv makes TestInboundClient the client process of BenchmarkInboundShare,
// which measures the processor time of its own process: address, path, size of a
// message, messages a round, TLS.
const inboundEnv = "PULSE_WS_INBOUND_CLIENT"

// TestInboundClient checks on its own only that it was not started by accident.
func TestInboundClient(t *testing.T) {
	args := strings.Fields(os.Getenv(inboundEnv))
	if len(args) == 0 {
		return
	}
	size, _ := strconv.Atoi(args[2])
	count, _ := strconv.Atoi(args[3])
	c, err := net.Dial("tcp", args[0])
	if err != nil {
		t.Fatal(err)
	}
	if args[4] == "true" {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	r := bufio.NewReader(c)
	if _, err := io.WriteString(c, strings.Replace(handshake, "/v1/ws", args[1], 1)+"\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := http.ReadResponse(r, nil); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	frame := clientFrame(bitFin|opText, bytes.Repeat([]byte("x"), size))
	many := bytes.Repeat(frame, max(1, (64<<10)/len(frame)))
	for {
		if _, err := r.ReadByte(); err != nil {
			return // the benchmark is over
		}
		for left := count * len(frame); left > 0; {
			n, err := c.Write(many[:min(left, len(many))])
			if err != nil {
				return
			}
			left -= n
		}
	}
}

// sink counts messages, and says when a round of them is whole. It is what gws
// calls directly, and what the Handler calls through its reader; both copy the
// message.
type sink struct {
	gws.BuiltinEventHandler
	count int32
	got   atomic.Int32
	whole chan struct{}
	begin chan func() // has one function, which has the client send a round
}

func newSink(count int) *sink {
	return &sink{count: int32(count), whole: make(chan struct{}, 1), begin: make(chan func(), 1)}
}

func (s *sink) message() {
	if s.got.Add(1) == s.count {
		s.got.Store(0)
		s.whole <- struct{}{}
	}
}

func (s *sink) OnOpen(c *gws.Conn) {
	s.begin <- func() { _, _ = c.NetConn().Write([]byte{'x'}) }
}

func (s *sink) OnMessage(_ *gws.Conn, m *gws.Message) {
	_ = append([]byte(nil), m.Bytes()...)
	s.message()
	_ = m.Close()
}

func (*sink) Admit(*http.Request) *codec.Error { return nil }
func (*sink) Abandon(*http.Request)            {}
func (*sink) Alive()                           {}
func (*sink) Closed(codec.Cause)               {}
func (s *sink) Message([]byte, bool)           { s.message() }
func (s *sink) Accept(c transport.Conn, _ transport.Request) transport.Receiver {
	s.begin <- func() { _, _ = c.Write([]byte{'x'}) }
	return s
}

// BenchmarkInboundShare measures what being strict costs of all that receiving a
// message costs, the kernel included: processor time of this process for messages
// that another one sends, through the reader and through bare gws, in 20 pairs that
// take turns. It reports the medians, and the least and greatest of the pairs.
func BenchmarkInboundShare(b *testing.B) {
	const pairs, bytesARound = 20, 24 << 20
	for _, s := range sides[:2] {
		for _, size := range []int{128, 1 << 10, 16 << 10} {
			b.Run(fmt.Sprintf("%s/%d", s.name, size), func(b *testing.B) {
				count := bytesARound / (size + 256)
				strict, bare := newSink(count), newSink(count)
				h := NewHandler(Config{Acceptor: strict})
				u := gws.NewUpgrader(bare, &gws.ServerOption{CheckUtf8Enabled: true, ReadBufferSize: h.config.ReadBuffer})
				mux := http.NewServeMux()
				mux.Handle("/v1/ws", h)
				mux.HandleFunc("/bare", func(w http.ResponseWriter, r *http.Request) {
					if socket, err := u.Upgrade(w, r); err == nil {
						go socket.ReadLoop() // ends with the client
					}
				})
				site := serveHTTP(b, s, h, mux)
				rounds := map[string]func() float64{}
				for path, k := range map[string]*sink{"/v1/ws": strict, "/bare": bare} {
					client := exec.Command(os.Args[0], "-test.run=^TestInboundClient$", "-test.count=1")
					client.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d %t", inboundEnv, site.addr, path, size, count, s.tls))
					if err := client.Start(); err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = client.Process.Kill(); _ = client.Wait() })
					begin := soon(b, k.begin, "the client")
					rounds[path] = func() float64 {
						before := processorTime(b)
						begin()
						<-k.whole
						return float64(processorTime(b)-before) / float64(count)
					}
				}
				for range 2 { // warms up
					rounds["/v1/ws"]()
					rounds["/bare"]()
				}
				var ours, theirs, ratios []float64
				for b.Loop() {
					for i := range pairs {
						first, second := "/v1/ws", "/bare"
						if i%2 == 1 {
							first, second = second, first
						}
						took := map[string]float64{}
						took[first] = rounds[first]()
						took[second] = rounds[second]()
						ours = append(ours, took["/v1/ws"])
						theirs = append(theirs, took["/bare"])
						ratios = append(ratios, took["/v1/ws"]/took["/bare"])
					}
				}
				slices.Sort(ours)
				slices.Sort(theirs)
				slices.Sort(ratios)
				b.ReportMetric(ours[len(ours)/2], "ns/message")
				b.ReportMetric(theirs[len(theirs)/2], "ns/reference")
				b.ReportMetric(ratios[len(ratios)/2], "ratio")
				b.ReportMetric(ratios[0], "ratio-least")
				b.ReportMetric(ratios[len(ratios)-1], "ratio-most")
			})
		}
	}
}

// processorTime is what this process has used, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
