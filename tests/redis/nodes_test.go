package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/nodes"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// deploy is a deployment on one server.
func deploy(t *testing.T, redis string) *nodes.Deployment {
	t.Helper()
	return nodes.Deploy(t, fmt.Sprintf(`
session: { presence_grace: 2s }
node: { lease: 4s, drain_timeout: 5s }
rooms: { chat: { presence: true } }
bridge: { redis: { addresses: [%q] } }
`, redis))
}

// connect brings a subject to an address.
func connect(t *testing.T, d *nodes.Deployment, address, subject string) *client.Client {
	t.Helper()
	token := d.Token(subject)
	c, err := client.New(client.Options{
		URL:   "ws://" + address,
		Token: func(context.Context) (string, error) { return token, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// member is a client's view of a room: its events, and who is there.
type member struct {
	t *testing.T
	s *client.Subscription

	events []*client.Event
	here   map[string]bool
	joins  map[string]int // by subject, as told
	leaves map[string]int
}

func enter(t *testing.T, c *client.Client, room string) *member {
	t.Helper()
	s, err := c.Join(within(t, 20*time.Second), client.Join{Room: room, Presence: true})
	if err != nil {
		t.Fatal(err)
	}
	return &member{t: t, s: s, here: map[string]bool{}, joins: map[string]int{}, leaves: map[string]int{}}
}

// until takes items until met.
func (m *member) until(what string, met func() bool) {
	m.t.Helper()
	ctx := within(m.t, 30*time.Second)
	for !met() {
		item, err := m.s.Next(ctx)
		if err != nil {
			m.t.Fatalf("waiting for %s: %v; events %d, here %v", what, err, len(m.events), m.here)
		}
		switch item := item.(type) {
		case *client.Event:
			m.events = append(m.events, item)
		case *client.Reset:
			if item.Reason != codec.ResetNone { // else it is how a subscription begins
				m.t.Fatalf("waiting for %s: reset %v", what, item.Reason)
			}
		case *client.Presence:
			m.presence(item)
		}
	}
}

func (m *member) presence(p *client.Presence) {
	if p.Full {
		m.here = map[string]bool{}
	}
	for _, list := range [][]codec.Member{p.Members, p.Join} {
		for _, who := range list {
			m.here[who.Subject] = true
		}
	}
	for _, who := range p.Join {
		m.joins[who.Subject]++
	}
	for _, who := range p.Leave {
		delete(m.here, who)
		m.leaves[who]++
	}
}

// Two nodes on one Redis are one deployment: events cross in one order, who is there
// is counted over both, and whose node is killed goes on at the other with its
// session, without a gap.
func TestTwoNodesAreOneDeployment(t *testing.T) {
	t.Parallel()
	redis := server.Start(t)
	d := deploy(t, redis.Address())
	a, b := d.Start(), d.Start()
	balancer := server.NewProxy(t, a.Public)

	alice := connect(t, d, balancer.Address(), "alice")
	atA := enter(t, alice, "chat:1")
	bob := connect(t, d, b.Public, "bob")
	atB := enter(t, bob, "chat:1")
	carol := connect(t, d, a.Public, "carol")
	enter(t, carol, "chat:1")
	atA.until("everybody to be seen at one node", func() bool { return atA.here["alice"] && atA.here["bob"] && atA.here["carol"] })
	atB.until("everybody to be seen at the other", func() bool { return atB.here["alice"] && atB.here["bob"] && atB.here["carol"] })

	for i := range 20 {
		for _, c := range []*client.Client{alice, bob} {
			if _, err := c.Publish(within(t, 10*time.Second), client.Publish{Room: "chat:1", Event: "message", Data: i}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range []*member{atA, atB} {
		m.until("the events of both", func() bool { return len(m.events) == 40 })
	}
	for i := range atA.events {
		if x, y := atA.events[i], atB.events[i]; x.Position != y.Position || x.ID != y.ID || x.Position.Offset != uint64(i+1) {
			t.Fatalf("event %d: %v %s at one node, %v %s at the other", i, x.Position, x.ID, y.Position, y.ID)
		}
	}

	before, err := alice.Session(within(t, 5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	balancer.Redirect(b.Public)
	a.Kill()
	for i := range 10 {
		if _, err := bob.Publish(within(t, 10*time.Second), client.Publish{Room: "chat:1", Event: "message", Data: i}); err != nil {
			t.Fatal(err)
		}
	}
	atA.until("what was published while there was no node", func() bool { return len(atA.events) == 50 })
	for i, e := range atA.events {
		if e.Position.Offset != uint64(i+1) {
			t.Fatalf("event %d is at %v", i, e.Position)
		}
	}
	if after, err := alice.Session(within(t, 5*time.Second)); err != nil || after.ID != before.ID || !after.Resumed || after.Node == before.Node {
		t.Errorf("the session %+v goes on as %+v, %v", before, after, err)
	}
	atB.until("carol, whose node is dead, to leave", func() bool { return atB.leaves["carol"] > 0 })
	if !atB.here["alice"] || atB.leaves["alice"] > 0 || atB.joins["alice"] > 1 || atB.leaves["carol"] != 1 {
		t.Errorf("here %v, joins %v, leaves %v", atB.here, atB.joins, atB.leaves)
	}
}
