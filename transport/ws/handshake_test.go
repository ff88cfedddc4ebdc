package ws

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// hall is an Acceptor that counts admissions and hands out its connections.
type hall struct {
	refusal   *codec.Error
	onMessage func([]byte) // runs on the reader goroutine

	admitted, abandoned atomic.Int64
	guests              chan *guest
}

func newHall() *hall { return &hall{guests: make(chan *guest, 4096)} }

func (h *hall) Admit(*http.Request) *codec.Error {
	if h.refusal == nil {
		h.admitted.Add(1)
	}
	return h.refusal
}

func (h *hall) Abandon(*http.Request) { h.abandoned.Add(1) }

func (h *hall) Accept(c transport.Conn, r transport.Request) transport.Receiver {
	g := &guest{hall: h, conn: c.(*conn), request: r, messages: make(chan string, 64), closed: make(chan codec.Cause, 2)}
	c.OnReady(func(err error) { g.ready.Add(1) })
	h.guests <- g
	return g
}

// guest is one connection.
type guest struct {
	hall     *hall
	conn     *conn
	request  transport.Request
	messages chan string
	closed   chan codec.Cause
	ready    atomic.Int64
}

func (g *guest) Message(b []byte, _ bool) {
	if g.hall.onMessage != nil {
		g.hall.onMessage(b)
	}
	g.messages <- string(b)
}
func (g *guest) Alive()                   {}
func (g *guest) Closed(cause codec.Cause) { g.closed <- cause }

