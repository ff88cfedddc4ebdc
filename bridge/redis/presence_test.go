package redis_test

import (
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

func TestPresence(t *testing.T) {
	s := server.Start(t)
	bridgetest.TestPresence(t, func(t *testing.T) bridge.Presence {
		return redis.NewPresence(open(t, s.Address()))
	})
}
