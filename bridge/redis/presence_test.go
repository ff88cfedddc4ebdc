package redis_test

import (
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

func TestPresence(t *testing.T) {
	s := server.Start(t)
	bridgetest.TestPresence(t, func(t *testing.T) bridge.Presence {
		return redis.NewPresence(open(t, s.Address()))
	})
}

// lease is how long nodes live that are not heard of, in tests of that: longer than a busy
// machine keeps one that lives from saying so.
const lease = 3 * time.Second

func leased(d time.Duration) func(*redis.Config) { return func(c *redis.Config) { c.Lease = d } }

func checked(d time.Duration) func(*redis.Config) { return func(c *redis.Config) { c.Check = d } }

// present is a node on the keys of all in the test.
func present(t testing.TB, address, name string, change ...func(*redis.Config)) (*redis.Presence, *redis.Bridge) {
	b := open(t, address, append([]func(*redis.Config){node(name, "p:")}, change...)...)
	p := redis.NewPresence(b)
	t.Cleanup(p.Close)
	return p, b
}

// B139, soketi/soketi#19 and beyondcode/laravel-websockets#297: a second tab was a
// second join, and closing one of two a leave. Here three nodes have one subject, and
// open and close in all orders.
func TestB139_OneJoinAndOneLeaveOverAllNodes(t *testing.T) {
	s := server.Start(t)
	var nodes []*guest
	for _, name := range []string{"a", "b", "c"} {
		p, _ := present(t, s.Address(), name)
		nodes = append(nodes, visit(t, p))
	}
	for _, g := range nodes {
		g.sees()
	}
	orders := [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	subjects := 0
	for _, opening := range orders {
		for _, closing := range orders {
			subject := fmt.Sprint("s", subjects)
			subjects++
			for _, i := range opening {
				nodes[i].put(subject, "1")
			}
			for _, i := range closing {
				nodes[i].remove(subject)
			}
		}
	}
	for _, g := range nodes {
		g.sees()
		for i := range subjects {
			subject := fmt.Sprint("s", i)
			if in, out := g.told("+"+subject), g.told("-"+subject); in != 1 || out != 1 {
				t.Errorf("%s: %d joins, %d leaves", subject, in, out)
			}
		}
	}
}

// The data of a subject is that of its most recent join still there, whichever node
// that is on.
func TestPresenceDataIsTheMostRecentOfAllNodes(t *testing.T) {
	s := server.Start(t)
	pa, _ := present(t, s.Address(), "a")
	pb, _ := present(t, s.Address(), "b")
	a, b := visit(t, pa), visit(t, pb)
	shows := func(data string, sessions int) {
		t.Helper()
		for _, p := range []*redis.Presence{pa, pb} {
			page, err := listed(p)
			if err != nil || page.Count != 1 || string(page.Members[0].Data.Raw()) != data || page.Members[0].Sessions != sessions {
				t.Errorf("listed %+v, %v, want %s of %d sessions", page, err, data, sessions)
			}
		}
		for _, g := range []*guest{a, b} {
			until(t, func() string { return fmt.Sprintf("sees %v, not %s", g.seen, data) }, func() bool {
				g.mu.Lock()
				defer g.mu.Unlock()
				return g.seen["x"] == data
			})
		}
	}
	a.put("x", "1")
	shows("1", 1)
	b.put("x", "2")
	shows("2", 2)
	a.put("x", "1") // nothing new on a
	shows("2", 2)
	a.put("x", "3")
	shows("3", 2)
	b.put("x", "4")
	shows("4", 2)
	b.remove("x")
	shows("3", 1)
	b.put("x", "3") // the same data is no change
	shows("3", 2)
	a.remove("x")
	shows("3", 1)
	a.saw("+x", "~x", "~x", "~x", "~x")
}

// Who was on a node that died leaves once, for everybody; who is on another node too
// stays.
func TestMembersOfADeadNodeLeaveOnce(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	pa, _ := present(t, s.Address(), "a", leased(lease))
	pb, _ := present(t, s.Address(), "b", leased(lease))
	pc, dying := present(t, s.Address(), "c", leased(lease))
	a, b := visit(t, pa, "a", "both"), visit(t, pb, "b")
	c := visit(t, pc, "c1", "c2", "both")
	c.put("both", "9")
	all := []string{"a", "b", "both", "c1", "c2"}
	a.sees(all...)
	b.sees(all...)
	c.sees(all...)
	dying.Close() // nobody is removed
	a.sees("a", "b", "both")
	b.sees("a", "b", "both")
	for _, g := range []*guest{a, b} {
		if g.told("-c1") != 1 || g.told("-c2") != 1 || g.told("-both") != 0 {
			t.Errorf("saw %v", g.log)
		}
		if g.seen["both"] != "1" {
			t.Errorf("both has what it had on the dead node: %s", g.seen["both"])
		}
	}
	until(t, func() string { return "its keys stay" }, func() bool {
		return s.Do("EXISTS", "p:node:c", "p:presence:acme:chat:lobby:/c") == "0"
	})
	if n := s.Do("HGET", "p:presence:acme:chat:lobby", "s:both"); n != "1" {
		t.Errorf("%s nodes have it", n)
	}
}

// More than one call takes out.
func TestDeadNodeWithManyMembers(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	pa, _ := present(t, s.Address(), "a", leased(lease))
	pc, dying := present(t, s.Address(), "c", leased(lease))
	var many []string
	for i := range 3000 {
		many = append(many, fmt.Sprintf("m%04d", i))
	}
	a, c := visit(t, pa, "a"), visit(t, pc, many...)
	c.sees(append([]string{"a"}, many...)...)
	a.sees(append([]string{"a"}, many...)...)
	dying.Close()
	a.sees("a")
	for _, subject := range many {
		if a.told("-"+subject) != 1 {
			t.Fatalf("%s left %d times", subject, a.told("-"+subject))
		}
	}
}

// B144, semaphore-chat/semaphore-chat#270: what had expired was refreshed as if it were
// there, and a live member stayed invisible. Whatever part is lost here, everything is
// told again at the next look, and nobody is seen leaving or joining once more.
func TestB144_WhatTheServerLostIsToldAgain(t *testing.T) {
	s := server.Start(t)
	const hall = "p:presence:acme:chat:lobby"
	for name, lose := range map[string]func(){
		"all":              s.Flush,
		"the counts":       func() { s.Do("DEL", hall) },
		"the subjects":     func() { s.Do("DEL", hall+":/") },
		"what a node has":  func() { s.Do("DEL", hall+":/a") },
		"some of that":     func() { s.Do("HDEL", hall+":/a", "a") },
		"a tail, and seq":  func() { s.Do("HINCRBY", hall, "q", "-1") },
		"another primary":  func() { s.Do("HSET", hall, "r", "0123456789") },
		"a change's frame": func() { s.Do("HINCRBY", hall, "q", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			s.Flush()
			pa, _ := present(t, s.Address(), "a", checked(50*time.Millisecond), leased(5*time.Second))
			pb, _ := present(t, s.Address(), "b", checked(50*time.Millisecond), leased(5*time.Second))
			a, b := visit(t, pa, "a"), visit(t, pb, "b")
			a.sees("a", "b")
			b.sees("a", "b")
			for _, g := range []*guest{a, b} {
				g.mu.Lock()
				g.log, g.anews = nil, 0
				g.mu.Unlock()
			}
			lose()
			until(t, func() string { return "nobody noticed" }, func() bool { return a.begun() > 0 && b.begun() > 0 })
			a.put("a2", "1")
			b.put("b2", "1")
			a.sees("a", "a2", "b", "b2")
			b.sees("a", "a2", "b", "b2")
			a.saw("+a2", "+b2")
			b.saw("+a2", "+b2")
			if n := s.Do("HMGET", hall, "s:a", "s:b"); strings.Join(strings.Fields(n), " ") != "1 1" {
				t.Errorf("counted %s", n)
			}
		})
	}
}

// A server that was killed and comes back with nothing makes nobody leave.
func TestB144_RestartingServerMakesNobodyLeave(t *testing.T) {
	s := server.Start(t)
	var nodes []*guest
	for _, name := range []string{"a", "b", "c"} {
		p, _ := present(t, s.Address(), name)
		nodes = append(nodes, visit(t, p, name, "all"))
	}
	for _, g := range nodes {
		g.sees("a", "all", "b", "c")
	}
	for range 2 {
		s.Kill()
		s.Restart()
		for _, g := range nodes {
			anews := g.begun()
			until(t, func() string { return "it did not begin anew" }, func() bool { return g.begun() > anews || g.begun() > 1 })
		}
		nodes[0].put("more", "1")
		for _, g := range nodes {
			g.sees("a", "all", "b", "c", "more")
		}
		nodes[0].remove("more")
		for _, g := range nodes {
			g.sees("a", "all", "b", "c")
		}
	}
	for _, g := range nodes {
		for _, subject := range []string{"a", "b", "c", "all"} {
			if g.told("-"+subject) > 0 || g.told("+"+subject) > 1 {
				t.Errorf("saw %v", g.log)
			}
		}
	}
}

// A node that could not renew its lease goes on by another name: its members come
// back, the old name's leave, and nothing of it stays.
func TestNodeThatWasCutOffTakesANewName(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	proxy := server.NewProxy(t, s.Address())
	pa, _ := present(t, s.Address(), "a", leased(lease))
	pb, cut := present(t, proxy.Address(), "b", leased(lease))
	a, b := visit(t, pa, "a"), visit(t, pb, "b")
	a.sees("a", "b")
	b.sees("a", "b")
	proxy.Refuse(true)
	proxy.Cut()
	a.sees("a")
	proxy.Refuse(false)
	up(t, cut, bridge.Up)
	a.sees("a", "b")
	b.sees("a", "b")
	if a.told("-b") != 1 || a.told("+b") > 2 {
		t.Errorf("saw %v", a.log)
	}
	if s.Do("EXISTS", "p:node:b") != "0" {
		t.Error("the old name lives")
	}
	if n := s.Do("HGET", "p:presence:acme:chat:lobby", "s:b"); n != "1" {
		t.Errorf("counted %s times", n)
	}
}

// So does one whom nobody has missed, before it says anything by the old name: what is
// left of that goes, and nobody leaves.
func TestNodeThatWasCutOffAlone(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	proxy := server.NewProxy(t, s.Address())
	p, cut := present(t, proxy.Address(), "b", leased(lease))
	b := visit(t, p, "b")
	b.sees("b")
	proxy.Refuse(true)
	proxy.Cut()
	until(t, func() string { return "its lease does not end" }, func() bool { return s.Do("EXISTS", "p:node:b") == "0" })
	proxy.Refuse(false)
	up(t, cut, bridge.Up)
	until(t, func() string { return "it goes on by the old name" }, func() bool {
		names := strings.Fields(s.Do("HGET", "p:presence:acme:chat:lobby", "ns"))
		return s.Do("EXISTS", "p:presence:acme:chat:lobby:/b") == "0" && len(names) == 2 && names[0] == "b"
	})
	b.sees("b")
	if s.Do("EXISTS", "p:node:b") == "1" || b.told("-b") > 0 {
		t.Errorf("saw %v", b.log)
	}
}

// Where the server has forgotten this node, it may have forgotten the others too:
// nobody is dead until a lease later.
func TestNobodyIsDeadForALeaseAfterALoss(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	pa, _ := present(t, s.Address(), "a", leased(lease))
	pb, _ := present(t, s.Address(), "b", leased(time.Hour))
	a, b := visit(t, pa, "a"), visit(t, pb, "b")
	a.sees("a", "b")
	b.sees("a", "b")
	until(t, func() string { return "there are no leases" }, func() bool { return s.Do("EXISTS", "p:node:a", "p:node:b") == "2" })
	<-time.After(lease) // so that a is whole; less would do no harm
	began := time.Now()
	s.Do("DEL", "p:node:a", "p:node:b")
	until(t, func() string { return "it did not leave" }, func() bool { return a.told("-b") == 1 })
	if d := time.Since(began); d < lease {
		t.Errorf("it was dead after %v", d)
	}
}

// A node that others have declared dead hears of it when it next says something, and
// goes on by another name.
func TestNodeThatIsTakenForDeadTakesANewName(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	pa, _ := present(t, s.Address(), "a", leased(lease))
	pb, _ := present(t, s.Address(), "b", leased(time.Hour), checked(100*time.Millisecond))
	a, b := visit(t, pa, "a"), visit(t, pb, "b")
	a.sees("a", "b")
	b.sees("a", "b")
	until(t, func() string { return "it has no lease" }, func() bool { return s.Do("EXISTS", "p:node:b") == "1" })
	s.Do("DEL", "p:node:b")
	until(t, func() string { return "it did not leave" }, func() bool { return a.told("-b") == 1 })
	a.sees("a", "b")
	b.sees("a", "b")
}

// Nothing is kept for ever, and nothing ends while somebody is there.
func TestPresenceKeysLiveForADay(t *testing.T) {
	s := server.Start(t)
	pa, _ := present(t, s.Address(), "a")
	pb, _ := present(t, s.Address(), "b")
	a, b := visit(t, pa), visit(t, pb)
	a.put("x", "1")
	b.put("x", "1")
	b.remove("x")
	b.put("x", "1")
	hall := "p:presence:acme:chat:lobby"
	for _, key := range []string{hall, hall + ":/", hall + ":/a", hall + ":/b"} {
		var ms int64
		if _, err := fmt.Sscan(s.Do("PTTL", key), &ms); err != nil || ms < 86_000_000 || ms > 86_400_000 {
			t.Errorf("%s lives for %d ms, %v", key, ms, err)
		}
	}
	// Whoever is there sees to it, and nodes that left a while ago are forgotten.
	for _, key := range []string{hall, hall + ":/", hall + ":/a", hall + ":/b"} {
		s.Do("PEXPIRE", key, "60000")
	}
	for _, name := range []string{"a", "b"} {
		s.Do("HSET", hall, "n:"+name, "1 0 1 1600000000000 1")
	}
	s.Do("HSET", hall, "n:gone", "1 0 0 1600000000000 1", "ns", "gone a b ")
	for _, p := range []*redis.Presence{pa, pb} {
		if _, err := listed(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{hall, hall + ":/", hall + ":/a", hall + ":/b"} {
		var ms int64
		if _, err := fmt.Sscan(s.Do("PTTL", key), &ms); err != nil || ms < 86_000_000 {
			t.Errorf("%s lives for %d ms more, %v", key, ms, err)
		}
	}
	if names := s.Do("HMGET", hall, "ns", "n:gone"); strings.TrimSpace(names) != "a b" {
		t.Errorf("nodes: %q", names)
	}
	a.remove("x")
	b.remove("x")
	var ms int64
	if _, err := fmt.Sscan(s.Do("PTTL", hall), &ms); err != nil || ms < 0 || ms > 120_000 {
		t.Errorf("with nobody it lives for %d ms, %v", ms, err)
	}
	if n := s.Do("EXISTS", hall+":/", hall+":/a", hall+":/b"); n != "0" {
		t.Errorf("%s keys of nobody", n)
	}
}

// A replica that takes over, and may lack the last changes, makes nobody leave, and is
// told what it lacks.
func TestFailoverMakesNobodyLeave(t *testing.T) {
	t.Parallel()
	g := server.StartSentinels(t, 500*time.Millisecond)
	bySentinel := func(c *redis.Config) {
		c.Addresses, c.Mode, c.MasterName = g.Addresses, redis.Sentinel, server.MasterName
	}
	var nodes []*guest
	for _, name := range []string{"a", "b", "c"} {
		p, _ := present(t, "", name, bySentinel)
		nodes = append(nodes, visit(t, p, name, "all"))
	}
	for _, g := range nodes {
		g.sees("a", "all", "b", "c")
	}
	g.Replica.CatchUp(g.Primary)
	g.Primary.Kill()
	nodes[1].put("more", "1")
	for _, g := range nodes {
		g.sees("a", "all", "b", "c", "more")
		for _, subject := range []string{"a", "b", "c", "all"} {
			if g.told("-"+subject) > 0 || g.told("+"+subject) > 1 {
				t.Errorf("saw %v", g.log)
			}
		}
	}
	if n := g.Replica.Do("HGET", "p:presence:acme:chat:lobby", "s:all"); n != "3" {
		t.Errorf("counted %s times", n)
	}
}

// A server that takes subscriptions and calls, and answers none, holds nobody up for
// longer than a reply may take; and closing answers everybody.
func TestPresenceOfAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p, b := present(t, s.Address(), "a")
	s.Pause()
	defer s.Resume()
	p.Watch(lobby, &ledger{there: map[string]string{}})
	answers := make(chan *codec.Error, 2)
	ask := func() {
		p.Change(lobby, 1, bridge.PresenceUpdate{}, func(_ bridge.Mark, err *codec.Error) { answers <- err })
		p.List(lobby, "", 1, func(_ bridge.MemberPage, err *codec.Error) { answers <- err })
	}
	refused := func() {
		t.Helper()
		for range 2 {
			select {
			case err := <-answers:
				if err == nil || err.Code != codec.CodeUnavailable {
					t.Errorf("answered with %v", err)
				}
			case <-time.After(15 * time.Second):
				t.Fatal("not answered")
			}
		}
	}
	ask()
	refused()
	ask()
	b.Close() // before p
	refused()
}

// A server without memory takes nobody in, and lets everybody go.
func TestPresenceOfAServerWithoutMemory(t *testing.T) {
	s := server.Start(t)
	p, _ := present(t, s.Address(), "a")
	change := func(generation uint64, u bridge.PresenceUpdate) *codec.Error {
		answer := make(chan *codec.Error, 1)
		p.Change(lobby, generation, u, func(_ bridge.Mark, err *codec.Error) { answer <- err })
		return <-answer
	}
	if err := change(1, bridge.PresenceUpdate{Put: []codec.Member{member("x", "1"), member("y", "1")}}); err != nil {
		t.Fatal(err)
	}
	before, err := listed(p)
	if err != nil {
		t.Fatal(err)
	}
	s.Do("CONFIG", "SET", "maxmemory", "1mb")
	if err := change(2, bridge.PresenceUpdate{Put: []codec.Member{member("z", "1")}}); err == nil || err.Code != codec.CodeQuotaExceeded {
		t.Errorf("a join: %v", err)
	}
	// Whoever is refused is a sign that something is wrong with the server, so that calls
	// may fail for a moment.
	generation := uint64(3)
	until(t, func() string { return "a leave is refused" }, func() bool {
		generation++
		return change(generation, bridge.PresenceUpdate{Remove: []string{"x"}}) == nil
	})
	s.Do("CONFIG", "SET", "maxmemory", "0")
	after, err := listed(p)
	want := bridge.Mark{Epoch: before.Mark.Epoch, Seq: before.Mark.Seq + 1}
	if err != nil || after.Count != 1 || after.Members[0].Subject != "y" || after.Mark != want {
		t.Errorf("listed %+v, %v, after %+v", after, err, before)
	}
}

// anews is a watcher that counts how often it is told to begin anew, and does nothing.
type anews chan struct{}

func (a anews) Anew()                         { a <- struct{}{} }
func (a anews) Changed(bridge.PresenceChange) {}

// What a node tells of one member, after the server has lost all, hides from nobody that it
// lacks the others.
func TestB144_AChangeAfterALossIsNotTheWhole(t *testing.T) {
	s := server.Start(t)
	p, _ := present(t, s.Address(), "a", checked(200*time.Millisecond))
	w := make(anews, 1024)
	told := func() {
		select {
		case <-w:
		case <-time.After(15 * time.Second):
			t.Fatal("nobody noticed")
		}
	}
	p.Watch(lobby, w)
	told()
	generation := uint64(0)
	change := func(u bridge.PresenceUpdate) {
		done := make(chan *codec.Error, 1)
		generation++
		p.Change(lobby, generation, u, func(_ bridge.Mark, err *codec.Error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	ann, bea := codec.Member{Subject: "ann", Sessions: 1}, codec.Member{Subject: "bea", Sessions: 1}
	change(bridge.PresenceUpdate{Whole: true, Put: []codec.Member{ann}})
	s.Flush()
	change(bridge.PresenceUpdate{Put: []codec.Member{bea}})
	for len(w) > 0 {
		<-w
	}
	told()
	change(bridge.PresenceUpdate{Whole: true, Put: []codec.Member{ann, bea}})
	// One look may have been under way; those that follow find everything.
	looks := func(n int) {
		begin := scripts(s)
		until(t, func() string { return "nobody looks" }, func() bool { return scripts(s) >= begin+n })
	}
	looks(2)
	for len(w) > 0 {
		<-w
	}
	if looks(3); len(w) > 0 {
		t.Error("a node that has told everything is asked again")
	}
}

// scripts is how many scripts a server has run.
func scripts(s *server.Server) int {
	_, rest, _ := strings.Cut(s.Do("INFO", "commandstats"), "cmdstat_evalsha:calls=")
	count, _, _ := strings.Cut(rest, ",")
	n, _ := strconv.Atoi(count)
	return n
}
