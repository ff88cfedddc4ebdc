package redis_test

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// raw is a client as an operator has one.
func raw(t testing.TB, address string) *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: address, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func named(node string) func(*redis.Config) { return func(c *redis.Config) { c.Node = node } }

// beside is a bridge on the keys of another.
func with(prefix string) func(*redis.Config) {
	return func(c *redis.Config) { c.KeyPrefix, c.ChannelPrefix = prefix, prefix }
}

func TestLeases(t *testing.T) {
	s := server.Start(t)
	operator := raw(t, s.Address())
	bridgetest.TestLeases(t, func(t *testing.T, o bridgetest.Options) bridgetest.LeaseTrial {
		o.Clock.Real(25 * time.Millisecond)
		if err := operator.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		a := open(t, s.Address(), with("lease:"), named("a"))
		b := open(t, s.Address(), with("lease:"), named("b"))
		return bridgetest.LeaseTrial{A: redis.NewLeases(a), B: redis.NewLeases(b), Lose: func() {
			if err := operator.FlushAll(context.Background()).Err(); err != nil {
				t.Error(err)
			}
		}}
	})
}
