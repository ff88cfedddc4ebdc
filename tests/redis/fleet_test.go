package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

func sentinels(g *server.Sentinels) func(*redis.Config) {
	return func(c *redis.Config) {
		c.Addresses, c.Mode, c.MasterName = g.Addresses, redis.Sentinel, server.MasterName
		c.Outage.Wait = patience
	}
}

// https://github.com/redis/go-redis/issues/583 https://github.com/centrifugal/centrifugo/issues/1201
func TestB060_ASentinelFailoverWhileTheOldPrimaryLives(t *testing.T) {
	t.Parallel()
	g := server.StartSentinels(t, 500*time.Millisecond)
	a, b := node(t, "", sentinels(g)), node(t, "", sentinels(g))
	f := follow(t, b, room)
	last := fill(t, a, room, 3)
	reach(t, f, 3)
	g.Replica.CatchUp(g.Primary)
	g.FailOver()
	// Publishing goes on, by key, until the new epoch shows that it has happened.
	deadline := time.Now().Add(patience)
	for last.Epoch == f.Position().Epoch || last.IsZero() {
		if time.Now().After(deadline) {
			t.Fatal("publishes have not moved to the new primary")
		}
		if got := publish(t, a, room, kept(room))[0]; got.Err == nil {
			last = got.Position
		}
		<-time.After(20 * time.Millisecond)
	}
	meet(t, f, "what was published since", func(p codec.Position, _ int) bool { return p.Epoch == last.Epoch && p.Offset >= last.Offset })
	after := fill(t, a, room, 1)
	meet(t, f, "the last", func(p codec.Position, _ int) bool { return p == after })
	until(t, a, bridge.Up)
	until(t, b, bridge.Up)
}

func TestASentinelFailoverAfterThePrimaryDied(t *testing.T) {
	t.Parallel()
	g := server.StartSentinels(t, 500*time.Millisecond)
	a, b := node(t, "", sentinels(g)), node(t, "", sentinels(g))
	f := follow(t, b, room)
	fill(t, a, room, 3)
	reach(t, f, 3)
	g.Replica.CatchUp(g.Primary)
	g.Primary.Kill()
	fill(t, a, room, 3) // waits
	whole(t, f, 0, 6)
	until(t, b, bridge.Up)
}

func clustered(g *server.Group) func(*redis.Config) {
	return func(c *redis.Config) {
		c.Addresses, c.Mode = g.Addresses(), redis.Cluster
		c.Outage.Wait = patience
	}
}

func topicsOf(n int) []codec.Topic {
	list := make([]codec.Topic, n)
	for i := range list {
		list[i] = codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:%d", i)}
	}
	return list
}

// https://github.com/redis/go-redis/issues/3133 https://github.com/redis/go-redis/issues/3806
func TestB073_B074_SubscriptionsOfAllPartsOfACluster(t *testing.T) {
	t.Parallel()
	g := server.StartCluster(t, false)
	a, b := node(t, "", clustered(g)), node(t, "", clustered(g))
	topics := topicsOf(30)
	var followers []*bridgetest.Follower
	for _, topic := range topics {
		followers = append(followers, follow(t, b, topic))
	}
	owners := map[*server.Server]bool{}
	for n := range 4 {
		for _, topic := range topics {
			fill(t, a, topic, 1)
		}
		for _, f := range followers {
			whole(t, f, 0, uint64(n+1))
		}
		for _, s := range g.Primaries {
			if s.Do("PUBSUB", "SHARDCHANNELS") != "" {
				owners[s] = true
			}
			s.Do("CLIENT", "KILL", "TYPE", "pubsub")
		}
	}
	if len(owners) != 3 {
		t.Errorf("%d of 3 primaries have subscriptions", len(owners))
	}
	until(t, b, bridge.Up)
}

// https://github.com/redis/go-redis/issues/950
func TestB075_APrimaryOfAClusterDies(t *testing.T) {
	t.Parallel()
	g := server.StartCluster(t, true)
	a, b := node(t, "", clustered(g)), node(t, "", clustered(g))
	topics := topicsOf(12)
	var followers []*bridgetest.Follower
	for _, topic := range topics {
		followers = append(followers, follow(t, b, topic))
		fill(t, a, topic, 1)
	}
	for i, r := range g.Replicas {
		r.CatchUp(g.Primaries[i])
	}
	g.Primaries[1].Kill()
	for i, topic := range topics {
		fill(t, a, topic, 1)
		whole(t, followers[i], 0, 2)
	}
	until(t, a, bridge.Up)
	until(t, b, bridge.Up)
}

// https://github.com/redis/node-redis/issues/3311
func TestB076_ASlotIsMovedUnderLoad(t *testing.T) {
	t.Parallel()
	g := server.StartCluster(t, false)
	a, b := node(t, "", clustered(g)), node(t, "", clustered(g))
	f := follow(t, b, room)
	fill(t, a, room, 2)
	var key string
	for _, s := range g.Primaries {
		if keys := s.Do("KEYS", "*meta*"); keys != "" {
			key = keys
		}
	}
	slot := g.SlotOf(key)
	from := g.Owner(slot)
	to := g.Primaries[0]
	if to == from {
		to = g.Primaries[1]
	}
	stop, sent := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				sent <- n
				return
			default:
			}
			if got := receive(t, send(a, room, kept(room)), "an answer")[0]; got.Err != nil {
				t.Errorf("while the slot moves: %v", got.Err)
			}
			n++
		}
	}()
	<-time.After(50 * time.Millisecond)
	g.Migrate(slot, from, to)
	<-time.After(500 * time.Millisecond)
	close(stop)
	n := receive(t, sent, "the end of the load")
	whole(t, f, 0, uint64(n+2))
	fill(t, a, room, 1)
	whole(t, f, 0, uint64(n+3))
	until(t, b, bridge.Up)
}

// The suite of brokers holds in a cluster too.
func TestConformanceInACluster(t *testing.T) {
	t.Parallel()
	g := server.StartCluster(t, false)
	bridgetest.TestHostile(t, func(t *testing.T, o bridgetest.Options) bridge.Broker {
		o.Clock.Real(50 * time.Millisecond) // a cluster shares the machine with other tests
		prefix := fmt.Sprintf("t%d:", made.Add(1))
		return node(t, "", clustered(g), func(c *redis.Config) { c.KeyPrefix, c.ChannelPrefix = prefix, prefix })
	})
}
