package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
)

func TestConfigReportsEveryFaultAtOnce(t *testing.T) {
	cfg := Config{
		Kinds: []room.Kind{
			{Name: "chat"}, {Name: "chat"},
			{Name: "no name"},
			{Name: "tiny", History: room.History{Bytes: 1024}},
		},
		Tenants: map[string]TenantLimits{"a/b": {}, "acme": {Weight: -1}},
		Origins: []string{"https://app.test/path"},
		Limits:  Limits{Ping: -1, MaxFrameBytes: 1024},
	}
	_, err := cfg.prepare()
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{
		"Authenticator is not set",
		`kind "chat" is declared twice`,
		`kind "no name"`,
		`kind "tiny": a history of 1024 bytes is under MaxMessageBytes`,
		`tenant "a/b"`,
		"tenant acme: a limit is negative",
		`origin "https://app.test/path"`,
		"Limits.Ping is negative",
		"Limits.MaxFrameBytes is 1024",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not reported: %s\nin %v", want, err)
		}
	}
}

func TestConfigFaults(t *testing.T) {
	good := func() Config { return Config{Kinds: []room.Kind{{Name: "chat"}}, Authenticator: asTold{}} }
	for name, c := range map[string]struct {
		change func(*Config)
		want   string // empty: no fault
	}{
		"nothing but what must be": {func(*Config) {}, ""},
		"no authenticator":         {func(c *Config) { c.Authenticator = nil }, "Authenticator"},
		"event in the control lane": {func(c *Config) {
			c.Kinds[0].Events = map[string]room.EventPolicy{"a": {Lane: backpressure.Control}}
		}, "control lane"},
		"negative limit":          {func(c *Config) { c.Limits.QueueBytes = -1 }, "Limits.QueueBytes"},
		"frames under messages":   {func(c *Config) { c.Limits.MaxMessageBytes = 1 << 20 }, "MaxFrameBytes"},
		"queue under a frame":     {func(c *Config) { c.Limits.SessionQueueBytes = 64 << 10 }, "SessionQueueBytes"},
		"history under a message": {func(c *Config) { c.Kinds[0].History.Bytes = 1 }, "history of 1 bytes"},
		"no history needs no bytes": {func(c *Config) {
			c.Kinds[0].NoHistory = true
			c.Kinds[0].Events = map[string]room.EventPolicy{"*": {Delivery: room.Transient, Lane: backpressure.Lossy}}
		}, ""},
		"tenant's name":            {func(c *Config) { c.Tenants = map[string]TenantLimits{"": {}} }, `tenant ""`},
		"tenant's limit":           {func(c *Config) { c.Tenants = map[string]TenantLimits{"acme": {MaxRooms: -1}} }, "tenant acme"},
		"defaults of tenants":      {func(c *Config) { c.TenantDefaults.QueueBytes = -1 }, "TenantDefaults"},
		"new rooms without limit":  {func(c *Config) { c.TenantDefaults.NewRooms = -1 }, ""},
		"new rooms below that":     {func(c *Config) { c.TenantDefaults.NewRooms = -2 }, "TenantDefaults"},
		"all origins":              {func(c *Config) { c.Origins = []string{"*"} }, ""},
		"an origin":                {func(c *Config) { c.Origins = []string{"https://app.test:8443"} }, ""},
		"origin without scheme":    {func(c *Config) { c.Origins = []string{"app.test"} }, "origin"},
		"origin with nothing":      {func(c *Config) { c.Origins = []string{"//app.test"} }, "origin"},
		"origin with a fragment":   {func(c *Config) { c.Origins = []string{"https://app.test#a"} }, "origin"},
		"a cookie":                 {func(c *Config) { c.Cookie = "__Host-pulse" }, ""},
		"a cookie that is no name": {func(c *Config) { c.Cookie = "a b" }, "cookie"},
		"origin with a pattern":    {func(c *Config) { c.Origins = []string{"https://app.test/*"} }, "origin"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good()
			c.change(&cfg)
			_, err := cfg.prepare()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want a fault about %s", err, c.want)
			}
		})
	}
}

func TestConfigDefaults(t *testing.T) {
	cfg := Config{
		Kinds: []room.Kind{{Name: "chat"}}, Authenticator: asTold{},
		Limits:         Limits{Ping: time.Second},
		TenantDefaults: TenantLimits{MaxRooms: 7},
		Tenants:        map[string]TenantLimits{"acme": {Weight: 4}},
	}
	kinds, err := cfg.prepare()
	if err != nil {
		t.Fatal(err)
	}
	if kinds.Of("chat") == nil || kinds.Of("other") != nil {
		t.Errorf("kinds: %v", kinds)
	}
	if cfg.Node == "" || cfg.Logger == nil {
		t.Error("node or logger are not set")
	}
	if l := cfg.Limits; l.Ping != time.Second || l.PongTimeout != 8*time.Second || l.MaxMessageBytes != 64<<10 || l.SessionQueueItems != 1024 {
		t.Errorf("limits: %+v", l)
	}
	acme, other := newTerms(&cfg).tenant("acme"), newTerms(&cfg).tenant("other")
	if acme.Weight != 4 || acme.MaxRooms != 7 || other.Weight != 1 || other.MaxSessions != 10_000 {
		t.Errorf("acme %+v, other %+v", acme, other)
	}
}
