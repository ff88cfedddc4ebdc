package main

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
	"github.com/yaza-dev/pulse/engine"
)

// limitsOf maps a configuration that one flag changes.
func limitsOf(t *testing.T, flags ...config.Flag) engine.Config {
	t.Helper()
	c, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	return engineConfig(c, nil, slog.New(slog.DiscardHandler))
}

// Every setting of this build moves exactly one field of the engine's
// configuration; one that moves none would be an idle knob.
func TestEverySettingReachesTheEngine(t *testing.T) {
	base := limitsOf(t)
	elsewhere := map[string]string{ // settings that the program itself acts on
		"listen": "node", "internal.listen": "node", "node.drain_timeout": "node",
		"tenant_defaults.redis_bytes": "redis", "telemetry.otlp_endpoint": "node", "telemetry.trace_ratio": "node", "tls.cert_file": "serve", "tls.key_file": "serve", "log.level": "logger", "log.format": "logger",
		"origins": "below", "allow_missing_origin": "below",
		"trusted_proxies": "below", "deployment_key_file": "below", "auth.jwt.jwks.url": "auth", "auth.jwt.jwks.refresh": "auth",
		"auth.jwt.issuer": "auth", "auth.jwt.audience": "auth", "auth.jwt.tenant_claim": "auth", "auth.jwt.leeway": "auth",
	}
	other := map[string]string{ // values that keep the limits between limits
		"transport.max_message_bytes": "32KiB", "transport.max_frame_bytes": "500KiB", "session.queue.bytes": "2MiB",
	}
	for _, s := range config.Settings() {
		value := other[s.Path]
		for _, candidate := range []string{"7", "7s", "7MiB", "true"} {
			if value != "" {
				break
			}
			if candidate == s.Default {
				continue
			}
			if _, err := config.Load(config.Sources{Flags: []config.Flag{{Name: s.Path, Value: candidate}}}); err == nil {
				value = candidate
			}
		}
		if value == "" || elsewhere[s.Path] != "" {
			continue // a setting of a later build, or not the engine's
		}
		if strings.HasPrefix(s.Path, "bridge.redis.") || s.Path == "node.lease" {
			continue // TestSettingsOfRedisReachTheBridge
		}
		changed := limitsOf(t, config.Flag{Name: s.Path, Value: value})
		n := differences(base.Limits, changed.Limits) + differences(base.TenantDefaults, changed.TenantDefaults) +
			differences(base.Compression, changed.Compression)
		if changed.Cookie != base.Cookie {
			n++
		}
		if changed.TenantLabels != base.TenantLabels {
			n++
		}
		if n != 1 {
			t.Errorf("%s=%s moves %d fields", s.Path, value, n)
		}
	}
}

func differences(a, b any) (n int) {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		if !va.Field(i).Equal(vb.Field(i)) {
			n++
		}
	}
	return n
}

func TestOriginsReachTheEngine(t *testing.T) {
	cfg := limitsOf(t, config.Flag{Name: "origins", Value: "https://a,https://b"}, config.Flag{Name: "allow_missing_origin", Value: "false"})
	if fmt.Sprint(cfg.Origins) != "[https://a https://b]" || !cfg.RefuseMissingOrigin {
		t.Errorf("%v %v", cfg.Origins, cfg.RefuseMissingOrigin)
	}
}

func TestWhatTokensMustSayReachesTheAuthenticator(t *testing.T) {
	key := auth.Key{Alg: auth.HS256, Secret: []byte(secret)}
	file := write(t, "pulse.yaml", "auth: { jwt: { keys: [ { alg: HS256, secret: "+secret+" } ], issuer: i, audience: a, tenant_claim: org, leeway: 7s } }")
	c, err := config.Load(config.Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	jwt, err := newJWT(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	good := auth.Claims{Tenant: "acme", TenantClaim: "org", Subject: "s", Issuer: "i", Audience: "a", Expires: time.Now().Add(time.Minute)}
	for rule, tt := range map[string]struct {
		change func(*auth.Claims)
		ok     bool
	}{
		"good":                 {func(*auth.Claims) {}, true},
		"another issuer":       {func(c *auth.Claims) { c.Issuer = "x" }, false},
		"another audience":     {func(c *auth.Claims) { c.Audience = "x" }, false},
		"another tenant claim": {func(c *auth.Claims) { c.TenantClaim = "" }, false},
	} {
		claims := good
		tt.change(&claims)
		token, err := key.Sign(claims)
		if err != nil {
			t.Fatal(err)
		}
		id, err := jwt.Authenticate(t.Context(), auth.Credentials{Token: token})
		if (err == nil) != tt.ok || tt.ok && id.Leeway != 7*time.Second {
			t.Errorf("%s: %+v, %v", rule, id, err)
		}
	}
}

func TestNoLimitIsTold(t *testing.T) {
	d := limitsOf(t, config.Flag{Name: "tenant_defaults.new_rooms", Value: "0"}, config.Flag{Name: "tenant_defaults.session_rate.messages", Value: "0"},
		config.Flag{Name: "tenant_defaults.session_rate.bytes", Value: "0B"}).TenantDefaults
	if none := (backpressure.Rate{Messages: -1, Bytes: -1}); d.NewRooms != -1 || d.Rate != none || d.SessionRate != none {
		t.Errorf("%+v", d)
	}
}

func TestTrustedProxiesReachTheEngine(t *testing.T) {
	cfg := limitsOf(t, config.Flag{Name: "trusted_proxies", Value: "10.0.0.0/8,fd00::/8"})
	if fmt.Sprint(cfg.TrustedProxies) != "[10.0.0.0/8 fd00::/8]" {
		t.Errorf("%v", cfg.TrustedProxies)
	}
}

func TestEveryLimitOfTheEngineIsASetting(t *testing.T) {
	cfg := limitsOf(t)
	for _, limits := range []any{cfg.Limits, cfg.TenantDefaults} {
		v := reflect.ValueOf(limits)
		for i := range v.NumField() {
			// Zero means "the engine's default", which only Workers asks for.
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Workers" {
				t.Errorf("%s is set by nothing", name)
			}
		}
	}
}

func TestDeploymentKeysReachTheEngine(t *testing.T) {
	file := write(t, "keys", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n")
	cfg := limitsOf(t, config.Flag{Name: "deployment_key_file", Value: file})
	if len(cfg.DeploymentKeys) != 1 || cfg.DeploymentKeys[0][31] != 1 {
		t.Errorf("%v", cfg.DeploymentKeys)
	}
}
