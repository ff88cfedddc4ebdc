package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
)

// A client that sends what it promised byte by byte is cut when a hello would have
// been due, wherever its request goes, and whoever else comes is served.
// warmcat/libwebsockets#2154, kent8192/reinhardt-web#508
func TestB112_SlowBodiesAreCut(t *testing.T) {
	const timeout = 300 * time.Millisecond
	w := startWeb(t, func(c *Config) { c.Limits.HandshakeTimeout = timeout })
	address := strings.TrimPrefix(w.url, "http://")
	for name, head := range map[string]string{
		"a publish":               "POST /v1/rooms/chat:1/publish HTTP/1.1\r\nAuthorization: Bearer acme/a\r\nContent-Type: application/json",
		"of a foreign origin":     "POST /v1/rooms/chat:1/publish HTTP/1.1\r\nOrigin: https://evil.example\r\nContent-Type: application/json",
		"of a kind that is none":  "POST /v1/rooms/chat:1/publish HTTP/1.1\r\nContent-Type: text/plain",
		"to where there is none":  "POST /nowhere HTTP/1.1",
		"to what takes no POST":   "POST /v1/negotiate HTTP/1.1",
		"of a GET":                "GET /v1/negotiate HTTP/1.1",
		"an upgrade with a body":  "GET /v1/ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket",
		"with a preflight's name": "OPTIONS /v1/rooms/chat:1/publish HTTP/1.1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			began := time.Now()
			if _, err := fmt.Fprintf(c, "%s\r\nHost: pulse\r\nContent-Length: 1000\r\n\r\n", head); err != nil {
				t.Fatal(err)
			}
			ended := make(chan time.Duration, 1)
			go func() {
				_, _ = io.Copy(io.Discard, c) // to its end, of whichever kind
				ended <- time.Since(began)
			}()
			drip := time.NewTicker(20 * time.Millisecond)
			defer drip.Stop()
			late := time.After(10 * time.Second)
			for {
				select {
				case took := <-ended:
					if took > 10*timeout {
						t.Errorf("cut after %v", took)
					}
					return
				case <-drip.C:
					_, _ = c.Write([]byte("x"))
				case <-late:
					t.Fatal("never cut")
				}
			}
		})
	}
	t.Run("others are served", func(t *testing.T) {
		t.Parallel()
		if resp, f := w.do("POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":1}`, asAlice); resp.StatusCode != 200 {
			t.Errorf("%d %v", resp.StatusCode, f)
		}
	})
}

// Once a request is read its answer may take longer than a hello.
func TestAnswersMayTakeLongerThanAHello(t *testing.T) {
	const timeout = 200 * time.Millisecond
	e := start(t, func(c *Config) {
		c.Limits.HandshakeTimeout = timeout
		c.Kinds = []room.Kind{serving("desk", func(_ *room.Context, c *room.Command) (any, error) {
			reply := c.Later()
			time.AfterFunc(2*timeout, func() { reply.Answer("late", nil) })
			return nil, nil
		})}
	})
	s := httptest.NewServer(e.Handler())
	defer s.Close()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	const head = "POST /v1/rooms/desk:1/commands/a HTTP/1.1\r\nHost: pulse\r\nAuthorization: Bearer acme/a\r\nContent-Type: application/json\r\n"
	for range 2 { // the second on the same connection
		fmt.Fprint(c, head+"Content-Length: 10\r\n\r\n{\"data\":1}")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(text), `"late"`) {
			t.Errorf("%d %s %v", resp.StatusCode, text, err)
		}
		time.Sleep(2 * timeout) // a connection at rest is hurried by nobody
	}
}
