package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// Leases and presence in a cluster, by the same rules: each session and each topic
// lies in one partition, and calls are shared out by it.
func TestLeasesAndPresenceInACluster(t *testing.T) {
	t.Parallel()
	g := server.StartCluster(t, false)
	onCluster := func(c *redis.Config) { c.Addresses, c.Mode = g.Addresses(), redis.Cluster }
	flush := func() {
		for _, s := range g.Primaries {
			s.Flush()
		}
	}
	t.Run("leases", func(t *testing.T) {
		bridgetest.TestLeases(t, func(t *testing.T, o bridgetest.Options) bridgetest.LeaseTrial {
			o.Clock.Real(40 * time.Millisecond)
			flush()
			return bridgetest.LeaseTrial{
				A: redis.NewLeases(open(t, "", onCluster, node("a", "l:"))), B: redis.NewLeases(open(t, "", onCluster, node("b", "l:"))),
				Lose: flush,
			}
		})
	})
	t.Run("presence", func(t *testing.T) {
		bridgetest.TestPresence(t, func(t *testing.T) bridge.Presence { return redis.NewPresence(open(t, "", onCluster)) })
	})
	t.Run("many leases", func(t *testing.T) {
		a := leasesOf(open(t, "", onCluster, node("a", "m:")))
		var all []bridge.Lease
		for n := range 700 {
			all = append(all, numbered(n))
		}
		for range 2 {
			if err := a.renew(all...); err != nil {
				t.Fatal(err)
			}
		}
		want := fmt.Sprint(bridge.Owner{Node: "a", Generation: 1}, true)
		for _, held := range all {
			if owner, err := a.owner(held); err != nil || owner != want {
				t.Fatalf("%v is held by %v, %v", held, owner, err)
			}
		}
	})
	t.Run("a dead node", func(t *testing.T) {
		pa, _ := present(t, "", "a", onCluster, leased(lease))
		pb, dying := present(t, "", "b", onCluster, leased(lease))
		a, b := visit(t, pa, "a"), visit(t, pb, "b")
		a.sees("a", "b")
		b.sees("a", "b")
		dying.Close()
		a.sees("a")
		a.saw("+a", "+b", "-b")
	})
}
