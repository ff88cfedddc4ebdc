package redis_test

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	rooms "github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// sharing is an engine whose sessions and members are those of all nodes.
func sharing(t *testing.T, address string) *host {
	t.Helper()
	h := &host{bridge: node(t, address)}
	leases, presence := redis.NewLeases(h.bridge), redis.NewPresence(h.bridge)
	var err error
	h.Engine, err = engine.Start(t.Context(), engine.Config{
		Authenticator: asTold{}, Node: h.bridge.Node(), Broker: h.bridge, Leases: leases, Presence: presence,
		DeploymentKeys: [][]byte{[]byte("a key of all nodes, of 32 bytes.")},
		Kinds:          []rooms.Kind{{Name: rooms.Any, Presence: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h.Handler())
	h.url = "ws" + strings.TrimPrefix(web.URL, "http")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
		web.Close()
		presence.Close()
		leases.Close()
	})
	return h
}

// crowd is who is in a room, as one member is told. Whoever leaves on the way is in
// left.
type crowd struct {
	s     *client.Subscription
	there map[string]bool
	left  []string
}

func enter(t *testing.T, c *client.Client) *crowd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.Join(ctx, client.Join{Room: "lounge", Presence: true})
	if err != nil {
		t.Fatal(err)
	}
	return &crowd{s: s, there: map[string]bool{}}
}

// becomes reads until exactly these are there.
func (c *crowd) becomes(t *testing.T, subjects ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !slices.Equal(slices.Sorted(maps.Keys(c.there)), subjects) {
		item, err := c.s.Next(ctx)
		if err != nil {
			t.Fatalf("there are %v, not %v: %v", c.there, subjects, err)
		}
		p, ok := item.(*client.Presence)
		if !ok {
			continue
		}
		now := maps.Clone(c.there)
		if p.Full {
			clear(now)
		}
		for _, m := range slices.Concat(p.Members, p.Join) {
			now[m.Subject] = true
		}
		for _, subject := range p.Leave {
			delete(now, subject)
		}
		for subject := range c.there {
			if !now[subject] {
				c.left = append(c.left, subject)
			}
		}
		c.there = now
	}
}

// Members of two nodes see each other; a server that is killed and comes back empty
// makes nobody leave.
func TestMembersOfTwoEnginesOutliveTheServer(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	a, b := sharing(t, s.Address()), sharing(t, s.Address())
	ann, bob := enter(t, dial(t, a, "ann")), enter(t, dial(t, b, "bob"))
	ann.becomes(t, "ann", "bob")
	bob.becomes(t, "ann", "bob")
	s.Kill()
	s.Restart()
	cat := enter(t, dial(t, a, "cat"))
	dan := enter(t, dial(t, b, "dan"))
	for _, c := range []*crowd{ann, bob, cat, dan} {
		c.becomes(t, "ann", "bob", "cat", "dan")
		if len(c.left) > 0 {
			t.Errorf("left: %v", c.left)
		}
	}
}

// A client whose node goes away goes on with its session on another, as the only one
// that holds it, and nobody sees it leave.
func TestSessionGoesOnAtAnotherEngine(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	a, b := sharing(t, s.Address()), sharing(t, s.Address())
	way := server.NewProxy(t, strings.TrimPrefix(a.url, "ws://"))
	through := *a
	through.url = "ws://" + way.Address()
	ann, bob := dial(t, &through, "ann"), enter(t, dial(t, b, "bob"))
	enter(t, ann)
	bob.becomes(t, "ann", "bob")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before, err := ann.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	held := func(by *host, generation int) {
		t.Helper()
		want := fmt.Sprintf("%s %d", by.bridge.Node(), generation)
		for {
			got := strings.Join(strings.Fields(s.Do("HMGET", "pulse:session:acme:"+before.ID, "n", "g")), " ")
			if got == want {
				return
			}
			select {
			case <-time.After(5 * time.Millisecond): // between two looks
			case <-ctx.Done():
				t.Fatalf("held by %s, not %s", got, want)
			}
		}
	}
	held(a, 1)
	way.Redirect(strings.TrimPrefix(b.url, "ws://"))
	way.Cut()
	held(b, 2)
	after, err := ann.Session(ctx)
	if err != nil || after.ID != before.ID || !after.Resumed {
		t.Errorf("session %+v, then %+v, %v", before, after, err)
	}
	cat := enter(t, dial(t, a, "cat"))
	cat.becomes(t, "ann", "bob", "cat")
	bob.becomes(t, "ann", "bob", "cat")
	if len(bob.left) > 0 {
		t.Errorf("left: %v", bob.left)
	}
}
