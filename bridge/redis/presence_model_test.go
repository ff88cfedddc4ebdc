package redis_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// naivePresence is who is there, kept as plainly as can be.
type naivePresence struct {
	changes int
	nodes   [3]map[string]naiveMember
}

type naiveMember struct {
	data     string
	sessions int
	since    int // the change that brought the data
}

func (n *naivePresence) change(node int, u bridge.PresenceUpdate) {
	n.changes++
	old := n.nodes[node]
	now := maps.Clone(old)
	if u.Whole {
		now = map[string]naiveMember{}
	}
	for _, subject := range u.Remove {
		delete(now, subject)
	}
	for _, m := range u.Put {
		data := fmt.Sprint(m.Data.Codec(), string(m.Data.Raw()))
		is := naiveMember{data, m.Sessions, n.changes}
		if was, known := old[m.Subject]; known && was.data == data {
			is.since = was.since
		}
		now[m.Subject] = is
	}
	n.nodes[node] = now
}

// shows is each subject with its sessions and data.
func (n *naivePresence) shows() map[string]string {
	all := map[string]naiveMember{}
	for _, node := range n.nodes {
		for subject, m := range node {
			before := all[subject]
			m.sessions += before.sessions
			if before.since > m.since {
				m.data, m.since = before.data, before.since
			}
			all[subject] = m
		}
	}
	shown := map[string]string{}
	for subject, m := range all {
		shown[subject] = fmt.Sprint(m.sessions, m.data)
	}
	return shown
}

func shown(m codec.Member) string {
	return fmt.Sprint(m.Sessions, fmt.Sprint(m.Data.Codec(), string(m.Data.Raw())))
}

// ledger follows changes alone, from the first on.
type ledger struct {
	mu sync.Mutex
	// guarded by mu
	there  map[string]string // subject to data
	mark   bridge.Mark
	begun  bool
	faults []string
}

func (l *ledger) Anew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = true
}

func (l *ledger) Changed(c bridge.PresenceChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fault := func(what string, about any) { l.faults = append(l.faults, fmt.Sprint(what, about, " at ", c.Mark)) }
	if l.mark.Epoch != "" && (c.Mark.Epoch != l.mark.Epoch || c.Prev != l.mark.Seq) || c.Mark.Seq != c.Prev+1 {
		fault("does not follow ", l.mark)
	}
	l.mark = c.Mark
	data := func(m codec.Member) string { return fmt.Sprint(m.Data.Codec(), string(m.Data.Raw())) }
	for _, m := range c.Joined {
		if _, known := l.there[m.Subject]; known {
			fault("a second join of ", m.Subject)
		}
		l.there[m.Subject] = data(m)
	}
	for _, m := range c.Updated {
		if was, known := l.there[m.Subject]; !known || was == data(m) {
			fault("no change of ", m.Subject)
		}
		l.there[m.Subject] = data(m)
	}
	for _, subject := range c.Left {
		if _, known := l.there[subject]; !known {
			fault("left before it came: ", subject)
		}
		delete(l.there, subject)
	}
}

// Random changes of three nodes against the naive one: what each lists, what each is
// told, and what is counted on the server.
func TestPresenceOfThreeNodesModel(t *testing.T) {
	s := server.Start(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s.Flush()
			presenceModel(t, s, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func presenceModel(t *testing.T, s *server.Server, random *rand.Rand) {
	var n naivePresence
	var nodes []*redis.Presence
	var ledgers []*ledger
	for i, name := range []string{"a", "b", "c"} {
		p, _ := present(t, s.Address(), name)
		l := &ledger{there: map[string]string{}}
		p.Watch(lobby, l)
		until(t, func() string { return "it did not begin" }, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.begun
		})
		nodes, ledgers = append(nodes, p), append(ledgers, l)
		n.nodes[i] = map[string]naiveMember{}
	}
	subjects := []string{"s", "\x00", "n:a", "pe", "a b", "ü", "1:x", "\r\n", "l5:other"}
	for i := range 12 {
		subjects = append(subjects, fmt.Sprint("s", i))
	}
	var mark bridge.Mark
	for generation := range uint64(200) {
		node := random.IntN(len(nodes))
		u := someUpdate(random, subjects)
		n.change(node, u)
		answers := make(chan bridge.Mark, 1)
		nodes[node].Change(lobby, generation+1, u, func(m bridge.Mark, err *codec.Error) {
			if err != nil {
				t.Error(err)
			}
			answers <- m
		})
		mark = <-answers
		page, err := listed(nodes[random.IntN(len(nodes))])
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, m := range page.Members {
			got[m.Subject] = shown(m)
		}
		if want := n.shows(); !maps.Equal(got, want) || page.Count != len(want) || page.Mark != mark {
			t.Fatalf("listed %q at %v, want %q at %v", got, page.Mark, want, mark)
		}
		if !slices.IsSortedFunc(page.Members, func(a, b codec.Member) int { return strings.Compare(a.Subject, b.Subject) }) {
			t.Fatal("not in order")
		}
	}
	want := map[string]string{}
	for subject, text := range n.shows() {
		want[subject] = strings.TrimLeft(text, "0123456789")
	}
	for i, l := range ledgers {
		until(t, func() string { return fmt.Sprintf("node %d: told %v of %v", i, l.mark, mark) }, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.mark == mark || len(l.faults) > 0
		})
		if l.mu.Lock(); len(l.faults) > 0 || !maps.Equal(l.there, want) {
			t.Errorf("node %d: told %q, want %q; %v", i, l.there, want, l.faults)
		}
		l.mu.Unlock()
	}
	for _, subject := range subjects {
		count := 0
		for _, node := range n.nodes {
			if _, there := node[subject]; there {
				count++
			}
		}
		text := s.Do("HGET", "p:presence:acme:chat:lobby", "s:"+subject)
		if got, _ := strconv.Atoi(text); got != count {
			t.Errorf("%q is counted %q times, %d nodes have it", subject, text, count)
		}
	}
}

func someUpdate(random *rand.Rand, subjects []string) (u bridge.PresenceUpdate) {
	u.Whole = random.IntN(12) == 0
	for _, i := range random.Perm(len(subjects))[:random.IntN(8)] {
		if subject := subjects[i]; random.IntN(5) < 3 {
			m := codec.Member{Subject: subject, Sessions: 1 + random.IntN(3)}
			switch random.IntN(4) {
			case 0:
			case 1:
				m.Data, _ = codec.MakeData(codec.Msgpack, []byte{byte(random.IntN(3))}) // a small integer
			default:
				m.Data, _ = codec.MakeData(codec.JSON, strconv.AppendInt(nil, int64(random.IntN(3)), 10))
			}
			u.Put = append(u.Put, m)
		} else if !u.Whole {
			u.Remove = append(u.Remove, subject)
		}
	}
	return u
}
