package client_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// Source: zachowj/node-red-contrib-home-assistant-websocket#2028. Every stage of a
// handshake that stops half way ends by its own deadline, and is tried again.
func TestB152_HalfOpenHandshakes(t *testing.T) {
	for rule, half := range map[string]struct{ scheme, answer string }{
		"a connection that is accepted and never answered": {"ws", ""},
		"TLS that is never answered":                       {"wss", ""},
		"half an answer":                                   {"ws", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"},
		"half a refusal":                                   {"ws", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 1000\r\n"},
	} {
		t.Run(rule, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			c := start(t, half.scheme+"://"+l.Addr().String(), "alice", func(o *client.Options) { o.Timeout = 50 * time.Millisecond })
			defer c.Close()
			for answered := 0; answered < 3; {
				conn, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if half.answer != "" {
					if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
						continue // its time was up before it had asked
					}
					_, _ = conn.Write([]byte(half.answer)) // it may have gone by now
				}
				answered++
			}
			if err := c.Status().Err; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("an upgrade without a welcome", func(t *testing.T) {
		s := play(t, codec.JSON)
		c := start(t, s.url, "alice", func(o *client.Options) { o.Timeout = time.Second })
		for range 3 {
			expect[*codec.Hello](s.next())
		}
		s.greet(nil)
		if _, err := c.Session(soon(t)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a token that never comes", func(t *testing.T) {
		s := play(t, codec.JSON)
		var asked atomic.Int64
		start(t, s.url, "", func(o *client.Options) {
			o.Timeout = time.Second
			o.Token = func(ctx context.Context) (string, error) {
				if asked.Add(1) < 3 {
					<-ctx.Done()
				}
				return "late", ctx.Err()
			}
		})
		s.greet(nil)
	})
}
