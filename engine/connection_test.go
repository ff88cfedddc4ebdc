package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
	"github.com/yaza-dev/pulse/transport/memory"
)

// authFunc is an Authenticator made of a function.
type authFunc func(context.Context, auth.Credentials) (*auth.Identity, error)

func (f authFunc) Authenticate(ctx context.Context, c auth.Credentials) (*auth.Identity, error) {
	return f(ctx, c)
}

func upgrade(change func(*http.Request)) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://pulse.test/v1/ws", nil)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	} {
		r.Header.Set(name, value)
	}
	change(r)
	return r
}

func TestFirstFrameDecides(t *testing.T) {
	e := start(t, nil)
	for name, c := range map[string]struct {
		doc    string
		binary bool
		code   uint16
	}{
		"not a frame":              {doc: `hello`, code: 4400},
		"not an object":            {doc: `[]`, code: 4400},
		"without t":                {doc: `{"token":"acme/a"}`, code: 4400},
		"another frame":            {doc: `{"t":"join","id":1,"room":"chat:1"}`, code: 4400},
		"a ping":                   {doc: `{"t":"ping"}`, code: 4400},
		"of an unknown type":       {doc: `{"t":"helo","id":1}`, code: 4400},
		"of the other kind":        {doc: `{"t":"hello","token":"acme/a"}`, binary: true, code: 4400},
		"token of the wrong type":  {doc: `{"t":"hello","token":7}`, code: 4400},
		"rooms of the wrong type":  {doc: `{"t":"hello","token":"acme/a","rooms":{}}`, code: 4400},
		"a room entry without one": {doc: `{"t":"hello","token":"acme/a","rooms":[{}]}`, code: 4400},
		"no token":                 {doc: `{"t":"hello"}`, code: 4401},
		"a bad token":              {doc: `{"t":"hello","token":"acme"}`, code: 4401},
	} {
		t.Run(name, func(t *testing.T) {
			cl := dial(t, e, codec.JSON, memory.Options{})
			if err := cl.conn.SendKind([]byte(c.doc), c.binary); err != nil {
				t.Fatal(err)
			}
			if code := cl.closed(); code != c.code {
				t.Errorf("closed with %d, want %d", code, c.code)
			}
		})
	}
	if h := e.Health(); h.Sessions != 0 || h.Tenants != 0 {
		t.Errorf("the refused left something: %+v", h)
	}
}

func TestMalformedFrameClosesAtOnceAndTakesNoEffect(t *testing.T) {
	e := start(t, nil)
	watcher := join(t, e, "acme/watcher", "chat:1")
	c := join(t, e, "acme/a", "chat:1")
	c.send(`{"t":"publish","room":"chat:1","event":"message","data":1,"data":2}`)
	if code := c.closed(); code != 4400 {
		t.Errorf("closed with %d", code)
	}
	e.publish(t, "acme", "chat:1", "message", "next")
	if ev := watcher.until("event"); ev["data"] != "next" {
		t.Errorf("a malformed publish took effect: %v", ev)
	}
}

func TestSecondHelloIsAConflict(t *testing.T) {
	e := start(t, nil)
	c := join(t, e, "acme/a")
	c.send(`{"t":"hello","token":"other/b"}`)
	if f := c.next(); f.t() != "error" || f.at("code") != "conflict" || f["re"] != "hello" {
		t.Errorf("answered %v", f)
	}
	if r, _ := c.ask(`{"t":"join","room":"chat:1"}`); r["ok"] == nil {
		t.Errorf("the session did not go on: %v", r)
	}
}

func TestNoHelloInTimeIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) { c.Limits.HandshakeTimeout = 3 * time.Second })
		began := time.Now()
		c := dial(t, e, codec.JSON, memory.Options{})
		if code := c.closed(); code != 4500 {
			t.Errorf("closed with %d", code)
		}
		if took := time.Since(began); took < 3*time.Second || took > 3*time.Second+50*time.Millisecond {
			t.Errorf("closed after %v", took)
		}
	})
}

func TestAuthenticatorThatDoesNotAnswerIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) {
			c.Limits.HandshakeTimeout = 3 * time.Second
			c.Authenticator = authFunc(func(ctx context.Context, _ auth.Credentials) (*auth.Identity, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
		})
		c := dial(t, e, codec.JSON, memory.Options{})
		c.send(`{"t":"hello","token":"acme/a"}`)
		if code := c.closed(); code != 4500 {
			t.Errorf("closed with %d", code)
		}
	})
}

