package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/engine"
)

// Section 5: a quiet connection is pinged, by a frame and by WebSocket, and closed
// with 4500 when nothing comes.
func TestQuietConnectionsArePinged(t *testing.T) {
	n := serve(t, func(s *setup) { s.Limits.Ping, s.Limits.PongTimeout = 300*time.Millisecond, 5*time.Second })
	for _, in := range wires {
		t.Run(string(in), func(t *testing.T) {
			t.Parallel()
			pings := make(chan struct{}, 100)
			c := dialWith(t, n, in, func(o *websocket.DialOptions) {
				o.OnPingReceived = func(context.Context, []byte) bool {
					pings <- struct{}{}
					return true
				}
			})
			c.hello("acme/alice", "chat:1")
			for range 3 {
				if f := c.next(); f.text("t") != "ping" || f["id"] != nil {
					t.Fatalf("not a ping: %v", f)
				}
				c.say(`{"t":"pong"}`)
			}
			select { // those beside the first frames have been read by now
			case <-pings:
			default:
				t.Error("no WebSocket ping beside the frames")
			}
		})
	}
}

func TestNobodyIsPingedWhoHasJustCome(t *testing.T) {
	const ping = time.Second
	n := serve(t, func(s *setup) { s.Limits.Ping = ping })
	first, _ := enter(t, n, inJSON, "acme/alice")
	first.until("ping") // the engine is older than a ping now
	for range 20 {
		came := time.Now()
		c, _ := enter(t, n, inJSON, "acme/bob")
		c.say(`{"t":"join","id":1,"room":"chat:1"}`)
		if f := c.next(); f.text("t") != "reply" && time.Since(came) < ping {
			t.Fatalf("%v", f)
		}
		c.cut()
	}
}

func TestAConnectionThatDoesNotAnswerIsClosed4500(t *testing.T) {
	// A page on a busy machine is late with its answers, but not so late.
	n := serve(t, func(s *setup) { s.Limits.Ping, s.Limits.PongTimeout = 200*time.Millisecond, 4*time.Second })
	for _, in := range wires {
		t.Run(string(in), func(t *testing.T) {
			t.Parallel()
			deaf := dialWith(t, n, in, func(o *websocket.DialOptions) {
				o.OnPingReceived = func(context.Context, []byte) bool { return false }
			})
			deaf.hello("acme/deaf", "chat:1")
			// A client that only answers by WebSocket, as a throttled page does.
			page := dial(t, n, in)
			page.hello("acme/page", "chat:1")
			read := make(chan error, 1)
			go func() {
				for {
					if f, err := page.receive(); err != nil || f.text("t") == "pong" {
						read <- err
						return
					}
				}
			}()
			if code, _ := deaf.closed(); code != 4500 {
				t.Errorf("closed %d", code)
			}
			page.raw(in.kind(), in.encode(frame{"t": "ping", "id": json.Number("1")}))
			if err := <-read; err != nil {
				t.Errorf("who answers by WebSocket: %v", err)
			}
		})
	}
}

func TestNoHelloInTimeIsClosed4500(t *testing.T) {
	n := serve(t, func(s *setup) { s.Limits.HandshakeTimeout = 200 * time.Millisecond })
	if code, _ := dial(t, n, inJSON).closed(); code != 4500 {
		t.Errorf("closed %d", code)
	}
}

// Section 5: credentials that are missing or bad are 4401, a hello's own before all
// others.
func TestBadCredentialsAreClosed4401(t *testing.T) {
	n := serve(t, nil)
	for name, c := range map[string]struct{ header, token string }{
		"missing":                         {"", `""`},
		"null":                            {"", `null`},
		"bad":                             {"", `"nobody"`},
		"bad in hello, good in header":    {"Bearer acme/alice", `"nobody"`},
		"in a header that is no bearer's": {"Basic acme/alice", `""`},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialWith(t, n, inJSON, func(o *websocket.DialOptions) {
				if c.header != "" {
					o.HTTPHeader = http.Header{"Authorization": {c.header}}
				}
			})
			conn.say(`{"t":"hello","token":%s,"rooms":[{"room":"chat:1"}]}`, c.token)
			if code, _ := conn.closed(); code != 4401 {
				t.Errorf("closed %d", code)
			}
		})
	}
	conn := dialWith(t, n, inJSON, func(o *websocket.DialOptions) {
		o.HTTPHeader = http.Header{"Authorization": {"Bearer acme/alice"}}
	})
	conn.say(`{"t":"hello"}`)
	if w := conn.next(); w.text("subject") != "alice" {
		t.Errorf("with a bearer: %v", w)
	}
}

