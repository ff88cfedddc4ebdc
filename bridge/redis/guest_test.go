package redis_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
)

var lobby = codec.Topic{Tenant: "acme", Room: "chat:lobby"}

// guest is a room as plain as it can be: who is there on its node, told to the
// bridge, and who is there on all nodes, as its members would see it. It tells all
// and lists anew whenever it is told to begin anew, or misses a change.
type guest struct {
	t testing.TB
	p *redis.Presence

	mu   sync.Mutex
	work sync.Cond
	// guarded by mu
	mine       map[string]string // by subject its data
	generation uint64
	anews      int
	queue      []bridge.PresenceChange
	restart    bool // before queue
	seen       map[string]string
	mark       bridge.Mark
	whole      bool
	log        []string // what members saw: "+a", "~a", "-a"
	ended      bool
	done       chan struct{}
}

func visit(t testing.TB, p *redis.Presence, mine ...string) *guest {
	g := &guest{t: t, p: p, mine: map[string]string{}, seen: map[string]string{}, done: make(chan struct{})}
	g.work.L = &g.mu
	for _, subject := range mine {
		g.mine[subject] = "1"
	}
	go g.run()
	p.Watch(lobby, g)
	t.Cleanup(g.end)
	return g
}

func (g *guest) end() {
	g.p.Unwatch(lobby, g)
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.work.Broadcast()
	<-g.done
}

func (g *guest) Anew() {
	g.mu.Lock()
	g.queue, g.restart = nil, true
	g.anews++
	g.mu.Unlock()
	g.work.Broadcast()
}

func (g *guest) Changed(c bridge.PresenceChange) {
	g.mu.Lock()
	g.queue = append(g.queue, c)
	g.mu.Unlock()
	g.work.Broadcast()
}

func (g *guest) run() {
	defer close(g.done)
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.ended {
		switch {
		case g.restart:
			g.restart, g.whole = false, false
			g.mu.Unlock()
			g.tell(func() bridge.PresenceUpdate { return bridge.PresenceUpdate{Whole: true, Put: g.all()} })
			g.list()
			g.mu.Lock()
		case len(g.queue) > 0:
			c := g.queue[0]
			g.queue = g.queue[1:]
			g.apply(c)
		default:
			g.work.Wait()
		}
	}
}

func (g *guest) all() (members []codec.Member) {
	for subject, data := range g.mine {
		members = append(members, member(subject, data))
	}
	return members
}

// member has a number for data.
func member(subject, data string) codec.Member {
	d, err := codec.MakeData(codec.JSON, []byte(data))
	if err != nil {
		panic(err)
	}
	return codec.Member{Subject: subject, Sessions: 1, Data: d}
}

// tell brings a change, until it has been taken.
func (g *guest) tell(what func() bridge.PresenceUpdate) (m bridge.Mark) {
	for {
		type answer struct {
			m   bridge.Mark
			err *codec.Error
		}
		answers := make(chan answer, 1)
		g.mu.Lock()
		if g.ended {
			g.mu.Unlock()
			return m
		}
		g.generation++
		g.p.Change(lobby, g.generation, what(), func(m bridge.Mark, err *codec.Error) { answers <- answer{m, err} })
		g.mu.Unlock()
		if a := <-answers; a.err == nil {
			return a.m
		}
		<-time.After(10 * time.Millisecond) // between attempts
		what = func() bridge.PresenceUpdate { return bridge.PresenceUpdate{Whole: true, Put: g.all()} }
	}
}

func (g *guest) put(subject, data string) bridge.Mark {
	return g.tell(func() bridge.PresenceUpdate {
		g.mine[subject] = data
		return bridge.PresenceUpdate{Put: []codec.Member{member(subject, data)}}
	})
}

func (g *guest) remove(subject string) bridge.Mark {
	return g.tell(func() bridge.PresenceUpdate {
		delete(g.mine, subject)
		return bridge.PresenceUpdate{Remove: []string{subject}}
	})
}

// list reads everything, until it can; what changed is what members see.
func (g *guest) list() {
	for {
		page, err := listed(g.p)
		g.mu.Lock()
		if g.ended || g.restart {
			g.mu.Unlock()
			return
		}
		if err == nil {
			now := map[string]string{}
			for _, m := range page.Members {
				now[m.Subject] = string(m.Data.Raw())
			}
			for subject := range g.seen {
				if _, stays := now[subject]; !stays {
					g.log = append(g.log, "-"+subject)
				}
			}
			for subject, data := range now {
				switch was, known := g.seen[subject]; {
				case !known:
					g.log = append(g.log, "+"+subject)
				case was != data:
					g.log = append(g.log, "~"+subject)
				}
			}
			g.seen, g.mark, g.whole = now, page.Mark, true
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		<-time.After(10 * time.Millisecond) // between attempts
	}
}

func listed(p *redis.Presence) (page bridge.MemberPage, err *codec.Error) {
	done := make(chan struct{})
	p.List(lobby, "", 10_000, func(got bridge.MemberPage, bad *codec.Error) {
		page, err = got, bad
		close(done)
	})
	<-done
	return page, err
}

func (g *guest) apply(c bridge.PresenceChange) {
	switch {
	case !g.whole || c.Mark.Epoch == g.mark.Epoch && c.Mark.Seq <= g.mark.Seq:
		return
	case c.Mark.Epoch != g.mark.Epoch || c.Prev != g.mark.Seq:
		g.queue, g.restart = nil, true
		g.anews++
		return
	}
	g.mark = c.Mark
	for _, m := range c.Joined {
		g.log = append(g.log, "+"+m.Subject)
		g.seen[m.Subject] = string(m.Data.Raw())
	}
	for _, m := range c.Updated {
		g.log = append(g.log, "~"+m.Subject)
		g.seen[m.Subject] = string(m.Data.Raw())
	}
	for _, subject := range c.Left {
		g.log = append(g.log, "-"+subject)
		delete(g.seen, subject)
	}
}

// sees waits until exactly these are there.
func (g *guest) sees(subjects ...string) {
	g.t.Helper()
	var got []string
	until(g.t, func() string { return fmt.Sprintf("sees %v, not %v", got, subjects) }, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		got = slices.Sorted(maps.Keys(g.seen))
		return g.whole && slices.Equal(got, subjects)
	})
}

// begun is how often it has begun anew.
func (g *guest) begun() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.anews
}

// told is how often members saw something.
func (g *guest) told(what string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, word := range g.log {
		if word == what {
			n++
		}
	}
	return n
}

// saw: members saw exactly this, in some order.
func (g *guest) saw(words ...string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	got := slices.Sorted(slices.Values(g.log))
	slices.Sort(words)
	if !slices.Equal(got, words) {
		g.t.Errorf("saw %v, not %v", g.log, words)
	}
}

// until waits for something, which is looked at again and again.
func until(t testing.TB, what func() string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !met(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what())
		}
	}
}
