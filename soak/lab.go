package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/soak/history"
	"github.com/yaza-dev/pulse/tests/redis/nodes"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// site is where a crowd connects.
type site interface {
	dial(ctx context.Context, network, address string) (net.Conn, error) // to any node
	token() string
	kept(room string) int // how many events a room's history keeps
}

// A history is short in rooms of one kind, and longer than a run in the others.
const (
	longKept  = 50_000
	shortKept = 8
	// missing is how long sentinels wait for a primary before they let another take over.
	missing = 1500 * time.Millisecond
	// healing is how long a deployment may take to be whole again after a fault.
	healing = time.Minute
)

// lab is three nodes on Redis behind Sentinel.
type lab struct {
	tb         nodes.TB
	redis      *server.Sentinels
	deployment *nodes.Deployment
	pass       string

	mu    sync.Mutex
	nodes []*nodes.Node // guarded by mu, as next
	next  int
}

func newLab(tb nodes.TB) *lab {
	// What a server has answered is on its disk: a bounce loses nothing.
	l := &lab{tb: tb, redis: server.StartSentinels(tb, missing, "--appendonly", "yes", "--appendfsync", "always")}
	l.deployment = nodes.Deploy(tb, fmt.Sprintf(`
transport: { max_unauthenticated_per_address: 1000, ping: 4s, pong_timeout: 2s }
node: { lease: 4s, drain_timeout: 5s }
tenant_defaults: { session_rate: { messages: 0, bytes: 0B } }
rooms:
  chat: { history: { events: %d, age: 1h, bytes: 64MiB } }
  short: { history: { events: %d } }
log: { level: warn }
bridge: { redis: { addresses: [%s], mode: sentinel, master_name: %s, check: 2s } }
`, longKept, shortKept, strings.Join(l.redis.Addresses, ", "), server.MasterName))
	l.pass = l.deployment.Token("soak")
	for range 3 {
		l.nodes = append(l.nodes, l.deployment.Start())
	}
	l.await("nodes that are ready", l.ready)
	return l
}

func (l *lab) token() string { return l.pass }

func (l *lab) kept(room string) int { return kept(room) }

func kept(room string) int {
	if strings.HasPrefix(room, "short") {
		return shortKept
	}
	return longKept
}

// dial goes round the nodes, as a balancer without sticky sessions does.
func (l *lab) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	l.mu.Lock()
	l.next++
	n := l.nodes[l.next%len(l.nodes)]
	l.mu.Unlock()
	return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, n.Public)
}

// ready: every node says that nothing ails it.
func (l *lab) ready() bool {
	for _, n := range l.nodes { // only the one that deals faults changes them
		if !strings.Contains(n.Ready(), `"ok"`) {
			return false
		}
	}
	return true
}

func (l *lab) await(what string, met func() bool) {
	l.tb.Helper()
	for deadline := time.Now().Add(healing); !met(); {
		if time.Now().After(deadline) {
			l.tb.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
}

// fault is something that is done to a deployment.
type fault struct {
	name  string
	loses bool // history, for certain; that a failover may is found out
	do    func()
}

// deck is all that a lab can do.
func (l *lab) deck() []fault {
	pause := func(d time.Duration) { time.Sleep(d) }
	return []fault{
		{"cut", false, func() { // what stands between them loses every connection
			for _, kind := range []string{"normal", "pubsub"} {
				l.redis.Leader().Do("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
			}
		}},
		{"pause", false, func() { // the server does not answer for a while
			s := l.redis.Leader()
			s.Pause()
			pause(missing * 2 / 3)
			s.Resume()
		}},
		{"bounce", false, func() { // it dies, and comes back with what it had
			s := l.redis.Leader()
			s.Kill()
			pause(missing / 5)
			s.Restart()
		}},
		{"flush", true, func() { l.redis.Leader().Flush() }},
		{"failover", false, func() { // asked for, while the old primary goes on
			old := l.redis.Leader()
			l.redis.Follower().CatchUp(old)
			l.redis.FailOver()
			l.await("a failover", func() bool { return l.redis.Leader() != old })
		}},
		{"crash", false, func() { // the primary dies, and its replica takes over
			old := l.redis.Leader()
			old.Kill()
			l.await("a failover", func() bool { return l.redis.Leader() != old })
			old.Restart()
		}},
		{"kill", false, func() { // a node dies while the server has what it asked for; another is started
			l.mu.Lock()
			i := l.next % len(l.nodes)
			n := l.nodes[i]
			l.mu.Unlock()
			s := l.redis.Leader()
			s.Pause()
			pause(missing / 5)
			n.Kill()
			s.Resume()
			n = l.deployment.Start()
			l.mu.Lock()
			l.nodes[i] = n
			l.mu.Unlock()
		}},
		{"freeze", false, func() { // a node does nothing for a while
			l.mu.Lock()
			n := l.nodes[l.next%len(l.nodes)]
			l.mu.Unlock()
			n.Freeze()
			pause(2 * time.Second)
			n.Thaw()
		}},
	}
}

// inject makes a fault, and waits until the deployment is whole again.
func (l *lab) inject(f fault, settle time.Duration, now func() time.Duration) history.Fault {
	leader := l.redis.Leader()
	made := history.Fault{Name: f.name, From: now()}
	f.do()
	l.redis.Settle()
	l.await("nodes that are ready after: "+f.name, l.ready)
	time.Sleep(settle) // so that everybody has heard of it
	made.To = now()
	made.Loses = f.loses || l.redis.Leader() != leader
	return made
}

// deal makes faults until the time is over, each once at least.
func (l *lab) deal(deck []fault, o options, now func() time.Duration) (made []history.Fault) {
	random := rand.New(rand.NewPCG(o.Seed, 0))
	for round := 0; round == 0 || now() < o.Duration; round++ {
		random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, f := range deck {
			if round > 0 && now() >= o.Duration {
				break
			}
			done := l.inject(f, o.Settle, now)
			made = append(made, done)
			fmt.Fprintf(o.Out, "%6.1fs %-9s healed after %.1fs%s\n", done.From.Seconds(), f.name, (done.To - done.From - o.Settle).Seconds(), map[bool]string{true: ", history may be lost"}[done.Loses])
		}
	}
	return made
}