// soon returns what must come.
func soon[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

const handshake = "GET /v1/ws HTTP/1.1\r\nHost: pulse\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

// wire is a client that writes bytes as they are.
type wire struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (s *site) wire(t testing.TB) *wire {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &wire{t, c, bufio.NewReader(c)}
}

func (w *wire) send(b []byte) {
	w.t.Helper()
	if _, err := w.Write(b); err != nil {
		w.t.Fatal(err)
	}
}

// upgrade sends a handshake, and more behind it in the same write.
func (w *wire) upgrade(more []byte) *http.Response {
	w.t.Helper()
	w.send(append([]byte(handshake+"\r\n"), more...))
	response := w.response()
	if response.StatusCode != http.StatusSwitchingProtocols {
		w.t.Fatalf("status %s", response.Status)
	}
	return response
}

func (w *wire) response() *http.Response {
	w.t.Helper()
	response, err := http.ReadResponse(w.r, &http.Request{Method: http.MethodGet})
	if err != nil {
		w.t.Fatal(err)
	}
	return response
}

// frame reads one server frame of at most 125 bytes.
func (w *wire) frame() (head byte, payload []byte) {
	w.t.Helper()
	var b [2]byte
	if _, err := io.ReadFull(w.r, b[:]); err != nil {
		w.t.Fatalf("no frame: %v", err)
	}
	payload = make([]byte, b[1])
	if _, err := io.ReadFull(w.r, payload); err != nil {
		w.t.Fatal(err)
	}
	return b[0], payload
}

// rest reads until the server closes the connection.
func (w *wire) rest() []byte {
	w.t.Helper()
	b, err := io.ReadAll(w.r)
	if err != nil {
		w.t.Fatalf("the server did not close the connection in order: %v", err)
	}
	return b
}

// L2, L5, L17 of what is known about gws; RFC 6455, section 4.2.1.
func TestHandshakeIsCheckedBeforeAnybodyIsAsked(t *testing.T) {
	a := newHall()
	site := serve(t, sides[0], Config{Acceptor: a})
	for _, test := range []struct {
		rule     string
		from, to string // replaced in the handshake
		status   int
		header   string
	}{
		{"method", "GET", "POST", 405, "Allow: GET"},
		{"HTTP/1.0", "HTTP/1.1", "HTTP/1.0", 400, ""},
		{"no upgrade", "Upgrade: websocket", "X: y", 400, ""},
		{"another upgrade", "Upgrade: websocket", "Upgrade: h2c, websockets", 400, ""},
		{"connection without upgrade", "keep-alive, Upgrade", "keep-alive", 400, ""},
		{"no version", "Sec-WebSocket-Version: 13", "X: y", 426, "Sec-Websocket-Version: 13"},
		{"version 8", "Version: 13", "Version: 8", 426, "Sec-Websocket-Version: 13"},
		{"no key", "Sec-WebSocket-Key", "X", 400, ""},
		{"short key", "AAAAAAAAAAAAAAAAAAAAAA==", "short", 400, ""},
		{"key of 15 bytes", "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAA", 400, ""},
		{"key of 17 bytes", "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAAA=", 400, ""},
		{"two keys", "Upgrade: websocket", "Upgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", 400, ""},
		{"a body", "Upgrade: websocket", "Upgrade: websocket\r\nContent-Length: 1", 400, ""},
		{"no known subprotocol", "Upgrade: websocket", "Upgrade: websocket\r\nSec-WebSocket-Protocol: graphql-ws, pulse.v2", 400, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := site.wire(t)
			w.send([]byte(strings.Replace(handshake, test.from, test.to, 1) + "\r\nx"))
			response := w.response()
			if response.StatusCode != test.status {
				t.Errorf("status %d, want %d", response.StatusCode, test.status)
			}
			if name, value, _ := strings.Cut(test.header, ": "); name != "" && response.Header.Get(name) != value {
				t.Errorf("%s: %q, want %q", name, response.Header.Get(name), value)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil || (len(body) > 0 && !bytes.HasPrefix(body, []byte(`{"err":`))) {
				t.Errorf("body %s, %v", body, err)
			}
		})
	}
	if n := a.admitted.Load(); n != 0 {
		t.Errorf("%d admissions were asked for", n)
	}
}

func TestSubprotocolIsTheClientsFirstKnownOffer(t *testing.T) {
	a := newHall()
	site := serve(t, sides[0], Config{Acceptor: a})
	for _, test := range []struct {
		name, offer, chosen string
		framing             *codec.Framing
		answer              string
	}{
		{"no offer", "", "pulse.v1.json", TextJSON, ""},
		{"json", "Sec-WebSocket-Protocol: pulse.v1.json\r\n", "pulse.v1.json", TextJSON, "pulse.v1.json"},
		{"msgpack", "Sec-WebSocket-Protocol: pulse.v1.msgpack\r\n", "pulse.v1.msgpack", BinaryMsgpack, "pulse.v1.msgpack"},
		{"the client's order", "Sec-WebSocket-Protocol: x, pulse.v1.msgpack , pulse.v1.json\r\n", "pulse.v1.msgpack", BinaryMsgpack, "pulse.v1.msgpack"},
		{"several headers", "Sec-WebSocket-Protocol: x\r\nSec-WebSocket-Protocol: pulse.v1.json, pulse.v1.msgpack\r\n", "pulse.v1.json", TextJSON, "pulse.v1.json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := site.wire(t)
			w.send([]byte(handshake + test.offer + "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"))
			response := w.response()
			if got := response.Header.Get("Sec-Websocket-Protocol"); response.StatusCode != 101 || got != test.answer {
				t.Errorf("status %d, answer %q, want %q", response.StatusCode, got, test.answer)
			}
			if got := response.Header.Get("Sec-Websocket-Extensions"); got != "" {
				t.Errorf("extension %q was negotiated", got)
			}
			g := soon(t, a.guests, "Accept")
			if got := g.conn.Framing(); got.Protocol.Name() != test.chosen || got != test.framing {
				t.Errorf("protocol %q, framing %q", got.Protocol.Name(), got.Name)
			}
		})
	}
}

