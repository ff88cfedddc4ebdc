package ws

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// open makes one raw connection.
func open(t testing.TB, c Config, more []byte) (*site, *wire, *guest) {
	t.Helper()
	a := c.Acceptor.(*hall)
	site := serve(t, sides[0], c)
	w := site.wire(t)
	w.upgrade(more)
	return site, w, soon(t, a.guests, "Accept")
}

// B004: http-kit/http-kit#259, brazilofmux/tinymux#792 (F1).
func TestB004_NothingIsReadAfterAClose(t *testing.T) {
	_, w, g := open(t, Config{Acceptor: newHall(), WriteTimeout: time.Hour}, nil)
	w.send(join(clientClose(1000, ""), clientFrame(0x81, []byte("x")), clientClose(1000, "")))
	// The garbage may find the connection closed: that is what is wanted.
	_, _ = w.Write(make([]byte, 1<<20))
	if got := soon(t, g.closed, "Closed"); got != codec.CauseNormal {
		t.Errorf("Closed(%v)", got)
	}
	if got, want := w.rest(), closeFrame(1000, ""); !bytes.Equal(got, want) {
		t.Errorf("sent % X, want % X once", got, want)
	}
	// The client has not closed its side: the server must let go of it by itself.
	waitFor(t, "the end of the connection", func() bool { return g.gone() })
	if len(g.messages) != 0 || len(g.closed) != 0 {
		t.Errorf("%d messages, %d more Closed", len(g.messages), len(g.closed))
	}
}

// B008: zeroc-ice/ice#5678, Moddable-OpenSource/moddable#1695.
func TestB008_MasksSurviveSegments(t *testing.T) {
	_, w, g := open(t, Config{Acceptor: newHall()}, nil)
	text := strings.Repeat("0123456789abc", 693)[:9000]
	big := clientFrame(0x82, []byte(text))
	ping := clientFrame(0x89, []byte("abcde"))
	for _, segment := range [][]byte{
		big[:1], big[1:3], big[3:1010], big[1010:4021], big[4021:], ping[:3], ping[3:8], ping[8:],
	} {
		w.send(segment)
	}
	if got := soon(t, g.messages, "the message"); got != text {
		t.Error("the message was damaged")
	}
	if head, payload := w.frame(); head != 0x8A || string(payload) != "abcde" {
		t.Errorf("frame %X %q, want the pong", head, payload)
	}
}

// B011: lesismal/nbio#232.
func TestB011_RacingEndsMakeOneEnd(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("race", func(t *testing.T) {
		a := newHall()
		site := serve(t, sides[0], Config{Acceptor: a})
		for range 1000 {
			w := site.wire(t)
			w.upgrade(nil)
			g := soon(t, a.guests, "Accept")
			frame := g.conn.Framing().Wrap(nil, []byte("broadcast"))
			start := make(chan struct{})
			var racers sync.WaitGroup
			for _, racer := range []func(){
				func() {
					_ = w.Conn.(*net.TCPConn).SetLinger(0) // close by RST
					_ = w.Close()
				},
				func() { g.conn.Close(codec.CauseRestart, "") },
				func() { g.conn.Ping(); g.conn.Close(codec.CauseTimeout, "") },
				func() { _, _ = g.conn.Write(frame) },
			} {
				racers.Go(func() { <-start; racer() })
			}
			close(start)
			racers.Wait()
			cause := soon(t, g.closed, "Closed")
			switch cause {
			case codec.CauseAbrupt, codec.CauseRestart, codec.CauseTimeout:
			default:
				t.Fatalf("Closed(%v)", cause)
			}
			waitFor(t, "the end of the connection", func() bool { return g.gone() })
			if len(g.closed) != 0 {
				t.Fatal("Closed came twice")
			}
		}
	})
}