func TestWhatAnAuthenticatorSays(t *testing.T) {
	identity := func(tenant, subject string) func() (*auth.Identity, error) {
		return func() (*auth.Identity, error) {
			return &auth.Identity{Tenant: tenant, Subject: subject, Grants: auth.AllowAll()}, nil
		}
	}
	for name, c := range map[string]struct {
		say  func() (*auth.Identity, error)
		code uint16
	}{
		"bad credentials": {func() (*auth.Identity, error) { return nil, fmt.Errorf("ended: %w", auth.ErrUnauthenticated) }, 4401},
		"a fault":         {func() (*auth.Identity, error) { return nil, errors.New("database away") }, 1011},
		"nothing":         {func() (*auth.Identity, error) { return nil, nil }, 1011},
		"no tenant":       {identity("", "a"), 1011},
		"a bad tenant":    {identity("a/b", "a"), 1011},
		"no subject":      {identity("acme", ""), 1011},
		"a panic":         {func() (*auth.Identity, error) { panic("authenticator") }, 1011},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, func(cfg *Config) {
				cfg.Authenticator = authFunc(func(context.Context, auth.Credentials) (*auth.Identity, error) { return c.say() })
			})
			cl := dial(t, e, codec.JSON, memory.Options{})
			cl.send(`{"t":"hello","token":"x"}`)
			if code := cl.closed(); code != c.code {
				t.Errorf("closed with %d, want %d", code, c.code)
			}
		})
	}
}

func TestTokenOfTheHelloWinsOverTheHeader(t *testing.T) {
	e := start(t, nil)
	for name, c := range map[string]struct {
		header []string
		hello  string
		code   uint16
		who    string
	}{
		"header alone":           {header: []string{"Bearer acme/h"}, who: "h"},
		"scheme in another case": {header: []string{"bearer acme/h"}, who: "h"},
		"hello alone":            {hello: "acme/t", who: "t"},
		"both":                   {header: []string{"Bearer acme/h"}, hello: "acme/t", who: "t"},
		"bad hello, good header": {header: []string{"Bearer acme/h"}, hello: "acme", code: 4401},
		"another scheme":         {header: []string{"Basic acme/h"}, code: 4401},
	} {
		t.Run(name, func(t *testing.T) {
			cl := dial(t, e, codec.JSON, memory.Options{Header: http.Header{"Authorization": c.header}})
			if c.code == 0 {
				if w := cl.hello(c.hello); w["subject"] != c.who {
					t.Errorf("welcome: %v", w)
				}
				return
			}
			cl.send(fmt.Sprintf(`{"t":"hello","token":%q}`, c.hello))
			if code := cl.closed(); code != c.code {
				t.Errorf("closed with %d, want %d", code, c.code)
			}
		})
	}
}

func TestQuotasOfSessions(t *testing.T) {
	t.Run("tenant full: 4529, others go on", func(t *testing.T) {
		e := start(t, func(c *Config) { c.Tenants = map[string]TenantLimits{"small": {MaxSessions: 2}} })
		first := join(t, e, "small/a")
		join(t, e, "small/b")
		third := dial(t, e, codec.JSON, memory.Options{})
		third.send(`{"t":"hello","token":"small/c"}`)
		if code := third.closed(); code != 4529 {
			t.Errorf("closed with %d", code)
		}
		join(t, e, "large/a")
		first.conn.Cut()
		// The place is free once the tenant has seen the session end.
		for {
			c := dial(t, e, codec.JSON, memory.Options{})
			c.send(`{"t":"hello","token":"small/d"}`)
			if f, err := c.recv(t.Context()); err == nil && f.t() == "welcome" {
				break
			}
		}
	})
	t.Run("node full: 1013", func(t *testing.T) {
		e := start(t, func(c *Config) { c.Limits.MaxSessions = 1 })
		first := join(t, e, "acme/a")
		second := dial(t, e, codec.JSON, memory.Options{})
		second.send(`{"t":"hello","token":"other/b"}`)
		if code := second.closed(); code != 1013 {
			t.Errorf("closed with %d", code)
		}
		first.conn.Cut()
		<-first.conn.Done()
		join(t, e, "other/b")
	})
}

