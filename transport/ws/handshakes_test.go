package ws

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Whatever pieces a client's bytes come in, the ends of its handshake's records are
// found, and nothing else.
func TestRecordScan(t *testing.T) {
	record := func(kind byte, n int) string {
		return string([]byte{kind, 3, 1, byte(n >> 8), byte(n)}) + strings.Repeat("\x16", n)
	}
	for name, tt := range map[string]struct {
		sent string
		want int
	}{
		"a hello":                   {record(22, 300), 1},
		"a hello in two records":    {record(22, 300) + record(22, 1), 2},
		"half a hello":              {record(22, 300)[:200], 0},
		"a hello, then data":        {record(22, 300) + record(23, 22*256+22) + record(23, 5), 1},
		"a hello again":             {record(22, 300) + record(20, 1) + record(23, 100) + record(22, 300), 2},
		"an empty one":              {record(22, 0), 1},
		"HTTP":                      {"GET / HTTP/1.1\r\n\x16\x03\x01\x00\x01\x16" + record(22, 300), 0},
		"another record":            {record(21, 2) + record(22, 300), 0},
		"a hello and what is none":  {record(22, 3) + "\x16\x16\x16", 1},
		"nothing":                   {"", 0},
		"records of every type":     {record(22, 1) + record(20, 2) + record(21, 3) + record(24, 4) + record(22, 5), 2},
		"a type that is said twice": {record(22, 22), 1},
	} {
		for range 50 {
			var s recordScan
			got := 0
			for rest := tt.sent; rest != ""; {
				n := 1 + rand.IntN(min(len(rest), 40))
				piece := rest[:n]
				rest = rest[n:]
				for _, b := range []byte(piece) { // one by one no two ends are one
					if s.step([]byte{b}) {
						got++
					}
				}
			}
			if got != tt.want {
				t.Fatalf("%s: %d ends, want %d", name, got, tt.want)
			}
			var whole recordScan
			if whole.step([]byte(tt.sent)) != (tt.want > 0) {
				t.Fatalf("%s at once: %v", name, tt.want == 0)
			}
		}
	}
}

// turn is a gate with one place, which counts.
type turn struct {
	place   chan struct{}
	waits   chan struct{} // of 1: somebody does
	came    atomic.Int32
	holding atomic.Int32
}

func newTurn() *turn { return &turn{place: make(chan struct{}, 1), waits: make(chan struct{}, 1)} }

func (g *turn) Acquire(ctx context.Context, _ string) error {
	g.came.Add(1)
	select {
	case g.place <- struct{}{}:
		g.holding.Add(1)
		return nil
	default:
	}
	select {
	case g.waits <- struct{}{}:
	default:
	}
	select {
	case g.place <- struct{}{}:
		g.holding.Add(1)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *turn) Release() {
	g.holding.Add(-1)
	<-g.place
}

// gated serves TLS of both versions behind a gate.
func gated(t *testing.T, h *Handshakes, version uint16, accepted func(net.Conn), serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	if h.Source == nil {
		h.Source = func(address string) string { return address }
	}
	s := httptest.NewUnstartedServer(serve)
	s.Listener = h.Listener(s.Listener)
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		accepted(c)
		return ConnContext(ctx, c)
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{MaxVersion: version}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

var versions = map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13}

// A place is held for what is computed alone: not while a client says nothing, and not
// by a handler.
func TestPlacesOfHandshakesAreHeldForWhatIsComputed(t *testing.T) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			gate := newTurn()
			var held atomic.Int32
			s := gated(t, &Handshakes{Gate: gate}, version, func(net.Conn) {}, func(_ http.ResponseWriter, r *http.Request) {
				Arrived(r.Context())
				held.Add(gate.holding.Load())
			})
			for _, half := range []string{"\x16", "\x16\x03\x01\x02\x00\x01", "\x16\x03\x01\x00\x01\x01", "GET / HTTP/1.1\r\n"} {
				c, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, _ = io.WriteString(c, half)
			}
			for range 3 {
				client := s.Client()
				resp, err := client.Get(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				client.CloseIdleConnections()
			}
			if gate.came.Load() < 3 || held.Load() != 0 {
				t.Errorf("%d places were asked for, %d were held in the handler", gate.came.Load(), held.Load())
			}
		})
	}
}

