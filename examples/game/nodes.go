package main

import (
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/engine"
)

// onRedis makes an engine one node of several, which share a Redis and a key of 32
// bytes. What it returns ends its part in that, after the engine.
func onRedis(cfg *engine.Config, address string, key []byte) (leave func(), err error) {
	bridge, err := redis.New(redis.Config{Addresses: []string{address}, KeyPrefix: "game:", ChannelPrefix: "game:"})
	if err != nil {
		return nil, err
	}
	leases, presence := redis.NewLeases(bridge), redis.NewPresence(bridge)
	cfg.Node, cfg.Broker, cfg.Leases, cfg.Presence = bridge.Node(), bridge, leases, presence
	cfg.DeploymentKeys = [][]byte{key}
	return func() { presence.Close(); leases.Close(); bridge.Close() }, nil
}