// refused is with what a connection was not admitted.
func refused(c *memory.Client) *codec.Error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.Recv(ctx)
	var refusal *codec.Error
	errors.As(err, &refusal)
	return refusal
}

func TestAdmissionCapsCountWhoHasNotSaidHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) {
			c.Limits.MaxUnauthenticated, c.Limits.MaxUnauthenticatedPerAddress = 3, 2
		})
		from := func(n byte) memory.Options { return memory.Options{Remote: netip.AddrFrom4([4]byte{10, 0, 0, n})} }
		one := dial(t, e, codec.JSON, from(1))
		two := dial(t, e, codec.JSON, from(1))
		if err := refused(dial(t, e, codec.JSON, from(1)).conn); err == nil || err.Code != codec.CodeUnavailable || err.RetryAfterMS() == 0 {
			t.Errorf("third of one address: %v", err)
		}
		dial(t, e, codec.JSON, from(2))
		if err := refused(dial(t, e, codec.JSON, from(3)).conn); err == nil || err.Code != codec.CodeUnavailable {
			t.Errorf("fourth in all: %v", err)
		}
		one.hello("acme/a")
		synctest.Wait() // the welcome may come before the count goes down
		two.conn.Cut()
		<-two.conn.Done()
		dial(t, e, codec.JSON, from(1)).hello("acme/c")
		synctest.Wait()
		dial(t, e, codec.JSON, from(3)).hello("acme/d")
	})
}

func TestAbandonedAdmissionsAreGivenBack(t *testing.T) {
	e := start(t, func(c *Config) { c.Limits.MaxUnauthenticatedPerAddress = 1 })
	for range 3 {
		if err := e.Admit(request()); err != nil {
			t.Fatal(err)
		}
		e.Abandon(request())
	}
	if n := len(e.admission.from); n != 0 {
		t.Errorf("%d addresses are remembered", n)
	}
}