// Who waits for a place is cut when the handshake is due, and lets go of the line when
// the connection is closed.
func TestHandshakesThatWaitEnd(t *testing.T) {
	for name, closes := range map[string]bool{"due": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			gate := newTurn()
			if err := gate.Acquire(t.Context(), ""); err != nil { // never released
				t.Fatal(err)
			}
			h := &Handshakes{Gate: gate, Timeout: 300 * time.Millisecond}
			if closes {
				h.Timeout = time.Hour
			}
			conns := make(chan net.Conn, 1)
			s := gated(t, h, tls.VersionTLS13, func(c net.Conn) { conns <- c }, nil)
			ended := make(chan error, 1)
			go func() {
				_, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
				ended <- err
			}()
			c := <-conns
			if closes {
				<-gate.waits
				_ = c.(*tls.Conn).NetConn().Close()
			}
			select {
			case err := <-ended:
				if err == nil {
					t.Error("it was let in")
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it still waits")
			}
		})
	}
}

// Before the first request no deadline of the server's puts off what is due; from then
// on they are as the server has set them.
func TestDeadlinesBeforeTheFirstRequest(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	set := &deadlines{Conn: near}
	h := &Handshakes{Timeout: time.Minute}
	c := &heldConn{Conn: set, arrival: newArrival(set, h)}
	due := c.arrival.due
	if !set.read.Equal(due) {
		t.Errorf("at first: %v", set.read)
	}
	soon, late := due.Add(-time.Second), due.Add(time.Second)
	for _, step := range []struct{ set, want time.Time }{{soon, soon}, {late, due}, {time.Time{}, due}, {late, due}} {
		_ = c.SetReadDeadline(step.set)
		if !set.read.Equal(step.want) {
			t.Errorf("set to %v: %v", step.set, set.read)
		}
	}
	_ = c.SetDeadline(time.Time{})
	if !set.read.Equal(due) || !set.write.IsZero() {
		t.Errorf("both: %v %v", set.read, set.write)
	}
	_ = c.SetReadDeadline(late)
	ctx := ConnContext(t.Context(), c)
	if at, ok := Arrived(ctx); !ok || !at.Equal(due) || !set.read.Equal(late) {
		t.Errorf("arrived: %v %v, %v", at, ok, set.read)
	}
	if at, ok := Arrived(ctx); ok {
		t.Errorf("a second request is due at %v", at)
	}
	if _ = c.SetReadDeadline(time.Time{}); !set.read.IsZero() {
		t.Errorf("then: %v", set.read)
	}
	if _, ok := Arrived(t.Context()); ok {
		t.Error("a connection of another listener is due")
	}
	if err := c.Close(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// deadlines remembers those that are set.
type deadlines struct {
	net.Conn
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// An upgrade waits for its place no longer than its time, and gives back what was
// admitted; one that is done has given its place back.
func TestUpgradesWaitForAPlace(t *testing.T) {
	gate, hall := newTurn(), newHall()
	h := NewHandler(Config{Acceptor: hall, Handshakes: Handshakes{Gate: gate, Source: func(address string) string { return address }}})
	defer h.Close()
	patience := make(chan time.Duration, 1) // of the next request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), <-patience)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	}))
	defer s.Close()
	upgrade := func(within time.Duration) *http.Response {
		t.Helper()
		patience <- within
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	if err := gate.Acquire(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if resp := upgrade(200 * time.Millisecond); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || hall.abandoned.Load() != 1 {
		t.Errorf("without a place: %d %v, abandoned %d", resp.StatusCode, resp.Header, hall.abandoned.Load())
	}
	gate.Release()
	for range 3 {
		if resp := upgrade(20 * time.Second); resp.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("with one: %d", resp.StatusCode)
		}
	}
	if hall.admitted.Load() != 4 || hall.abandoned.Load() != 1 {
		t.Errorf("admitted %d, abandoned %d", hall.admitted.Load(), hall.abandoned.Load())
	}
}
