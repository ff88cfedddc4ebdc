package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport/ws"
)

// ledgerGate notes who is let in, in order.
type ledgerGate struct {
	*scheduler.Gate
	mu   sync.Mutex
	came int
	in   []string
}

func (g *ledgerGate) Acquire(ctx context.Context, source string) error {
	g.mu.Lock()
	g.came++
	g.mu.Unlock()
	err := g.Gate.Acquire(ctx, source)
	if err == nil {
		g.mu.Lock()
		g.in = append(g.in, source)
		g.mu.Unlock()
	}
	return err
}

func (g *ledgerGate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.came - len(g.in)
}

// However many handshakes of one address wait to be computed, that of another waits
// for one of them.
func TestHandshakesOfOneAddressDoNotDelayAnothers(t *testing.T) {
	const many = 1_000
	gate := &ledgerGate{Gate: scheduler.NewGate(1)}
	h := &ws.Handshakes{Gate: gate, Source: sourceOf}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Listener = h.Listener(s.Listener)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	address := s.Listener.Addr().String()
	if err := gate.Acquire(t.Context(), "the test"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	dial := func(from string) {
		wg.Go(func() {
			d := tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}, Config: &tls.Config{InsecureSkipVerify: true}}
			c, err := d.DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Errorf("%s: %v", from, err)
				return
			}
			c.Close()
		})
	}
	for range many {
		dial("127.0.0.1")
	}
	settled(t, "all wait", func() bool { return gate.waiting() == many })
	dial("127.0.0.2")
	settled(t, "the other waits", func() bool { return gate.waiting() == many+1 })
	gate.Release()
	wg.Wait()
	at := 0
	for i, source := range gate.in[1:] {
		if source == "127.0.0.2" {
			at = i + 1
			break
		}
	}
	if at == 0 || at > 2 {
		t.Errorf("of %d it was the %d.", len(gate.in)-1, at)
	}
}

// From accept to hello there is one time, however it is spent: in TLS, over the
// header, with credentials that are looked at, or over the hello.
// B106: reearth/ygo#47, kent8192/reinhardt-web#508
// B112: warmcat/libwebsockets#2154
func TestB106_B112_OneTimeForAllOfAHandshake(t *testing.T) {
	const timeout, share = 2 * time.Second, 1500 * time.Millisecond
	for _, secure := range []bool{false, true} {
		e := start(t, func(c *Config) {
			c.Limits.HandshakeTimeout, c.Limits.WriteTimeout = timeout, 100*time.Millisecond // the latter for the answer to a close
			c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
				if cr.Token == "acme/slow" {
					select {
					case <-time.After(share):
					case <-ctx.Done():
					}
				}
				return asTold{}.Authenticate(ctx, cr)
			})
		})
		s := httptest.NewUnstartedServer(e.Handler())
		s.Listener = e.Listener(s.Listener)
		s.Config.ConnContext, s.Config.ErrorLog = ws.ConnContext, log.New(io.Discard, "", 0)
		if secure {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		hello := string(masked(`{"t":"hello","token":"acme/a"}`))
		upgrade := handshake()
		body := "POST /v1/rooms/chat:1/publish HTTP/1.1\r\nHost: pulse\r\nAuthorization: Bearer acme/a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
		for name, stages := range map[string][]string{ // what is said after each share of the time, but the first at once
			"nothing":                          {""},
			"a slow header":                    {upgrade[:20], upgrade[20:40]},
			"a slow header, no hello":          {upgrade[:20], upgrade[20:]},
			"a slow hello":                     {upgrade + hello[:3], hello[3:5]},
			"slow credentials, no hello":       {handshake("Authorization: Bearer acme/slow")},
			"slow credentials in a slow hello": {upgrade, string(masked(`{"t":"hello","token":"acme/slow"}`))},
			"a slow header, then a slow body":  {body[:20], body[20:]},
			"slow TLS":                         {"TLS", upgrade},
		} {
			if name == "slow TLS" && !secure {
				continue
			}
			t.Run(fmt.Sprint(name, " over TLS:", secure), func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				plain, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer plain.Close()
				c := plain
				if secure {
					if stages[0] == "TLS" {
						time.Sleep(share)
						stages = stages[1:]
					}
					c = tls.Client(plain, &tls.Config{InsecureSkipVerify: true})
				}
				ended := make(chan time.Duration, 1)
				go func() {
					for i, text := range stages {
						if i > 0 {
							time.Sleep(share)
						}
						_, _ = io.WriteString(c, text)
					}
				}()
				go func() {
					_, _ = io.Copy(io.Discard, c)
					ended <- time.Since(began)
				}()
				select {
				case took := <-ended:
					if took < timeout-100*time.Millisecond || took > timeout+share-200*time.Millisecond {
						t.Errorf("ended after %v", took)
					}
				case <-time.After(20 * time.Second):
					t.Error("it never ended")
				}
			})
		}
	}
}

// masked is a text frame of a client.
func masked(text string) []byte {
	return append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

// Who has been welcomed in time is not cut when the handshake would have been due, and
// later requests of a connection have times of their own.
func TestTheTimeOfAHandshakeEndsWithIt(t *testing.T) {
	const timeout = 500 * time.Millisecond
	w := startWeb(t, func(c *Config) { c.Limits.HandshakeTimeout = timeout })
	s := httptest.NewUnstartedServer(w.e.Handler())
	s.Listener = w.e.Listener(s.Listener)
	s.Config.ConnContext = ws.ConnContext
	s.Start()
	defer s.Close()
	w.url = s.URL
	c := w.raw(handshake())
	if status, _, _ := c.answer(); status != 101 {
		t.Fatal(status)
	}
	c.say(string(masked(`{"t":"hello","token":"acme/a"}`)))
	const post = "POST /v1/rooms/chat:1/publish HTTP/1.1\r\nHost: pulse\r\nAuthorization: Bearer acme/a\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n" + `{"event":"message","data":1}`
	p := w.raw(post)
	for range 2 {
		if status, _, f := p.answer(); status != 200 {
			t.Errorf("%d %v", status, f)
		}
		time.Sleep(2 * timeout)
		p.say(post)
	}
	c.say(string(masked(`{"t":"ping","id":1}`)))
	head := make([]byte, 4096)
	var got strings.Builder
	for !strings.Contains(got.String(), `"pong"`) {
		n, err := c.in.Read(head)
		if err != nil {
			t.Fatalf("after %q: %v", got.String(), err)
		}
		got.Write(head[:n])
	}
}