func TestRefusalsBeforeTheUpgrade(t *testing.T) {
	e := start(t, func(c *Config) { c.Limits.MaxUnauthenticated = 1 })
	idle := dial(t, e, codec.JSON, memory.Options{})
	ask := func(change func(*http.Request)) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		e.Handler().ServeHTTP(w, upgrade(change))
		return w
	}
	if w := ask(func(*http.Request) {}); w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"unavailable"`) {
		t.Errorf("too many without hello: %d %v %s", w.Code, w.Header(), w.Body)
	}
	idle.conn.Cut()
	<-idle.conn.Done()
	for _, name := range []string{"token", "access_token", "id_token", "jwt", "authorization", "bearer", "api_key", "resume", "ToKeN"} {
		if w := ask(func(r *http.Request) { r.URL.RawQuery = "a=1&" + name + "=x" }); w.Code != 400 || strings.Contains(w.Body.String(), name+"=x") {
			t.Errorf("%s in the URL: %d %s", name, w.Code, w.Body)
		}
	}
	if w := ask(func(r *http.Request) { r.URL.RawQuery = "a=%zz" }); w.Code != 400 {
		t.Errorf("a query that cannot be read: %d", w.Code)
	}
	if w := ask(func(r *http.Request) { r.Header.Set("Origin", "https://evil.test") }); w.Code != 403 {
		t.Errorf("foreign origin: %d", w.Code)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := ask(func(*http.Request) {}); w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"draining"`) {
		t.Errorf("while draining: %d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestOrigins(t *testing.T) {
	listed := func(origins ...string) func(*Config) { return func(c *Config) { c.Origins = origins } }
	for name, c := range map[string]struct {
		config func(*Config)
		tls    bool
		host   string
		origin []string
		pass   bool
	}{
		"none":                            {pass: true},
		"none, where one is required":     {config: func(c *Config) { c.RefuseMissingOrigin = true }},
		"own":                             {origin: []string{"http://pulse.test"}, pass: true},
		"own, default port named":         {origin: []string{"http://pulse.test:80"}, pass: true},
		"own, host in another case":       {origin: []string{"http://PULSE.test"}, pass: true},
		"own, of another scheme":          {origin: []string{"https://pulse.test"}},
		"own over TLS":                    {tls: true, origin: []string{"https://pulse.test"}, pass: true},
		"own over TLS, of another scheme": {tls: true, origin: []string{"http://pulse.test"}},
		"own, of another port":            {origin: []string{"http://pulse.test:81"}},
		"own, with its port":              {host: "pulse.test:8080", origin: []string{"http://pulse.test:8080"}, pass: true},
		"own, IPv6":                       {host: "[::1]:8080", origin: []string{"http://[::1]:8080"}, pass: true},
		"foreign":                         {origin: []string{"https://evil.test"}},
		"foreign, ending like own":        {origin: []string{"http://evil-pulse.test"}},
		"foreign, beginning like own":     {origin: []string{"http://pulse.test.evil.test"}},
		"listed":                          {config: listed("https://app.test"), origin: []string{"https://app.test"}, pass: true},
		"listed, default port named":      {config: listed("https://app.test:443"), origin: []string{"https://app.test"}, pass: true},
		"listed, host in another case":    {config: listed("https://App.test"), origin: []string{"https://aPP.test"}, pass: true},
		"listed, of another scheme":       {config: listed("https://app.test"), origin: []string{"http://app.test"}},
		"not the one listed":              {config: listed("https://app.test"), origin: []string{"https://app.test.evil.test"}},
		"listed, and own still":           {config: listed("https://app.test"), origin: []string{"http://pulse.test"}, pass: true},
		"all":                             {config: listed("*"), origin: []string{"https://any.test"}, pass: true},
		"all, but this is none":           {config: listed("*"), origin: []string{"null"}},
		"null":                            {origin: []string{"null"}},
		"with a path":                     {origin: []string{"http://pulse.test/"}},
		"with a query":                    {origin: []string{"http://pulse.test?a"}},
		"with a fragment":                 {origin: []string{"http://pulse.test#a"}},
		"with a name":                     {origin: []string{"http://a@pulse.test"}},
		"without a scheme":                {origin: []string{"//pulse.test"}},
		"empty":                           {origin: []string{""}},
		"a second header":                 {origin: []string{"http://pulse.test", "http://pulse.test"}},
		"two in one header":               {origin: []string{"http://pulse.test http://pulse.test"}},
		"with a port that is none":        {origin: []string{"http://pulse.test:http"}},
		"with a colon and no port":        {origin: []string{"http://pulse.test:"}},
		"with an empty fragment":          {origin: []string{"http://pulse.test#"}},
		"with an empty name":              {origin: []string{"http://@pulse.test"}},
		"with a dot behind":               {origin: []string{"http://pulse.test."}},
		"of letters that only look alike": {config: listed("https://k.test"), origin: []string{"https://\u212a.test"}},
		"forwarded host is not looked at": {host: "10.0.0.1", origin: []string{"http://pulse.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{}
			if c.config != nil {
				c.config(&cfg)
			}
			cfg.Limits.defaults()
			a := newAdmission(&Engine{cfg: cfg})
			err := a.judge(upgrade(func(r *http.Request) {
				if c.tls {
					r.TLS = &tls.ConnectionState{}
				}
				if c.host != "" {
					r.Host = c.host
				}
				if c.origin != nil {
					r.Header["Origin"] = c.origin
				}
				r.Header.Set("X-Forwarded-Host", "pulse.test")
			}))
			if (err == nil) != c.pass {
				t.Errorf("judged: %v", err)
			}
			if err != nil && err.Code != codec.CodeForbidden {
				t.Errorf("refused with %v", err)
			}
		})
	}
}

// A connection that ends while its tenant has not answered yet leaves no session.
func TestConnectionThatEndsInItsHandshakeLeavesNothing(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	e := start(t, func(c *Config) {
		c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
			asked <- struct{}{}
			<-answer
			return asTold{}.Authenticate(ctx, cr)
		})
	})
	for range 50 {
		c := dial(t, e, codec.JSON, memory.Options{})
		c.send(`{"t":"hello","token":"acme/a","rooms":[{"room":"chat:1"}]}`)
		<-asked
		c.conn.Cut()
		answer <- struct{}{}
		<-c.conn.Done()
	}
	if h := e.Health(); h.Sessions != 0 {
		t.Errorf("%d sessions are left", h.Sessions)
	}
}

var _ transport.Acceptor = (*Engine)(nil)
