package redis

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/tests/redis/nodes"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// https://github.com/aspnet/SignalR/issues/1420: what a node with a thousand connections
// had in Redis is gone within its leases' time when it is killed.
func TestB092_NothingOfAKilledNodeStaysInRedis(t *testing.T) {
	t.Parallel()
	redis := server.Start(t)
	d := nodes.Deploy(t, fmt.Sprintf(`
transport: { max_unauthenticated_per_address: 1000 }
session: { presence_grace: 1s, resume_ttl: 6s }
node: { lease: 3s, drain_timeout: 5s }
rooms: { chat: { presence: true, history: { age: 1s } } }
bridge: { redis: { addresses: [%q] } }
`, redis.Address()))
	stays, dies := d.Start(), d.Start()
	bob := enter(t, connect(t, d, stays.Public, "bob"), "chat:1")
	keys := func() int { return len(strings.Fields(redis.Do("KEYS", "pulse:*"))) }
	nodesOf := func() int { return len(strings.Fields(redis.Do("KEYS", "pulse:node:*"))) }
	bob.until("bob himself", func() bool { return bob.here["bob"] })

	const n = 1000
	token := d.Token("carol")
	var coming sync.WaitGroup
	turns := make(chan struct{}, 32)
	clients := make([]*client.Client, n)
	for i := range clients {
		coming.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			c, err := client.New(client.Options{URL: "ws://" + dies.Public, Token: func(context.Context) (string, error) { return token, nil }})
			if err != nil {
				t.Error(err)
				return
			}
			clients[i] = c
			if _, err := c.Join(within(t, time.Minute), client.Join{Room: "chat:1"}); err != nil {
				t.Error(err)
			}
		})
	}
	coming.Wait()
	bob.until("carol", func() bool { return bob.here["carol"] })
	if got := keys(); got < n || nodesOf() != 2 {
		t.Errorf("%d keys, %d nodes, with %d sessions on two nodes", got, nodesOf(), n)
	}
	dies.Kill()
	for _, c := range clients {
		coming.Go(c.Close) // nobody comes back
	}
	coming.Wait()
	bob.until("carol to leave", func() bool { return !bob.here["carol"] })
	var left string
	deadline := time.Now().Add(20 * time.Second)
	for {
		left = strings.Join(strings.Fields(redis.Do("KEYS", "pulse:*")), " ")
		// bob's session and hall, the node that stays, the list of nodes, the room's record.
		if len(strings.Fields(left)) <= 7 && !strings.Contains(left, "pulse:buffer:") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d keys stay: %.2000s", keys(), left)
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Logf("what stays: %s", left)
	if nodesOf() != 1 || strings.Count(left, "pulse:session:") != 1 {
		t.Errorf("what stays: %s", left)
	}
}
