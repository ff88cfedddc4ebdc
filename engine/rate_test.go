package engine

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

const hi = `{"t":"publish","room":"chat:1","event":"message","data":"hi"}`

// refusedFor is the scope of a reply that refuses for a rate, and its hint; empty:
// it does not.
func refusedFor(r frame) (scope string, after time.Duration) {
	if r.at("err.code") != "rate_limited" {
		return "", 0
	}
	return fmt.Sprint(r.at("err.scope")), time.Duration(whole(r.at("err.retry_after_ms"))) * time.Millisecond
}

func rated(t *testing.T, tenant, session backpressure.Rate) *Engine {
	return start(t, func(c *Config) {
		c.TenantDefaults.Rate, c.TenantDefaults.SessionRate = tenant, session
	})
}

func TestSessionIsHeldToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rated(t, noRate, backpressure.Rate{Messages: 10, Bytes: -1})
		c, other := join(t, e, "acme/a", "chat:1"), join(t, e, "acme/b", "chat:1")
		for i := range 20 { // two seconds' worth
			if r, _ := c.ask(hi); r["ok"] == nil {
				t.Fatalf("publish %d: %v", i, r)
			}
		}
		r, _ := c.ask(hi)
		scope, after := refusedFor(r)
		if scope != "session" || after <= 0 || after > 100*time.Millisecond {
			t.Fatalf("beyond the burst: %v", r)
		}
		if r, _ := other.ask(hi); r["ok"] == nil {
			t.Errorf("another session: %v", r)
		}
		time.Sleep(after + 10*time.Millisecond) // and a turn of the clock
		if r, _ := c.ask(hi); r["ok"] == nil {
			t.Errorf("after the hint: %v", r)
		}
	})
}

// What counts is publish, command, join and history; the joins of a hello and
// everything else do not.
func TestWhatCountsAgainstARate(t *testing.T) {
	for _, tt := range []struct {
		doc    string
		counts bool
	}{
		{hi, true},
		{`{"t":"command","room":"chat:1","name":"roll"}`, true},
		{`{"t":"join","room":"chat:1"}`, true},
		{`{"t":"history","room":"chat:1"}`, true},
		{`{"t":"leave","room":"chat:2"}`, false},
		{`{"t":"presence","room":"chat:1"}`, false},
		{`{"t":"token","token":"acme/a"}`, false},
	} {
		t.Run(tt.doc, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := rated(t, noRate, backpressure.Rate{Messages: 1, Bytes: -1})
				c := join(t, e, "acme/a", "chat:1", "chat:2", "chat:3", "chat:4")
				var scope string
				for range 3 {
					r, _ := c.ask(tt.doc)
					scope, _ = refusedFor(r)
				}
				if (scope == "session") != tt.counts {
					t.Errorf("the third in a burst of two: refused for %q", scope)
				}
			})
		})
	}
}

func TestBytesCountAgainstARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rated(t, noRate, backpressure.Rate{Messages: -1, Bytes: 1000})
		c := join(t, e, "acme/a", "chat:1")
		large := strings.Replace(hi, "hi", strings.Repeat("x", 1500), 1)
		if r, _ := c.ask(large); r["ok"] == nil {
			t.Fatalf("within the burst: %v", r)
		}
		r, _ := c.ask(large)
		if scope, after := refusedFor(r); scope != "session" || after < time.Second || after > 1100*time.Millisecond {
			t.Errorf("beyond it: %v", r)
		}
		if r, _ := c.ask(hi); r["ok"] == nil {
			t.Errorf("a small one: %v", r)
		}
	})
}

// A tenant's rate is that of all its clients, those over HTTP included, and of
// nobody else's.
func TestTenantIsHeldToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rated(t, backpressure.Rate{Messages: 2, Bytes: -1}, noRate)
		overHTTP := func(what, body string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("POST", "/v1/rooms/chat:1/"+what, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer acme/c")
			e.Handler().ServeHTTP(w, r)
			return w
		}
		a, b := join(t, e, "acme/a", "chat:1"), join(t, e, "acme/b", "chat:1")
		stranger := join(t, e, "other/a", "chat:1")
		a.ask(hi)
		b.ask(hi)
		a.ask(hi)
		if w := overHTTP("publish", `{"event":"message","data":1}`); w.Code != 200 {
			t.Fatalf("within the burst: %d %s", w.Code, w.Body)
		}
		for _, c := range []*client{a, b} {
			r, _ := c.ask(hi)
			if scope, after := refusedFor(r); scope != "tenant" || after <= 0 {
				t.Errorf("beyond it: %v", r)
			}
		}
		for what, body := range map[string]string{"publish": `{"event":"message","data":1}`, "commands/roll": `{}`} {
			w := overHTTP(what, body)
			if w.Code != 429 || !strings.Contains(w.Body.String(), `"scope":"tenant"`) || !strings.Contains(w.Body.String(), `"retry_after_ms"`) {
				t.Errorf("%s over HTTP: %d %s", what, w.Code, w.Body)
			}
		}
		if r, _ := stranger.ask(hi); r["ok"] == nil {
			t.Errorf("another tenant: %v", r)
		}
	})
}

