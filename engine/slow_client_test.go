package engine

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
)

// unchanged is for who does not listen by Engine.Listener.
func unchanged(l net.Listener) net.Listener { return l }

// A client that sends what it promised byte by byte is cut when a hello would have
// been due, wherever its request goes, and whoever else comes is served. Virtual time.
// warmcat/libwebsockets#2154, kent8192/reinhardt-web#508
func TestB112_SlowBodiesAreCut(t *testing.T) {
	const timeout = 10 * time.Second
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
			synctest.Test(t, func(t *testing.T) {
				e := start(t, func(c *Config) { c.Limits.HandshakeTimeout = timeout })
				p := servePipes(t, unchanged, e.Handler())
				c, began := p.dial(), time.Now()
				var drip sync.WaitGroup
				drip.Go(func() {
					_, err := fmt.Fprintf(c, "%s\r\nHost: pulse\r\nContent-Length: 1000\r\n\r\n", head)
					for ; err == nil; _, err = c.Write([]byte("x")) {
						time.Sleep(500 * time.Millisecond)
					}
				})
				time.Sleep(timeout / 2)
				const publish = "POST /v1/rooms/chat:1/publish HTTP/1.1\r\nHost: pulse\r\nAuthorization: Bearer acme/b\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n"
				if status, _, f := p.raw(publish + `{"event":"message","data":1}`).answer(); status != 200 {
					t.Errorf("another is answered %d %v", status, f)
				}
				_, _ = io.Copy(io.Discard, c) // to its end, of whichever kind
				if took := time.Since(began); took > timeout+time.Second {
					t.Errorf("cut after %v", took)
				}
				drip.Wait()
			})
		})
	}
}

// Once a request is read its answer may take longer than a hello. Virtual time.
func TestAnswersMayTakeLongerThanAHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		e := start(t, func(c *Config) {
			c.Limits.HandshakeTimeout = timeout
			c.Kinds = []room.Kind{serving("desk", func(_ *room.Context, c *room.Command) (any, error) {
				reply := c.Later()
				time.AfterFunc(2*timeout, func() { reply.Answer("late", nil) })
				return nil, nil
			})}
		})
		p := servePipes(t, unchanged, e.Handler())
		const command = "POST /v1/rooms/desk:1/commands/a HTTP/1.1\r\nHost: pulse\r\nAuthorization: Bearer acme/a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"data\":1}"
		r := p.raw(command)
		for range 2 { // the second on the same connection
			if status, _, f := r.answer(); status != 200 || f.at("ok.data") != "late" {
				t.Errorf("%d %v", status, f)
			}
			time.Sleep(2 * timeout) // a connection at rest is hurried by nobody
			r.say(command)
		}
	})
}
