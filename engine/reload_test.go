package engine

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	link "github.com/yaza-dev/pulse/transport/memory"
)

// reload changes the configuration that e was started with.
func (e *Engine) reload(t *testing.T, change func(*Config)) (kept string) {
	t.Helper()
	cfg := e.cfg
	change(&cfg)
	faults, err := e.Reload(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(faults)
}

// code is the error code of a reply; "ok": it is none.
func code(f frame) string {
	if c, ok := f.at("err.code").(string); ok {
		return c
	}
	return "ok"
}

func TestReloadOfTenantLimitsHoldsForTenantsThatLive(t *testing.T) {
	rooms := 0
	fresh := func() string { rooms++; return fmt.Sprint("chat:fresh", rooms) }
	joins := func(c *client) frame {
		f, _ := c.ask(fmt.Sprintf(`{"t":"join","room":%q}`, fresh()))
		return f
	}
	for _, tt := range []struct {
		what  string
		limit func(*TenantLimits)
		try   func(t *testing.T, e *Engine, c *client) string // "ok" while it is not reached
		want  string
	}{
		{"max_sessions", func(l *TenantLimits) { l.MaxSessions = 1 }, func(t *testing.T, e *Engine, _ *client) string {
			c := dial(t, e, codec.JSON, link.Options{})
			c.send(`{"t":"hello","token":"acme/b"}`)
			if _, err := c.recv(t.Context()); err != nil {
				return strings.Fields(err.Error())[2]
			}
			c.conn.Close(1000)
			<-c.conn.Done()
			return "ok"
		}, "4529"},
		{"max_rooms", func(l *TenantLimits) { l.MaxRooms = 1 }, func(_ *testing.T, _ *Engine, c *client) string {
			return code(joins(c))
		}, "quota_exceeded"},
		{"rate", func(l *TenantLimits) { l.Rate = backpressure.Rate{Messages: 1} }, func(_ *testing.T, _ *Engine, c *client) (last string) {
			for range 3 {
				f := joins(c)
				last = code(f) + fmt.Sprint(f.at("err.scope"))
			}
			return strings.TrimSuffix(last, "<nil>")
		}, "rate_limitedtenant"},
		{"session_rate, of a session that has been counted", func(l *TenantLimits) { l.SessionRate = backpressure.Rate{Messages: 1} }, func(_ *testing.T, _ *Engine, c *client) (last string) {
			for range 3 {
				f := joins(c)
				last = code(f) + fmt.Sprint(f.at("err.scope"))
			}
			return strings.TrimSuffix(last, "<nil>")
		}, "rate_limitedsession"},
		{"queue_bytes", func(l *TenantLimits) { l.QueueBytes = 1 }, func(_ *testing.T, e *Engine, _ *client) string {
			if _, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: 1}); err != nil {
				return err.(*codec.Error).Code.String()
			}
			return "ok"
		}, "backpressured"},
		{"history_bytes", func(l *TenantLimits) { l.HistoryBytes = 1 }, func(_ *testing.T, e *Engine, _ *client) string {
			if _, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: 1}); err != nil {
				return err.(*codec.Error).Code.String()
			}
			return "ok"
		}, "too_large"},
		{"new_rooms", func(l *TenantLimits) { l.NewRooms = 1 }, func(_ *testing.T, _ *Engine, c *client) (last string) {
			for range 12 {
				last = code(joins(c))
			}
			return last
		}, "quota_exceeded"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			e := start(t, func(c *Config) { c.TenantDefaults.SessionRate = backpressure.Rate{Messages: 1000} })
			c := join(t, e, "acme/a", "chat:1")
			if got := tt.try(t, e, c); got != "ok" {
				t.Fatalf("before: %s", got)
			}
			limits := e.cfg.TenantDefaults
			limits.SessionRate = backpressure.Rate{Messages: 1000}
			tt.limit(&limits)
			e.reload(t, func(cfg *Config) { cfg.Tenants = map[string]TenantLimits{"acme": limits} })
			if got := tt.try(t, e, c); got != tt.want {
				t.Errorf("after: %s, want %s", got, tt.want)
			}
			if w := e.terms.Load().tenant("other"); w.MaxSessions != 10_000 {
				t.Errorf("another tenant has %+v", w)
			}
			e.reload(t, func(*Config) {}) // as it was
			if got := tt.try(t, e, c); got != "ok" {
				t.Errorf("back again: %s", got)
			}
		})
	}
}

func TestReloadOfKinds(t *testing.T) {
	e := start(t, func(c *Config) {
		c.Kinds = []room.Kind{{Name: "chat", Publish: room.Grant}, {Name: "gone"}, {Name: "game", Presence: true}}
	})
	c, watches := join(t, e, "acme/a", "chat:1", "gone:1", "game:1"), join(t, e, "acme/w", "gone:1", "chat:1")
	publish := func(room string) string {
		f, _ := c.ask(fmt.Sprintf(`{"t":"publish","room":%q,"event":"message","data":1}`, room))
		return code(f)
	}
	if a, b, n := publish("chat:1"), publish("gone:1"), publish("new:1"); a != "ok" || b != "ok" || n != "not_found" {
		t.Fatalf("before: %s %s %s", a, b, n)
	}
	kept := e.reload(t, func(cfg *Config) {
		cfg.Kinds = []room.Kind{
			{Name: "chat", Publish: room.Server},
			{Name: "new", Publish: room.Grant, History: room.History{Events: 1}},
			{Name: "game", Publish: room.Grant},
		}
	})
	if want := `[room: kind "game": presence cannot change while the node runs]`; kept != want {
		t.Errorf("kept %s, want %s", kept, want)
	}
	if a, b, n, g := publish("chat:1"), publish("gone:1"), publish("new:1"), publish("game:2"); a != "forbidden" || b != "not_found" || n != "ok" || g != "not_joined" {
		t.Errorf("after: server's %s, of no kind %s, new %s, kept %s", a, b, n, g)
	}
	if f := watches.until("left"); f["room"] != "gone:1" || f["reason"] != "forbidden" {
		t.Errorf("left: %v", f)
	}
	e.publish(t, "acme", "new:2", "message", 1)
	e.publish(t, "acme", "new:2", "message", 2)
	f, _ := c.ask(`{"t":"history","room":"new:2"}`)
	if events, _ := f.at("ok.events").([]any); len(events) != 1 {
		t.Errorf("history of the new kind: %v", f)
	}
}

