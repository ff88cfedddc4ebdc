package main

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/transport/ws"
)

// newJWT makes what verifies tokens. Who runs an engine with it closes it after
// the engine.
func newJWT(c *config.Config, log *slog.Logger) (*auth.JWT, error) {
	jwt := c.Auth.JWT
	return auth.NewJWT(auth.JWTConfig{
		Keys:   authKeys(c),
		JWKS:   auth.JWKSConfig{URL: jwt.JWKS.URL, Refresh: jwt.JWKS.Refresh, Logger: log},
		Issuer: jwt.Issuer, Audience: jwt.Audience, TenantClaim: jwt.TenantClaim, Leeway: jwt.Leeway,
	})
}

// engineConfig is the one place where the configuration becomes the engine's.
func engineConfig(c *config.Config, authenticator auth.Authenticator, log *slog.Logger) engine.Config {
	cfg := engine.Config{
		Authenticator: authenticator,
		Limits: engine.Limits{
			HandshakeTimeout: c.Transport.HandshakeTimeout,
			Ping:             c.Transport.Ping,
			PongTimeout:      c.Transport.PongTimeout,
			WriteTimeout:     c.Transport.WriteTimeout,
			ResumeTTL:        c.Session.ResumeTTL,
			PresenceGrace:    c.Session.PresenceGrace,

			MaxMessageBytes: int(c.Transport.MaxMessageBytes),
			MaxFrameBytes:   int(c.Transport.MaxFrameBytes),

			MaxUnauthenticated:           c.Transport.MaxUnauthenticated,
			MaxUnauthenticatedPerAddress: c.Transport.MaxUnauthenticatedPerAddress,

			AcceptRate:           c.Transport.AcceptRate.Connections,
			AcceptRatePerAddress: c.Transport.AcceptRate.PerAddress,

			SessionQueueItems: c.Session.Queue.Items,
			SessionQueueBytes: int(c.Session.Queue.Bytes),
			SessionMaxRooms:   c.Session.MaxRooms,
			Unacked:           c.Session.Unacked,

			MaxSessions:     c.Node.MaxSessions,
			QueueBytes:      int64(c.Node.QueueBytes),
			HistoryBytes:    int64(c.Node.HistoryBytes),
			ReplayBytes:     int64(c.Node.ReplayBytes),
			Workers:         c.Node.Workers,
			BlockingWorkers: c.Node.BlockingWorkers,
		},
		TenantDefaults:      tenantLimits(c.TenantDefaults),
		Tenants:             make(map[string]engine.TenantLimits, len(c.Tenants)),
		Origins:             c.Origins,
		TrustedProxies:      c.Proxies,
		Cookie:              c.Auth.Cookie,
		DeploymentKeys:      c.DeploymentKeys,
		Compression:         ws.Compression{Enabled: c.Transport.Compression.Enabled, Threshold: int(c.Transport.Compression.Threshold)},
		RefuseMissingOrigin: !c.AllowMissingOrigin,
		Logger:              log,
		TenantLabels:        c.Telemetry.TenantLabels,
		TraceRatio:          c.Telemetry.TraceRatio,
	}
	if c.Session.PresenceGrace == 0 { // "leave at once" here, "the default" there
		cfg.Limits.PresenceGrace = -1
	}
	unlimited(&cfg.Limits.AcceptRate)
	unlimited(&cfg.Limits.AcceptRatePerAddress)
	for name, t := range c.Tenants {
		cfg.Tenants[name] = tenantLimits(t)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Rooms)) {
		cfg.Kinds = append(cfg.Kinds, c.Rooms[name].Kind(name))
	}
	return cfg
}

func tenantLimits(t config.Tenant) engine.TenantLimits {
	limits := engine.TenantLimits{
		Weight:       t.Weight,
		MaxSessions:  t.MaxSessions,
		MaxRooms:     t.MaxRooms,
		NewRooms:     t.NewRooms,
		QueueBytes:   int64(t.QueueBytes),
		HistoryBytes: int64(t.HistoryBytes),
		ReplayBytes:  int64(t.ReplayBytes),
		Rate:         backpressure.Rate{Messages: t.Rate.Messages, Bytes: int64(t.Rate.Bytes)},
		SessionRate:  backpressure.Rate{Messages: t.SessionRate.Messages, Bytes: int64(t.SessionRate.Bytes)},
	}
	unlimited(&limits.NewRooms)
	for _, r := range []*backpressure.Rate{&limits.Rate, &limits.SessionRate} {
		unlimited(&r.Messages)
		unlimited(&r.Bytes)
	}
	return limits
}

// unlimited turns 0, "no limit" in the configuration and "the default" for the
// engine, into what the engine calls no limit.
func unlimited[N int | int64](limit *N) {
	if *limit == 0 {
		*limit = -1
	}
}

// authKeys returns the keys that verify tokens.
func authKeys(c *config.Config) []auth.Key {
	var keys []auth.Key
	for _, k := range c.Auth.JWT.Keys {
		keys = append(keys, k.Key)
	}
	return keys
}
