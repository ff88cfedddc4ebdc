package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// bounded lets each tenant have so many bytes on the server.
func bounded(bytes int64) func(*redis.Config) {
	return func(c *redis.Config) {
		c.TenantBytes = func(string) int64 { return bytes }
		c.Lease = 1500 * time.Millisecond
	}
}

// flood publishes to new rooms of a tenant until it is refused, and tells how often it
// was not.
func flood(t *testing.T, b *redis.Bridge, tenant, name string, r bridge.Retention) (taken int) {
	t.Helper()
	for ; taken < 10_000; taken++ {
		topic := codec.Topic{Tenant: tenant, Room: fmt.Sprintf("chat:%s:%d", name, taken)}
		answer := make(chan []bridge.Published, 1)
		b.Publish(topic, r, []bridge.Publication{{Event: event(topic, "e"), Buffered: true}}, func(p []bridge.Published) { answer <- p })
		if err := receive(t, answer, "an answer")[0].Err; err != nil {
			if err.Code != codec.CodeQuotaExceeded || err.Scope != codec.ScopeTenant || err.RetryAfter <= 0 {
				t.Fatalf("refused by %+v", err)
			}
			return taken
		}
	}
	t.Fatal("nothing was refused")
	return 0
}

// A tenant that floods is refused at what it may have, which is near the truth; others
// are not, what is not kept is not, and repeats get their results. When its events are
// too old there is room again.
func TestATenantsHistoryIsBoundedOnTheServer(t *testing.T) {
	const most = 300_000
	s := server.Start(t)
	b := node(t, s.Address(), bounded(most))
	brief := plenty
	brief.Age = 2 * time.Second
	first := kept(room)
	accept(t, b, room, first)
	began := time.Now()
	if n := flood(t, b, "acme", "a", brief); time.Since(began) < brief.Age {
		var real int
		for _, key := range strings.Fields(s.Do("KEYS", "pulse:*:acme:*")) {
			bytes, err := strconv.Atoi(s.Do("MEMORY", "USAGE", key))
			if err != nil {
				t.Fatal(err)
			}
			real += bytes
		}
		t.Logf("%d bytes in %d rooms, estimated as %d", real, n, most)
		if real < most/2 || real > most*3/2 {
			t.Errorf("%d rooms take %d bytes on the server, estimated as %d", n, real, most)
		}
	}
	other := codec.Topic{Tenant: "umbrella", Room: "chat:1"}
	fill(t, b, other, 3)
	accept(t, b, room, bridge.Publication{Event: event(room, "passing")})
	if got := accept(t, b, room, first)[0]; !got.Duplicate {
		t.Errorf("a repeat: %+v", got)
	}
	eventually(t, "room again", func() bool { return publish(t, b, room, kept(room))[0].Err == nil })
	if n := flood(t, b, "acme", "b", brief); n < 50 {
		t.Errorf("%d rooms after the first had gone", n)
	}
}

// Nodes share a tenant's bytes; a node that is gone gives its part back when its lease
// has ended.
func TestATenantsBytesAreSharedOutOverLiveNodes(t *testing.T) {
	const most = 400_000
	s := server.Start(t)
	a := node(t, s.Address(), bounded(most))
	long := plenty
	alone := flood(t, a, "alone", "a", long)
	b := start(t, s.Address(), bounded(most))
	until(t, b, bridge.Up)
	eventually(t, "two nodes", func() bool { return s.Do("ZCARD", "pulse:nodes") == "2" })
	// Each knows at its next census, which may come in the middle of a flood.
	for name, n := range map[string]*redis.Bridge{"one": a, "the other": b} {
		eventually(t, "a half at "+name, func() bool {
			got := flood(t, n, fmt.Sprintf("half%d", made.Add(1)), "a", long)
			return got >= alone/2-2 && got <= alone/2+2
		})
	}
	b.Close()
	eventually(t, "what the other had", func() bool {
		return flood(t, a, fmt.Sprintf("c%d", made.Add(1)), "a", long) == alone
	})
}

// A tenant may begin so many rooms a second, in bursts of ten seconds' worth; rooms that
// have a history are no new ones, and other tenants do not pay.
func TestNewRoomsAreRationed(t *testing.T) {
	s := server.Start(t)
	rationed := func(c *redis.Config) { c.NewRooms = func(string) int { return 2 } }
	a, b := node(t, s.Address()), node(t, s.Address(), rationed)
	var old []codec.Topic
	for i := range 15 {
		old = append(old, codec.Topic{Tenant: "acme", Room: fmt.Sprintf("chat:old:%d", i)})
		fill(t, a, old[i], 1)
	}
	for _, topic := range old {
		follow(t, b, topic)
	}
	begin := func(tenant, name string) *codec.Error {
		f := bridgetest.Follow(b, codec.Topic{Tenant: tenant, Room: name})
		t.Cleanup(f.Close)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var refusal *codec.Error
		if err := f.Until(ctx, func(codec.Position, int) bool { return true }); err != nil && !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		return refusal
	}
	made, began := 0, time.Now()
	for ; made < 1000; made++ {
		if err := begin("acme", fmt.Sprintf("chat:new:%d", made)); err != nil {
			if err.Code != codec.CodeQuotaExceeded || err.Scope != codec.ScopeTenant || err.RetryAfter <= 0 {
				t.Errorf("%+v", err)
			}
			break
		}
	}
	if most := 21 + int(2*time.Since(began).Seconds()); made < 20 || made > most {
		t.Errorf("%d new rooms, want 20 and what two a second give meanwhile: %d", made, most)
	}
	if err := begin("acme", old[0].Room); err != nil {
		t.Errorf("a room that is followed already: %v", err)
	}
	if err := begin("globex", "chat:new"); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	eventually(t, "one more", func() bool { return begin("acme", fmt.Sprintf("chat:more:%d", made)) == nil })
}

// In a cluster nodes are counted in one place, whatever part a room is in; and what is
// there can be looked at.
func TestATenantsBytesInACluster(t *testing.T) {
	g := server.StartCluster(t, false)
	few := func(c *redis.Config) { bounded(100_000)(c); clustered(g)(c) }
	a := node(t, "", few)
	alone := flood(t, a, "alone", "a", plenty)
	node(t, "", few)
	eventually(t, "a half", func() bool {
		got := flood(t, a, fmt.Sprintf("half%d", made.Add(1)), "a", plenty)
		return got >= alone/2-2 && got <= alone/2+2
	})
	where := redis.Config{Addresses: g.Addresses(), Mode: redis.Cluster, KeyPrefix: "pulse:"}
	for i := range 10 {
		p, found, err := redis.Peek(t.Context(), where, codec.Topic{Tenant: "alone", Room: fmt.Sprintf("chat:a:%d", i)}, codec.Position{}, 10)
		if err != nil || !found || len(p.Events) != 1 || p.Head.Offset != 1 {
			t.Errorf("%+v, %v, %v", p, found, err)
		}
	}
}