// Section 6: credentials end with their leeway, and are announced before.
func TestCredentialsThatEndAreClosed4401(t *testing.T) {
	n := serve(t, nil)
	for _, in := range wires {
		t.Run(string(in), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			c, w := enter(t, n, in, "acme/brief", "chat:1")
			if exp, _ := w["exp_ms"].(json.Number); exp == "" {
				t.Errorf("no exp_ms: %v", w)
			}
			if f := c.next(); f.text("t") != "expiring" || f["in_ms"] == nil {
				t.Errorf("not announced: %v", f)
			}
			if code, _ := c.closed(); code != 4401 || time.Since(began) < 2*briefly {
				t.Errorf("closed %d after %v", code, time.Since(began))
			}
		})
	}
}

// Section 4: a close comes behind what was queued before it. At Close that is 1012,
// with the range in which to come back as its reason.
func TestCloseComesBehindWhatWasQueued(t *testing.T) {
	n := serve(t, nil)
	const events = 200
	var members []*client
	for _, in := range wires {
		for i := range 5 {
			c, _ := enter(t, n, in, fmt.Sprintf("acme/m%d", i), "chat:1")
			members = append(members, c)
		}
	}
	for i := range events {
		if _, err := n.Publish(t.Context(), engine.Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: i}); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Close(context.Background()) }()
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			for i, drained := 0, false; ; {
				f, err := m.receive()
				if end := (websocket.CloseError{}); errors.As(err, &end) {
					low, high := 0, 0
					_, scan := fmt.Sscanf(end.Reason, "%d-%d", &low, &high)
					if end.Code != 1012 || scan != nil || high < low || i != events || !drained {
						t.Errorf("after %d events, drain %v: %v", i, drained, end)
					}
					return
				}
				if err != nil {
					t.Errorf("after %d events: %v", i, err)
					return
				}
				switch f.text("t") {
				case "event":
					i++
				case "drain":
					drained = true
				}
			}
		})
	}
	all.Wait()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	r, err := http.Get(n.url + "/v1/ws")
	if err == nil {
		r.Body.Close()
	}
	_, response, err := websocket.Dial(t.Context(), n.url+"/v1/ws", nil)
	if err == nil || response == nil || response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("a connection after Close: %v", response)
	}
	http.DefaultClient.CloseIdleConnections()
}

// Before a close a membership without echo is told where it stands.
func TestThePositionIsToldBeforeAClose(t *testing.T) {
	n := serve(t, nil)
	for _, in := range wires {
		alice, _ := enter(t, n, in, "acme/alice", `{"room":"chat:`+string(in)+`","echo":false}`)
		for range 5 {
			alice.ask(`{"t":"publish","room":"chat:%s","event":"message","data":1}`, in)
		}
		enter(t, n, in, "acme/bob", "chat:"+string(in)) // a later turn of the room
		if _, err := n.Disconnect(t.Context(), "acme", "alice"); err != nil {
			t.Fatal(err)
		}
		for alice.until("position").offset() != 5 {
		}
		if code, _ := alice.closed(); code != websocket.StatusNormalClosure {
			t.Errorf("closed %d", code)
		}
	}
}