func TestRefusalIsAnsweredOverHTTP(t *testing.T) {
	a := newHall()
	a.refusal = codec.Retry(codec.CodeUnavailable, codec.ScopeNode, 3*time.Second, "full")
	w := serve(t, sides[0], Config{Acceptor: a}).wire(t)
	w.send([]byte(handshake + "\r\n"))
	response := w.response()
	if response.StatusCode != 503 || response.Header.Get("Retry-After") != "3" {
		t.Errorf("status %d, Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
	}
	if a.abandoned.Load() != 0 {
		t.Error("a refusal was abandoned")
	}
}

// L1 of what is known about gws. Message and close come in the very write of the
// handshake, and with a message larger than every buffer.
func TestEarlyFramesAreRead(t *testing.T) {
	a := newHall()
	site := serve(t, sides[0], Config{Acceptor: a})
	for _, size := range []int{1, 100, 600, 5000, 60000} {
		w := site.wire(t)
		text := strings.Repeat("x", size)
		w.upgrade(join(clientFrame(0x81, []byte(text)), clientClose(1001, "")))
		g := soon(t, a.guests, "Accept")
		if got := soon(t, g.messages, "the early message"); got != text {
			t.Errorf("message of %d bytes, want %d", len(got), size)
		}
		if got := soon(t, g.closed, "Closed"); got != codec.CauseGoingAway {
			t.Errorf("Closed(%v)", got)
		}
	}
}

// unwrapper is a middleware's ResponseWriter that is no http.Hijacker.
type unwrapper struct{ http.ResponseWriter }

func (u unwrapper) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func TestUpgradeBehindMiddleware(t *testing.T) {
	a := newHall()
	h := NewHandler(Config{Acceptor: a})
	site := serveHTTP(t, sides[0], h, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(unwrapper{w}, r)
	}))
	site.wire(t).upgrade(nil)
	soon(t, a.guests, "Accept")
}

// mute is a ResponseWriter that cannot be hijacked.
type mute struct{ http.ResponseWriter }

// cutOff is a ResponseWriter whose client is gone after the hijacking.
type cutOff struct{ http.ResponseWriter }

func (c cutOff) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	client, server := net.Pipe()
	if err := errors.Join(client.Close(), server.Close()); err != nil {
		return nil, nil, err
	}
	return server, bufio.NewReadWriter(bufio.NewReader(server), bufio.NewWriter(server)), nil
}

func TestEveryAdmissionIsAcceptedOrAbandonedOnce(t *testing.T) {
	for _, test := range []struct {
		name string
		wrap func(http.ResponseWriter) http.ResponseWriter
		want int64 // abandoned
	}{
		{"accepted", func(w http.ResponseWriter) http.ResponseWriter { return w }, 0},
		{"no hijacking", func(w http.ResponseWriter) http.ResponseWriter { return mute{w} }, 1},
		{"client gone", func(w http.ResponseWriter) http.ResponseWriter { return cutOff{w} }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newHall()
			h := NewHandler(Config{Acceptor: a})
			served := make(chan struct{})
			site := serveHTTP(t, sides[0], h, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(test.wrap(w), r)
				close(served)
			}))
			w := site.wire(t)
			w.send([]byte(handshake + "\r\n"))
			soon(t, served, "the end of ServeHTTP")
			if test.want == 0 {
				soon(t, a.guests, "Accept")
			}
			if a.admitted.Load() != 1 || a.abandoned.Load() != test.want || len(a.guests) != 0 {
				t.Errorf("%d admitted, %d abandoned, %d more accepted", a.admitted.Load(), a.abandoned.Load(), len(a.guests))
			}
		})
	}
}

func TestClosedHandlerRefuses(t *testing.T) {
	a := newHall()
	site := serve(t, sides[0], Config{Acceptor: a})
	site.handler.Close()
	w := site.wire(t)
	w.send([]byte(handshake + "\r\n"))
	if response := w.response(); response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
	}
	if a.admitted.Load() != 0 {
		t.Error("a closed Handler asked for an admission")
	}
}

func TestHTTP2IsRefused(t *testing.T) {
	r, err := http.NewRequest(http.MethodGet, "/v1/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	r.Header = upgrade{key: "AAAAAAAAAAAAAAAAAAAAAA=="}.request().Header
	if _, refusal := checkHandshake(r, codec.Protocols()); refusal == nil || refusal.status != 400 {
		t.Errorf("refusal %+v", refusal)
	}
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	if _, refusal := checkHandshake(r, codec.Protocols()); refusal != nil {
		t.Errorf("HTTP/1.1: refusal %+v", refusal)
	}
}
