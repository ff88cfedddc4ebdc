package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// welcomed makes a real handshake and says hello: who it is welcomed as, else the
// HTTP status or the close code that it is refused with.
func (w *web) welcomed(token string, o websocket.DialOptions) (subject string, refused int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	c, resp, err := websocket.Dial(ctx, w.url+"/v1/ws", &o)
	if err != nil {
		if resp == nil {
			w.t.Fatal(err)
		}
		return "", resp.StatusCode
	}
	w.t.Cleanup(func() { c.CloseNow() })
	if err := c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"t":"hello","token":%q}`, token)); err != nil {
		w.t.Fatal(err)
	}
	_, text, err := c.Read(ctx)
	if err != nil {
		return "", int(websocket.CloseStatus(err))
	}
	var f frame
	if err := json.Unmarshal(text, &f); err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprint(f["subject"]), 0
}

// curious counts how often it was asked about a cookie.
type curious struct {
	auth.Authenticator
	cookies atomic.Int32
}

func (a *curious) Authenticate(ctx context.Context, c auth.Credentials) (*auth.Identity, error) {
	if c.Source == auth.Cookie {
		a.cookies.Add(1)
	}
	return a.Authenticator.Authenticate(ctx, c)
}

func TestCookieInAHandshake(t *testing.T) {
	var looked *curious
	w := startWeb(t, func(c *Config) {
		looked = &curious{Authenticator: c.Authenticator}
		c.Authenticator = looked
	})
	const listed, good = "Origin: https://app.example", "Cookie: pulse=acme/cook"
	own := "Origin: " + w.url
	for _, tt := range []struct {
		name    string
		headers []string
		hello   string
		who     string // empty: refused
		refused int
		looks   int32 // at cookies
	}{
		{"of a listed origin", []string{listed, good}, "", "cook", 0, 1},
		{"of the own origin", []string{own, good}, "", "cook", 0, 1},
		{"beside others", []string{listed, "Cookie: a=1; pulse=acme/cook; b=2"}, "", "cook", 0, 1},
		{"without an origin", []string{good}, "", "", 4401, 0},
		{"without one, from the same site", []string{good, "Sec-Fetch-Site: same-origin"}, "", "", 4401, 0},
		{"of a foreign origin", []string{"Origin: https://evil.example", good}, "acme/a", "", 403, 0},
		{"of no origin", []string{"Origin: null", good}, "acme/a", "", 403, 0},
		{"two of the name", []string{listed, "Cookie: pulse=acme/cook; pulse=acme/other"}, "", "", 4401, 0},
		{"two of the name in two headers", []string{listed, good, good}, "", "", 4401, 0},
		{"another name", []string{listed, "Cookie: Pulse=acme/cook"}, "", "", 4401, 0},
		{"a bad one counts as none", []string{listed, "Cookie: pulse=acme"}, "", "", 4401, 1},
		{"a bad one beside a good hello", []string{listed, "Cookie: pulse=acme"}, "acme/a", "a", 0, 0},
		{"hello wins", []string{listed, good}, "acme/a", "a", 0, 0},
		{"hello wins, and is bad", []string{listed, good}, "acme", "", 4401, 0},
		{"a bearer wins", []string{listed, good, "Authorization: Bearer acme/b"}, "", "b", 0, 0},
		{"a bad bearer is refused before the upgrade", []string{listed, good, "Authorization: Bearer acme"}, "acme/a", "", 401, 0},
		{"hello wins over a bearer", []string{"Authorization: Bearer acme/b"}, "acme/a", "a", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			looked.cookies.Store(0)
			h := http.Header{}
			for _, line := range tt.headers {
				name, value, _ := strings.Cut(line, ": ")
				h.Add(name, value)
			}
			who, refused := w.welcomed(tt.hello, websocket.DialOptions{HTTPHeader: h})
			if who != tt.who || refused != tt.refused {
				t.Errorf("welcome %q, refused %d", who, refused)
			}
			if n := looked.cookies.Load(); n != tt.looks {
				t.Errorf("cookies were looked at %d times, want %d", n, tt.looks)
			}
		})
	}
}

// What a trusted proxy says of its client is what origins, cookies and caps go by.
func TestBehindAProxy(t *testing.T) {
	forwarded := http.Header{
		"Origin": {"https://app.public"}, "Cookie": {"pulse=acme/cook"},
		"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"app.public"},
	}
	for name, tt := range map[string]struct {
		trusted string
		who     string
		refused int
		address string // as the Authenticator is told
	}{
		"trusted":     {"127.0.0.0/8", "cook", 0, "203.0.113.9"},
		"not trusted": {"10.0.0.0/8", "", 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var seen atomic.Value
			w := startWeb(t, func(c *Config) {
				c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(tt.trusted)}
				c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
					seen.Store(cr.Remote)
					return asTold{}.Authenticate(ctx, cr)
				})
			})
			who, refused := w.welcomed("", websocket.DialOptions{HTTPHeader: forwarded})
			address, _ := seen.Load().(string)
			if who != tt.who || refused != tt.refused || address != tt.address {
				t.Errorf("welcome %q, refused %d, address %q", who, refused, address)
			}
		})
	}
}

// An Authenticator may let in who has no credentials: then a bad cookie must not
// stand in their way.
func TestBadCookieCountsAsNone(t *testing.T) {
	w := startWeb(t, func(c *Config) {
		told := c.Authenticator
		c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
			if cr.Source == auth.None && cr.Token == "" {
				return &auth.Identity{Tenant: "acme", Subject: "guest"}, nil
			}
			return told.Authenticate(ctx, cr)
		})
	})
	who, refused := w.welcomed("", websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://app.example"}, "Cookie": {"pulse=outdated"}}})
	if who != "guest" {
		t.Errorf("welcome %q, refused %d", who, refused)
	}
}

// lines counts those about a failing authenticator.
type lines struct{ n atomic.Int32 }

func (l *lines) Write(b []byte) (int, error) {
	l.n.Add(int32(strings.Count(string(b), "authenticator failed")))
	return len(b), nil
}

// While credentials cannot be judged everybody is told to come again, and one line
// in a while says so.
func TestCredentialsThatCannotBeJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		var down atomic.Bool
		down.Store(true)
		e := start(t, func(c *Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
				if down.Load() {
					return nil, errors.New("the key endpoint is away")
				}
				return asTold{}.Authenticate(ctx, cr)
			})
		})
		post := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("POST", "/v1/rooms/chat:1/publish", strings.NewReader(`{"event":"message","data":1}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer acme/a")
			e.Handler().ServeHTTP(w, r)
			return w
		}
		upgraded := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			e.Handler().ServeHTTP(w, upgrade(func(r *http.Request) { r.Header.Set("Authorization", "Bearer acme/a") }))
			return w
		}
		for range 50 {
			for _, w := range []*httptest.ResponseRecorder{post(), upgraded()} {
				body, _ := io.ReadAll(w.Body)
				if w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(string(body), `"unavailable"`) || !strings.Contains(string(body), `"retry_after_ms"`) {
					t.Fatalf("%d %v %s", w.Code, w.Header(), body)
				}
			}
			c := dial(t, e, codec.JSON, memory.Options{})
			c.send(`{"t":"hello","token":"acme/a"}`)
			if code := c.closed(); code != 1011 {
				t.Fatalf("closed with %d", code)
			}
		}
		if n := log.n.Load(); n != 1 {
			t.Errorf("%d lines for 150 at once", n)
		}
		time.Sleep(throttleEvery)
		post()
		if n := log.n.Load(); n != 2 {
			t.Errorf("%d lines later", n)
		}
		down.Store(false)
		join(t, e, "acme/a")
		if w := post(); w.Code != 200 {
			t.Errorf("when it is back: %d %s", w.Code, w.Body)
		}
		synctest.Wait() // the welcome may come first
		if n := len(e.admission.from); n != 0 {
			t.Errorf("%d addresses are still counted", n)
		}
	})
}

func TestSeldom(t *testing.T) {
	var s throttle
	now := time.Now()
	var got []int
	for _, after := range []time.Duration{0, 1, time.Second, throttleEvery - 1, throttleEvery, throttleEvery + 1, 3 * throttleEvery} {
		got = append(got, s.due(now.Add(after)))
	}
	if fmt.Sprint(got) != "[1 0 0 0 4 0 2]" {
		t.Errorf("%v", got)
	}
}