// An embedder's Disconnect is in order too, and final.
func TestDisconnectIsClosed1000(t *testing.T) {
	n := serve(t, nil)
	alice, _ := enter(t, n, inJSON, "acme/alice", "chat:1")
	bob, _ := enter(t, n, inMsgpack, "acme/bob", "chat:1")
	if _, err := n.Publish(t.Context(), engine.Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: "last"}); err != nil {
		t.Fatal(err)
	}
	enter(t, n, inJSON, "acme/carol", "chat:1") // a later turn of the room
	if sessions, err := n.Disconnect(t.Context(), "acme", "alice"); sessions != 1 || err != nil {
		t.Fatal(sessions, err)
	}
	alice.until("event")
	if code, _ := alice.closed(); code != websocket.StatusNormalClosure {
		t.Errorf("closed %d", code)
	}
	bob.until("event")
	bob.quiet()
}

// refused is the status of an attempt to connect, and the body that refuses it.
func refused(t *testing.T, n *node, path string, change func(*websocket.DialOptions)) (int, string) {
	t.Helper()
	o := &websocket.DialOptions{HTTPHeader: http.Header{}}
	if change != nil {
		change(o)
	}
	c, r, err := websocket.Dial(t.Context(), n.url+path, o)
	if err == nil {
		c.CloseNow()
		return http.StatusSwitchingProtocols, ""
	}
	if r == nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body) // the library has it already, cut to a kilobyte
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// Section 2: what is refused before the upgrade, and how.
func TestRefusalsBeforeTheUpgrade(t *testing.T) {
	n := serve(t, func(s *setup) { s.Origins = []string{"https://app.example"} })
	origin := func(o string) func(*websocket.DialOptions) {
		return func(d *websocket.DialOptions) { d.HTTPHeader.Set("Origin", o) }
	}
	bearing := func(a string) func(*websocket.DialOptions) {
		return func(d *websocket.DialOptions) { d.HTTPHeader.Set("Authorization", a) }
	}
	for _, c := range []struct {
		name, path string
		change     func(*websocket.DialOptions)
		status     int
		code       string
	}{
		{"nothing special", "/v1/ws", nil, 101, ""},
		{"a token in the URL", "/v1/ws?token=x", nil, 400, "bad_request"},
		{"a token in the URL in capitals", "/v1/ws?Access_Token=x", nil, 400, "bad_request"},
		{"a resume token in the URL", "/v1/ws?a=b&resume=", nil, 400, "bad_request"},
		{"something else in the URL", "/v1/ws?client=web", nil, 101, ""},
		{"no known subprotocol", "/v1/ws", func(o *websocket.DialOptions) { o.Subprotocols = []string{"mqtt", "pulse.v2"} }, 400, "bad_request"},
		{"a listed origin", "/v1/ws", origin("https://app.example"), 101, ""},
		{"a listed origin with its port", "/v1/ws", origin("https://APP.example:443"), 101, ""},
		{"the same origin", "/v1/ws", origin(n.url), 101, ""},
		{"a good bearer", "/v1/ws", bearing("Bearer acme/alice"), 101, ""},
		{"a bad bearer", "/v1/ws", bearing("Bearer nobody"), 401, "unauthenticated"},
		{"credentials of another scheme", "/v1/ws", bearing("Basic nobody"), 101, ""},
		{"another origin", "/v1/ws", origin("https://evil.example"), 403, "forbidden"},
		{"null", "/v1/ws", origin("null"), 403, "forbidden"},
		{"a listed origin of another scheme", "/v1/ws", origin("http://app.example"), 403, "forbidden"},
		{"an origin that only begins alike", "/v1/ws", origin("https://app.example.evil.example"), 403, "forbidden"},
	} {
		status, body := refused(t, n, c.path, c.change)
		if status != c.status || c.code != "" && !strings.Contains(body, `"err":{"code":"`+c.code+`"`) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
}

// Section 2: an address has so many connections that have not said hello, and no more.
func TestTooManyWithoutHello(t *testing.T) {
	n := serve(t, func(s *setup) {
		s.Limits.MaxUnauthenticatedPerAddress = 2
		s.Limits.HandshakeTimeout = patience
	})
	for range 2 {
		dial(t, n, inJSON)
	}
	if status, body := refused(t, n, "/v1/ws", nil); status != 503 || !strings.Contains(body, `"unavailable"`) || !strings.Contains(body, `"retry_after_ms"`) {
		t.Errorf("%d %s", status, body)
	}
}
