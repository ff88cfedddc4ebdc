package main

import (
	"crypto/tls"
	"log/slog"
	"sync/atomic"

	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
	"github.com/yaza-dev/pulse/engine"
)

// redisBridge is a node's place among others on Redis. Nil: the node stands alone.
type redisBridge struct {
	bridge   *redis.Bridge
	leases   *redis.Leases
	presence *redis.Presence

	// terms are what tenants may have: of the configuration in force.
	terms atomic.Pointer[config.Config]
}

// newRedis starts the bridge that is configured. Redis need not be there.
func newRedis(c *config.Config, log *slog.Logger) (*redisBridge, error) {
	if len(c.Bridge.Redis.Addresses) == 0 {
		return nil, nil
	}
	redis.LogDriver(log)
	b := &redisBridge{}
	b.terms.Store(c)
	cfg := redisConfig(c, log)
	cfg.TenantBytes = func(name string) int64 { return int64(b.tenant(name).RedisBytes) }
	cfg.NewRooms = func(name string) int { return b.tenant(name).NewRooms }
	var err error
	if b.bridge, err = redis.New(cfg); err != nil {
		return nil, err
	}
	b.leases, b.presence = redis.NewLeases(b.bridge), redis.NewPresence(b.bridge)
	return b, nil
}

// tenant is what a tenant may have.
func (b *redisBridge) tenant(name string) config.Tenant {
	terms := b.terms.Load()
	if t, ok := terms.Tenants[name]; ok {
		return t
	}
	return terms.TenantDefaults
}

// reload takes over what of a configuration a bridge that runs can.
func (b *redisBridge) reload(c *config.Config) {
	if b != nil {
		b.terms.Store(c)
	}
}

// redisConfig is the one place where the configuration becomes the bridge's.
func redisConfig(c *config.Config, log *slog.Logger) redis.Config {
	r := c.Bridge.Redis
	cfg := redis.Config{
		Addresses: r.Addresses, MasterName: r.MasterName, Username: r.Username, Password: c.RedisPassword,
		KeyPrefix: r.KeyPrefix, ChannelPrefix: r.ChannelPrefix,
		CompressAbove: int(r.CompressionThreshold), PayloadMax: int(r.PayloadMax),
		Outage: redis.OutageQueue{Items: r.OutageQueue.Items, Bytes: int64(r.OutageQueue.Bytes), Wait: r.OutageQueue.Wait},
		Check:  r.Check, Lease: c.Node.Lease, Logger: log,
	}
	for _, mode := range []redis.Mode{redis.Standalone, redis.Sentinel, redis.Cluster} {
		if mode.String() == r.Mode {
			cfg.Mode = mode
		}
	}
	if r.OutageQueue.Wait == 0 { // "fail at once" here, "the default" there
		cfg.Outage.Wait = -1
	}
	if r.TLS {
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return cfg
}

// give makes it the engine's.
func (b *redisBridge) give(cfg *engine.Config) {
	if b != nil {
		cfg.Node, cfg.Broker, cfg.Leases, cfg.Presence = b.bridge.Node(), b.bridge, b.leases, b.presence
	}
}

// close ends it, after the engine.
func (b *redisBridge) close() {
	if b != nil {
		b.presence.Close()
		b.leases.Close()
		b.bridge.Close()
	}
}