// A request is judged by its rate last: who may not, or asks for what there is not,
// is told so, however fast.
func TestRateIsTheLastToRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rated(t, noRate, backpressure.Rate{Messages: 1, Bytes: -1})
		c := join(t, e, `acme/a/[{"rooms":"chat:*","allow":["join","publish"]}]`, "chat:1")
		for range 3 {
			c.ask(hi)
		}
		for doc, code := range map[string]string{
			`{"t":"publish","room":"secret","event":"message","data":1}`:            "forbidden",
			`{"t":"publish","room":"chat:2","event":"message","data":1}`:            "not_joined",
			`{"t":"publish","room":"chat:1","event":"message","data":1,"ttl_ms":0}`: "expired",
			`{"t":"join","room":"chat:3","presence":true}`:                          "forbidden",
			`{"t":"join","room":"a b"}`:                                             "bad_request",
			`{"t":"history","room":"chat:1"}`:                                       "forbidden",
			`{"t":"command","room":"chat:1","name":"roll"}`:                         "forbidden",
			hi: "rate_limited",
		} {
			if r, _ := c.ask(doc); r.at("err.code") != code {
				t.Errorf("%s: %v, want %s", doc, r, code)
			}
		}
		c.send(hi) // without an id
		if f := c.next(); f.t() != "error" || f["code"] != "rate_limited" || f["re"] != "publish" || f["room"] != "chat:1" {
			t.Errorf("told %v", f)
		}
	})
}

func TestWhoGoesOnRegardlessIsClosed4529(t *testing.T) {
	for name, tt := range map[string]struct {
		pause time.Duration // after each second of going on
		code  uint16
	}{
		"without a pause": {0, 4529},
		"with pauses":     {2 * time.Second, 1006}, // its own end
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := rated(t, noRate, backpressure.Rate{Messages: 5, Bytes: -1})
				c := dial(t, e, codec.JSON, memory.Options{})
				c.hello("acme/a", `{"room":"chat:1","echo":false}`)
				ended := make(chan uint16, 1)
				go func() {
					var end *memory.CloseError
					for err := error(nil); !errors.As(err, &end); {
						_, err = c.conn.Recv(t.Context())
					}
					ended <- end.Code
				}()
				began := time.Now()
				for time.Since(began) < 30*time.Second && len(ended) == 0 {
					for range 20 {
						_ = c.conn.Send([]byte(hi)) // fails when it is closed, which is seen below
						time.Sleep(50 * time.Millisecond)
					}
					time.Sleep(tt.pause)
				}
				took := time.Since(began)
				c.conn.Cut()
				if code := <-ended; code != tt.code || code == 4529 && (took < 10*time.Second || took > 12*time.Second) {
					t.Errorf("closed with %d after %v", code, took)
				}
			})
		})
	}
}

// Whoever sends on while as many requests wait for their replies as may wait is
// refused for a rate too.
func TestWhoNeverWaitsForRepliesIsClosed4529(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{serving("desk", func(_ *room.Context, c *room.Command) (any, error) {
				c.Later() // and never
				return nil, nil
			})}
		})
		c := join(t, e, "acme/a")
		ended := make(chan uint16, 1)
		go func() {
			var end *memory.CloseError
			for err := error(nil); !errors.As(err, &end); {
				_, err = c.conn.Recv(t.Context())
			}
			ended <- end.Code
		}()
		began := time.Now()
		for i := 1; len(ended) == 0 && time.Since(began) < 25*time.Second; i++ {
			_ = c.conn.Send(fmt.Appendf(nil, `{"t":"command","id":%d,"room":"desk:1","name":"wait"}`, i)) // fails when it is closed
			time.Sleep(20 * time.Millisecond)
		}
		c.conn.Cut()
		if code, took := <-ended, time.Since(began); code != 4529 || took < 10*time.Second || took > 14*time.Second {
			t.Errorf("closed with %d after %v", code, took)
		}
	})
}

// Rates have defaults like other limits, and -1 lifts one.
func TestRatesOfTenants(t *testing.T) {
	cfg := Config{Authenticator: asTold{}, Tenants: map[string]TenantLimits{
		"fast": {SessionRate: backpressure.Rate{Messages: -1}},
		"held": {Rate: backpressure.Rate{Messages: 7}},
	}}
	if _, err := cfg.prepare(); err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string][2]backpressure.Rate{
		"other": {{}, {Messages: 100, Bytes: 1 << 20}},
		"fast":  {{}, {Bytes: 1 << 20}},
		"held":  {{Messages: 7}, {Messages: 100, Bytes: 1 << 20}},
	} {
		l := newTerms(&cfg).tenant(tenant)
		if got := [2]backpressure.Rate{limited(l.Rate), limited(l.SessionRate)}; got != want {
			t.Errorf("%s: %v, want %v", tenant, got, want)
		}
	}
	cfg.TenantDefaults.SessionRate.Bytes = -2
	if _, err := cfg.prepare(); err == nil {
		t.Error("a rate below none is taken")
	}
}
