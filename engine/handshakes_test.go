package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport/ws"
)

// ledgerGate notes who is let in, in order.
type ledgerGate struct {
	*scheduler.Gate
	in []string // guarded by having a place
}

func (g *ledgerGate) Acquire(ctx context.Context, source string) error {
	err := g.Gate.Acquire(ctx, source)
	if err == nil {
		g.in = append(g.in, source)
	}
	return err
}

// However many handshakes of one address wait to be computed, that of another waits
// for one of them.
func TestHandshakesOfOneAddressDoNotDelayAnothers(t *testing.T) {
	cert := certificate()
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		gate := &ledgerGate{Gate: scheduler.NewGate(1)}
		h := &ws.Handshakes{Gate: gate, Source: sourceOf}
		p := servePipes(t, h.Listener, http.NotFoundHandler(), cert)
		if err := gate.Acquire(t.Context(), "the test"); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		dial := func(from string) {
			c := tls.Client(p.dialFrom(from), &tls.Config{InsecureSkipVerify: true})
			wg.Go(func() {
				if err := c.HandshakeContext(t.Context()); err != nil {
					t.Errorf("%s: %v", from, err)
				}
				_ = c.NetConn().Close()
			})
		}
		for range many {
			dial("127.0.0.1")
		}
		synctest.Wait() // they are in line
		dial("127.0.0.2")
		synctest.Wait()
		gate.Release()
		wg.Wait()
		synctest.Wait()
		if at := slices.Index(gate.in, "127.0.0.2"); at < 1 || at > 2 || len(gate.in) != many+2 {
			t.Errorf("of %d it was the %d.", len(gate.in)-1, at)
		}
	})
}

// From accept to hello there is one time, however it is spent: in TLS, over the
// header, with credentials that are looked at, or over the hello. Virtual time.
// B106: reearth/ygo#47, kent8192/reinhardt-web#508
// B112: warmcat/libwebsockets#2154
func TestB106_B112_OneTimeForAllOfAHandshake(t *testing.T) {
	const timeout, share, answer = 10 * time.Second, 7 * time.Second, 100 * time.Millisecond // the last to a close
	hello := string(masked(`{"t":"hello","token":"acme/a"}`))
	upgrade := handshake()
	body := "POST /v1/rooms/chat:1/publish HTTP/1.1\r\nHost: pulse\r\nAuthorization: Bearer acme/a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	cert := certificate()
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
		for _, secure := range []bool{false, true} {
			if name == "slow TLS" && !secure {
				continue
			}
			t.Run(fmt.Sprint(name, " over TLS:", secure), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := start(t, func(c *Config) {
						c.Limits.HandshakeTimeout, c.Limits.WriteTimeout = timeout, answer
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
					var c net.Conn
					began := time.Now()
					if secure {
						c = tls.Client(e.overPipes(t, cert).dial(), &tls.Config{InsecureSkipVerify: true})
						if stages[0] == "TLS" {
							time.Sleep(share)
							stages = stages[1:]
						}
					} else {
						c = e.overPipes(t).dial()
					}
					go func() {
						for i, text := range stages {
							if i > 0 {
								time.Sleep(share)
							}
							_, _ = io.WriteString(c, text)
						}
					}()
					_, _ = io.Copy(io.Discard, c)
					if took := time.Since(began); took < timeout || took > timeout+time.Second {
						t.Errorf("ended after %v", took)
					}
				})
			})
		}
	}
}

// masked is a text frame of a client.
func masked(text string) []byte {
	return append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

// Who has been welcomed in time is not cut when the handshake would have been due, and
// later requests of a connection have times of their own. Virtual time.
func TestTheTimeOfAHandshakeEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		p := start(t, func(c *Config) { c.Limits.HandshakeTimeout = timeout }).overPipes(t)
		c := p.raw(handshake())
		if status, _, _ := c.answer(); status != 101 {
			t.Fatal(status)
		}
		until := func(what string) {
			t.Helper()
			var got strings.Builder
			for b := make([]byte, 4096); !strings.Contains(got.String(), what); {
				n, err := c.in.Read(b)
				if err != nil {
					t.Fatalf("after %q: %v", got.String(), err)
				}
				got.Write(b[:n])
			}
		}
		c.say(string(masked(`{"t":"hello","token":"acme/a"}`)))
		until(`"welcome"`)
		const post = "POST /v1/rooms/chat:1/publish HTTP/1.1\r\nHost: pulse\r\nAuthorization: Bearer acme/a\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n" + `{"event":"message","data":1}`
		r := p.raw(post)
		for range 2 {
			if status, _, f := r.answer(); status != 200 {
				t.Errorf("%d %v", status, f)
			}
			time.Sleep(2 * timeout)
			r.say(post)
		}
		c.say(string(masked(`{"t":"ping","id":1}`)))
		until(`"pong"`)
	})
}