// B049: grafov/bcast#9 and #12. B090: centrifugal/centrifugo#207.
func TestB049_B090_StuckConnectionTakesNoGoroutines(t *testing.T) {
	_, w, g := open(t, Config{Acceptor: newHall()}, nil)
	before := runtime.NumGoroutine()
	frame := g.conn.Framing().Wrap(nil, make([]byte, 60<<10))
	parked := false
	for !parked {
		done, err := g.conn.Write(frame)
		if err != nil {
			t.Fatal(err)
		}
		parked = !done
	}
	for i := range 10_000 {
		g.conn.Ping()
		w.send(clientFrame(0x89, []byte{byte(i)}))
	}
	w.send(clientFrame(0x81, []byte("last")))
	soon(t, g.messages, "the message behind the pings")
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// B080: hrygo/hotplex#33, erigontech/erigon#20923: the descriptor is given back.
func TestB080_ShutdownCutsStuckConnections(t *testing.T) {
	site, _, g := open(t, Config{Acceptor: newHall(), WriteTimeout: time.Hour}, nil)
	frame := g.conn.Framing().Wrap(nil, make([]byte, 60<<10))
	for done := true; done; {
		var err error
		if done, err = g.conn.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	g.conn.Close(codec.CauseRestart, "")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- site.handler.Shutdown(ctx) }()
	select {
	case err := <-ended:
		t.Fatalf("Shutdown returned %v although a connection is left", err)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	if err := soon(t, ended, "the end of Shutdown"); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if got := soon(t, g.closed, "Closed"); got != codec.CauseRestart {
		t.Errorf("Closed(%v)", got)
	}
	if err := site.handler.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown of nothing: %v", err)
	}
}

// What a peer sent before it vanished says better than a failing write why the
// connection ends: here that its page went away.
func TestFailedWriteDoesNotHideTheClose(t *testing.T) {
	a := newHall()
	blocked, release := make(chan struct{}), make(chan struct{})
	a.onMessage = func([]byte) { close(blocked); <-release }
	_, w, g := open(t, Config{Acceptor: a}, nil)
	w.send(clientFrame(0x81, []byte("x")))
	soon(t, blocked, "Message")
	w.send(clientClose(1001, ""))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	frame := g.conn.Framing().Wrap(nil, make([]byte, 1<<10))
	waitFor(t, "a failing write", func() bool {
		_, err := g.conn.Write(frame)
		return err != nil
	})
	close(release)
	if got := soon(t, g.closed, "Closed"); got != codec.CauseGoingAway {
		t.Errorf("Closed(%v)", got)
	}
}

func TestPingIsAnsweredByTheClientsTransport(t *testing.T) {
	_, w, g := open(t, Config{Acceptor: newHall()}, nil)
	var p transport.Pinger = g.conn
	p.Ping()
	if head, payload := w.frame(); head != 0x89 || len(payload) != 0 {
		t.Errorf("frame %X %q, want a ping", head, payload)
	}
	w.send(clientFrame(0x89, nil))
	if head, payload := w.frame(); head != 0x8A || len(payload) != 0 {
		t.Errorf("frame %X %q, want an empty pong", head, payload)
	}
}

func TestRawWriterNeverBlocks(t *testing.T) {
	for network, addr := range map[string]string{"tcp": "127.0.0.1:0", "unix": t.TempDir() + "/socket"} {
		t.Run(network, func(t *testing.T) {
			l, err := net.Listen(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			client, err := net.Dial(network, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			raw := newRawWriter(server)
			if raw == nil {
				t.Skip("not on this system")
			}
			for n := 1; n > 0; { // until the socket takes not a byte
				if n, err = raw.write(make([]byte, 64<<10)); err != nil {
					t.Fatal(err)
				}
			}
			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := raw.write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("write to a closed socket: %v", err)
			}
		})
	}
}

// A pong may only go out between frames, however the writes are cut up by a socket
// that is full. The client is strict about frames.
func TestPongsNeverGoOutWithinAFrame(t *testing.T) {
	for _, side := range sides {
		side.narrow = true
		t.Run(side.name, func(t *testing.T) {
			a := newHall()
			c, _, err := serve(t, side, Config{Acceptor: a}).dial(t, nil)
			if err != nil {
				t.Fatal(err)
			}
			g := soon(t, a.guests, "Accept")
			ready := make(chan error, 1)
			g.conn.OnReady(func(err error) { ready <- err })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			const n, size = 200, 40 << 10
			var parks, pongs int
			var both sync.WaitGroup
			both.Go(func() {
				for i := range n {
					done, err := g.conn.Write(g.conn.Framing().Wrap(nil, bytes.Repeat([]byte{'a' + byte(i%26)}, size)))
					if err == nil && !done {
						parks++
						err = <-ready
					}
					if err != nil {
						t.Errorf("write %d: %v", i, err)
						break
					}
				}
				g.conn.Close(codec.CauseNormal, "")
			})
			both.Go(func() {
				for c.Ping(ctx) == nil {
					pongs++
				}
			})
			for i := range n {
				_, b, err := c.Read(ctx)
				if err != nil {
					t.Fatalf("read %d: %v", i, err)
				}
				if want := bytes.Repeat([]byte{'a' + byte(i%26)}, size); !bytes.Equal(b, want) {
					t.Fatalf("message %d is damaged", i)
				}
			}
			if _, _, err := c.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("end: %v", err)
			}
			both.Wait()
			if parks == 0 || pongs == 0 {
				t.Errorf("%d parked writes and %d pongs: nothing was tested", parks, pongs)
			}
		})
	}
}

func TestCloseReasonIsShortASCII(t *testing.T) {
	for _, test := range []struct{ reason, want string }{
		{"100-200", "100-200"},
		{strings.Repeat("x", 200), strings.Repeat("x", 123)},
		{"caf\u00e9", "caf"},
		{"a\nb", "a"},
	} {
		frame := closeFrame(1012, test.reason)
		if got := string(frame[4:]); got != test.want || int(frame[1]) != len(test.want)+2 {
			t.Errorf("%q becomes %q with length %d", test.reason, got, frame[1])
		}
	}
}

func TestPanicIsLogged(t *testing.T) {
	var b bytes.Buffer // written before Closed, read after it
	a := newHall()
	a.onMessage = func([]byte) { panic("a receiver's fault") }
	_, w, g := open(t, Config{Acceptor: a, Logger: slog.New(slog.NewTextHandler(&b, nil))}, nil)
	w.send(clientFrame(0x81, []byte("x")))
	if got := soon(t, g.closed, "Closed"); got != codec.CauseInternal {
		t.Errorf("Closed(%v)", got)
	}
	if !strings.Contains(b.String(), "a receiver's fault") {
		t.Errorf("log %q", b.String())
	}
	if head, payload := w.frame(); head != 0x88 || !bytes.HasPrefix(payload, []byte{0x03, 0xF3}) {
		t.Errorf("frame %X % X, want a close 1011", head, payload)
	}
}

// waitFor polls for what must become true and is not told by a channel.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	limit := time.After(10 * time.Second)
	for !done() {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("%s did not come", what)
		}
	}
}

// gone reports whether the server has let go of the connection.
func (g *guest) gone() bool {
	g.conn.mu.Lock()
	defer g.conn.mu.Unlock()
	return g.conn.gone && !g.conn.out.owned && g.conn.out.dead
}
