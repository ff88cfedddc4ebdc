package engine

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
	"github.com/yaza-dev/pulse/transport/ws"
)

// stormEnv makes this binary a second process that only connects: the storm of the
// benchmarks, so that it is not part of the process that is measured.
const stormEnv = "PULSE_BENCH_STORM"

// storm connects as often as at says: "times secure address".
func storm(at string) {
	var times int
	var secure bool
	var address string
	fmt.Sscan(at, &times, &secure, &address)
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(times))
	for i := range 32 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := visit(address, secure, fmt.Sprint("storm/s", i)); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		})
	}
	wg.Wait()
}

// visit connects, says hello and waits for the first answer to what it said.
func visit(address string, secure bool, token string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if secure {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	in := bufio.NewReader(c)
	if _, err := c.Write([]byte(handshake("Connection: close"))); err != nil {
		return err
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return err
	}
	if _, err := c.Write(masked(fmt.Sprintf(`{"t":"hello","token":%q}`, token))); err != nil {
		return err
	}
	_, err = in.ReadByte() // of the welcome
	return err
}

// doors are an engine and a server that does nothing with requests but answer, on two
// listeners of the same make.
func doors(b *testing.B, secure bool) (e *Engine, ours, bare string) {
	b.Helper()
	e, err := Start(context.Background(), Config{
		Kinds: []room.Kind{openKind}, Authenticator: asTold{}, TenantDefaults: TenantLimits{SessionRate: noRate},
		Limits: Limits{AcceptRate: -1, AcceptRatePerAddress: -1, MaxUnauthenticatedPerAddress: 1_000, Ping: time.Hour},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close(context.Background()) })
	serve := func(h http.Handler, wrap func(net.Listener) net.Listener) string {
		s := httptest.NewUnstartedServer(h)
		s.Listener = wrap(s.Listener)
		s.Config.ConnContext, s.Config.ErrorLog = ws.ConnContext, log.New(io.Discard, "", 0)
		if secure {
			s.StartTLS()
		} else {
			s.Start()
		}
		b.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	ours = serve(e.Handler(), e.Listener)
	bare = serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(l net.Listener) net.Listener { return l })
	return e, ours, bare
}

// BenchmarkSpawn is how many sessions begin a second, from the first byte of a
// connection to the welcome, with clients in the same process; beside it, on sockets,
// how many connections a server gets that answers one request of each and does nothing.
func BenchmarkSpawn(b *testing.B) {
	const clients = 8
	each := func(b *testing.B, n int, do func(i int) error) float64 {
		var wg sync.WaitGroup
		var left atomic.Int64
		left.Store(int64(n))
		began := time.Now()
		for range clients {
			wg.Go(func() {
				for i := left.Add(-1); i >= 0; i = left.Add(-1) {
					if err := do(int(i)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return float64(n) / time.Since(began).Seconds()
	}
	b.Run("memory", func(b *testing.B) {
		e, _, _ := doors(b, false)
		b.ReportAllocs()
		b.ResetTimer()
		b.ReportMetric(each(b, b.N, func(i int) error {
			c := memory.Dial(e, protocol(codec.JSON), memory.Options{})
			if err := c.Send(fmt.Appendf(nil, `{"t":"hello","token":"acme/m%d"}`, i)); err != nil {
				return err
			}
			_, err := c.Recv(context.Background())
			c.Cut()
			<-c.Done()
			return err
		}), "sessions/s")
	})
	for name, secure := range map[string]bool{"TCP": false, "TLS": true} {
		b.Run(name, func(b *testing.B) {
			_, ours, bare := doors(b, secure)
			b.ReportAllocs()
			b.ResetTimer()
			x := each(b, b.N, func(i int) error { return visit(ours, secure, fmt.Sprint("acme/m", i)) })
			b.StopTimer()
			y := each(b, b.N, func(i int) error { return visit(bare, secure, "") })
			b.ReportMetric(x, "sessions/s")
			b.ReportMetric(y, "bare-connections/s")
			b.ReportMetric(x/y, "ratio")
		})
	}
}

// BenchmarkConnectStorm is how long an event of a quiet tenant takes, from when it was
// due to when its member has it: with nothing beside it, while another process makes
// 10,000 connections (2,000 over TLS) to a server that does nothing, and while it makes them, hello and
// all, to the engine itself.
func BenchmarkConnectStorm(b *testing.B) {
	const every = 5 * time.Millisecond
	for name, secure := range map[string]bool{"TCP": false, "TLS": true} {
		b.Run(name, func(b *testing.B) {
			connects := 10_000
			if secure {
				connects = 2_000
			}
			e, ours, bare := doors(b, secure)
			member := memory.Dial(e, protocol(codec.JSON), memory.Options{})
			if err := member.Send([]byte(`{"t":"hello","token":"quiet/m","rooms":[{"room":"chat:1"}]}`)); err != nil {
				b.Fatal(err)
			}
			if _, err := member.Recv(context.Background()); err != nil {
				b.Fatal(err)
			}
			took := func(beside string, over <-chan error) {
				var all []time.Duration
				for due := time.Now(); ; due = due.Add(every) {
					select {
					case err := <-over:
						if err != nil {
							b.Fatal(err)
						}
						slices.Sort(all)
						b.ReportMetric(float64(all[len(all)/2].Microseconds()), beside+"-p50-µs")
						b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), beside+"-p99-µs")
						return
					case <-time.After(time.Until(due)):
					}
					if _, err := e.TryPublish(Event{Tenant: "quiet", Room: "chat:1", Name: "message", Data: 1}); err != nil {
						b.Fatal(err)
					}
					if _, err := member.Recv(context.Background()); err != nil {
						b.Fatal(err)
					}
					all = append(all, time.Since(due))
				}
			}
			against := func(address string) <-chan error {
				child := exec.Command(os.Args[0])
				child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %v %s", stormEnv, connects, secure, address))
				var said strings.Builder
				child.Stderr = &said
				over := make(chan error, 1)
				go func() {
					err := child.Run()
					if err == nil && said.Len() > 0 {
						err = fmt.Errorf("a storm that is none: %.200s", &said)
					}
					over <- err
				}()
				return over
			}
			for range b.N {
				quiet := make(chan error, 1)
				time.AfterFunc(3*time.Second, func() { quiet <- nil })
				took("alone", quiet)
				began := time.Now()
				took("bare", against(bare))
				b.ReportMetric(float64(connects)/time.Since(began).Seconds(), "bare-connects/s")
				began = time.Now()
				took("storm", against(ours))
				b.ReportMetric(float64(connects)/time.Since(began).Seconds(), "connects/s")
			}
			b.ReportMetric(0, "ns/op")
			member.Cut()
			<-member.Done()
		})
	}
}
