package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Group is a cluster of three primaries, perhaps with a replica each.
type Group struct {
	tb        TB
	Primaries []*Server
	Replicas  []*Server // of the primary with the same index
}

// slots of a cluster.
const slots = 16384

// StartCluster runs a cluster whose nodes miss each other after two seconds.
func StartCluster(tb TB, replicas bool) *Group {
	tb.Helper()
	g := &Group{tb: tb}
	node := func() *Server {
		return Start(tb, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000")
	}
	for i := range 3 {
		p := node()
		g.Primaries = append(g.Primaries, p)
		p.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/3), strconv.Itoa((i+1)*slots/3-1))
		p.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if replicas {
			g.Replicas = append(g.Replicas, node())
		}
	}
	first := g.Primaries[0]
	for _, s := range g.all()[1:] {
		s.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(first.port))
	}
	for i, r := range g.Replicas {
		id := g.Primaries[i].ID()
		r.eventually("a primary that is known", func() bool { return strings.Contains(r.Do("CLUSTER", "NODES"), id) })
		r.Do("CLUSTER", "REPLICATE", id)
		r.eventually("a replica in sync", func() bool { return r.info("master_link_status") == "up" })
	}
	g.Await()
	return g
}

func (g *Group) all() []*Server { return append(slices.Clone(g.Primaries), g.Replicas...) }

// Addresses are those of all.
func (g *Group) Addresses() (list []string) {
	for _, s := range g.all() {
		list = append(list, s.Address())
	}
	return list
}

// Await waits until all that run agree that the cluster is whole.
func (g *Group) Await() {
	g.tb.Helper()
	for _, s := range g.all() {
		if !s.running {
			continue
		}
		s.eventually("a whole cluster", func() bool {
			known := 0
			for _, line := range strings.Split(s.Do("CLUSTER", "NODES"), "\n") {
				if strings.Contains(line, " connected") {
					known++
				}
			}
			return strings.Contains(s.Do("CLUSTER", "INFO"), "cluster_state:ok") && known >= 3
		})
	}
}

// ID is the node's name in its cluster.
func (s *Server) ID() string { return s.Do("CLUSTER", "MYID") }

// Owner is the primary that has a slot.
func (g *Group) Owner(slot int) *Server {
	g.tb.Helper()
	return g.Primaries[min(slot/(slots/3), 2)]
}

// SlotOf is that of a key.
func (g *Group) SlotOf(key string) int {
	n, err := strconv.Atoi(g.Primaries[0].Do("CLUSTER", "KEYSLOT", key))
	if err != nil {
		g.tb.Fatal(err)
	}
	return n
}

// Migrate moves a slot with its keys, key by key, while everybody goes on.
func (g *Group) Migrate(slot int, from, to *Server) {
	g.tb.Helper()
	n := strconv.Itoa(slot)
	to.Do("CLUSTER", "SETSLOT", n, "IMPORTING", from.ID())
	from.Do("CLUSTER", "SETSLOT", n, "MIGRATING", to.ID())
	for {
		keys := strings.Fields(from.Do("CLUSTER", "GETKEYSINSLOT", n, "10"))
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			answer, err := from.try("MIGRATE", "127.0.0.1", fmt.Sprint(to.port), key, "0", "5000", "REPLACE")
			if err != nil || strings.HasPrefix(answer, "-") {
				g.tb.Fatalf("migrating %s: %s, %v", key, answer, err)
			}
		}
	}
	for _, s := range []*Server{to, from} {
		s.Do("CLUSTER", "SETSLOT", n, "NODE", to.ID())
	}
	for _, s := range g.all() {
		if s != to && s != from && s.running {
			_, _ = s.try("CLUSTER", "SETSLOT", n, "NODE", to.ID()) // a replica refuses: it hears of it otherwise
		}
	}
}