// Each difference that rooms which live could not serve keeps the kind as it was.
func TestReloadKeepsKindsWhoseRoomsCouldNotGoOn(t *testing.T) {
	bulk := map[string]room.EventPolicy{room.Any: {Lane: backpressure.Bulk}}
	transient := map[string]room.EventPolicy{room.Any: {Lane: backpressure.Interactive}, "typing": {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.DropOldest}}
	for _, tt := range []struct {
		what     string
		was, is  []room.Kind
		problems string
	}{
		{"presence", []room.Kind{{Name: "k"}}, []room.Kind{{Name: "k", Presence: true}}, "presence"},
		{"lane", []room.Kind{{Name: "k"}}, []room.Kind{{Name: "k", Events: bulk}}, "the lane of buffered events"},
		{"delivery of an event", []room.Kind{{Name: "k"}}, []room.Kind{{Name: "k", Events: transient}}, `event "typing": delivery`},
		{"history", []room.Kind{{Name: "k", NoHistory: true, Events: map[string]room.EventPolicy{"a": {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.DropOldest}}}},
			[]room.Kind{{Name: "k"}}, "whether there is a history"},
		{"one of any kind that is listed now", []room.Kind{{Name: room.Any}}, []room.Kind{{Name: room.Any}, {Name: "k", Presence: true}}, "presence"},
		{"one that is not listed any more", []room.Kind{{Name: room.Any}, {Name: "k", Presence: true}}, []room.Kind{{Name: room.Any}}, "presence"},
		{"bounds", []room.Kind{{Name: "k"}}, []room.Kind{{Name: "k", History: room.History{Events: 7}, Linger: time.Second, MailboxItems: 3, DedupWindow: -1, PresenceLimit: 4, Publish: room.Grant}}, ""},
		{"another event", []room.Kind{{Name: "k", Events: map[string]room.EventPolicy{"a": {Lane: backpressure.Interactive}}}}, []room.Kind{{Name: "k", Events: map[string]room.EventPolicy{
			"a": {Lane: backpressure.Interactive}, "b": {Lane: backpressure.Interactive}}}}, ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			e := start(t, func(c *Config) { c.Kinds = tt.was })
			before := e.kinds.Of("k")
			kept := e.reload(t, func(c *Config) { c.Kinds = tt.is })
			if stays := reflect.DeepEqual(e.kinds.Of("k"), before); stays != (tt.problems != "") || !strings.Contains(kept, tt.problems) || stays != (kept != "[]") {
				t.Errorf("stays: %v, kept %s", stays, kept)
			}
			e.publish(t, "acme", "k:1", e.anEvent("k"), 1)
		})
	}
}

// anEvent is the name of an event of a kind.
func (e *Engine) anEvent(kind string) string {
	for name := range e.kinds.Of(kind).Events {
		if name != room.Any {
			return name
		}
	}
	return "message"
}

func TestReloadOfOriginsAndAuthenticator(t *testing.T) {
	e := start(t, nil)
	origin := link.Options{Header: http.Header{"Origin": {"https://new.example"}}}
	if err := refused(link.Dial(e, protocol(codec.JSON), origin)); err == nil || err.Code != codec.CodeForbidden {
		t.Fatalf("before: %v", err)
	}
	e.reload(t, func(c *Config) {
		c.Origins, c.RefuseMissingOrigin = []string{"https://new.example"}, true
		c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
			cr.Token = strings.TrimPrefix(cr.Token, "new ")
			return asTold{}.Authenticate(ctx, cr)
		})
	})
	c := dial(t, e, codec.JSON, origin)
	c.hello("new acme/a")
	if err := refused(link.Dial(e, protocol(codec.JSON), link.Options{})); err == nil || err.Code != codec.CodeForbidden {
		t.Errorf("a missing origin: %v", err)
	}
}

func TestReloadWithFaultsChangesNothing(t *testing.T) {
	e := start(t, nil)
	terms, kinds, origins := e.terms.Load(), e.kinds.Of("chat"), e.admission.origins.Load()
	cfg := e.cfg
	cfg.Origins, cfg.Tenants = []string{"https://good.example", "bad"}, map[string]TenantLimits{"a/b": {}}
	cfg.Kinds = []room.Kind{{Name: "chat", Presence: true}}
	if _, err := e.Reload(cfg); err == nil || !strings.Contains(err.Error(), `"bad"`) || !strings.Contains(err.Error(), `"a/b"`) {
		t.Errorf("its faults: %v", err)
	}
	if e.terms.Load() != terms || e.kinds.Of("chat") != kinds || e.admission.origins.Load() != origins {
		t.Error("something has changed")
	}
}
