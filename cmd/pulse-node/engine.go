package main

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
	"github.com/yaza-dev/pulse/engine"
)

// engineConfig is the one place where the configuration becomes the engine's.
func engineConfig(c *config.Config, log *slog.Logger) (engine.Config, error) {
	jwt := c.Auth.JWT
	authenticator, err := auth.NewJWT(auth.JWTConfig{
		Keys: authKeys(c), Issuer: jwt.Issuer, Audience: jwt.Audience, TenantClaim: jwt.TenantClaim, Leeway: jwt.Leeway,
	})
	if err != nil {
		return engine.Config{}, err
	}
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
		RefuseMissingOrigin: !c.AllowMissingOrigin,
		Logger:              log,
	}
	if c.Session.PresenceGrace == 0 { // "leave at once" here, "the default" there
		cfg.Limits.PresenceGrace = -1
	}
	for name, t := range c.Tenants {
		cfg.Tenants[name] = tenantLimits(t)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Rooms)) {
		cfg.Kinds = append(cfg.Kinds, c.Rooms[name].Kind(name))
	}
	return cfg, nil
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
	}
	if t.NewRooms == 0 { // "no limit" here, "the default" there
		limits.NewRooms = -1
	}
	return limits
}

// authKeys returns the keys that verify tokens; the first also signs.
func authKeys(c *config.Config) []auth.Key {
	var keys []auth.Key
	for _, k := range c.Auth.JWT.Keys {
		keys = append(keys, auth.Key{Alg: k.Alg, ID: k.KID, Secret: []byte(k.Secret)})
	}
	return keys
}
