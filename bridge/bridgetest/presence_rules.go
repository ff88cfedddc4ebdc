package bridgetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

type update = bridge.PresenceUpdate

func presenceChanges(p *presence) {
	v := &visitor{}
	p.Watch(p.topic, v)
	v.want(p.T, "at first", "anew")
	tabs := put("a", "1")
	tabs.Sessions = 3
	var log []string
	var last bridge.Mark
	for _, s := range []struct {
		name   string
		update update
		told   string
		listed []string
	}{
		{"two join", update{Put: []codec.Member{put("b", ""), put("a", "")}}, "+a +b", []string{"a×1=", "b×1="}},
		{"data comes", update{Put: []codec.Member{put("a", "1")}}, "~a", []string{"a×1=1", "b×1="}},
		{"the same again", update{Put: []codec.Member{put("a", "1"), put("b", "")}}, "", []string{"a×1=1", "b×1="}},
		{"another number of sessions", update{Put: []codec.Member{tabs}}, "", []string{"a×3=1", "b×1="}},
		{"one joins, one changes, one leaves", update{Put: []codec.Member{put("c", "2"), put("a", "")}, Remove: []string{"b"}}, "+c -b ~a", []string{"a×1=", "c×1=2"}},
		{"who is not there leaves", update{Remove: []string{"b", "z"}}, "", []string{"a×1=", "c×1=2"}},
		{"nothing", update{}, "", []string{"a×1=", "c×1=2"}},
		{"all leave", update{Remove: []string{"a", "c"}}, "-a -c", nil},
	} {
		at := p.change(s.update)
		if s.told != "" {
			log = append(log, s.told)
		}
		if moved := at != last; moved != (s.told != "") && last.Epoch != "" {
			p.Errorf("%s: the mark moved from %+v to %+v", s.name, last, at)
		}
		last = at
		v.want(p.T, s.name, append([]string{"anew"}, log...)...)
		p.want(s.name, s.listed...)
		if page := p.list("", 0); page.Mark != at || page.Count != len(s.listed) {
			p.Errorf("%s: listed %d at %+v, changed at %+v", s.name, page.Count, page.Mark, at)
		}
	}
	p.Unwatch(p.topic, v)
}

func presenceRepeats(p *presence) {
	p.changeAt(5, update{Put: []codec.Member{put("a", "1")}})
	at := p.changeAt(7, update{Put: []codec.Member{put("a", "2")}, Remove: []string{"b"}})
	for generation, u := range map[uint64]update{
		1: {Remove: []string{"a"}},
		5: {Put: []codec.Member{put("a", "1")}},
		6: {Put: []codec.Member{put("b", "1")}},
		7: {Whole: true},
	} {
		if again := p.changeAt(generation, u); again != at {
			p.Errorf("generation %d after 7: at %+v, was %+v", generation, again, at)
		}
	}
	p.want("after late ones", "a×1=2")
}

func presenceWhole(p *presence) {
	v := &visitor{}
	p.change(update{Put: []codec.Member{put("a", "1"), put("b", "1"), put("c", "1")}})
	p.Watch(p.topic, v)
	p.change(update{Whole: true, Put: []codec.Member{put("b", "1"), put("c", "2"), put("d", "1")}})
	v.want(p.T, "replaced", "anew", "+d -a ~c")
	p.want("replaced", "b×1=1", "c×1=2", "d×1=1")
	p.change(update{Whole: true, Put: []codec.Member{put("b", "1"), put("c", "2"), put("d", "1")}})
	p.change(update{Whole: true})
	v.want(p.T, "nobody", "anew", "+d -a ~c", "-b -c -d")
	p.want("nobody")
	p.Unwatch(p.topic, v)
}

func presencePages(p *presence) {
	const n = 1500
	all := make([]string, n)
	var members []codec.Member
	for i := range n {
		all[i] = fmt.Sprintf("s%04d", i*5)
		members = append(members, put(all[i], ""))
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { members[i], members[j] = members[j], members[i] })
	for len(members) > 0 {
		some := min(len(members), 100)
		p.change(update{Put: members[:some]})
		members = members[some:]
	}
	for _, limit := range []int{1, 7, 256, 1000, 2000} {
		var got []string
		after := ""
		for more := true; more && len(got) <= n; {
			page := p.list(after, limit)
			if page.Count != n || len(page.Members) > limit || page.More && len(page.Members) != limit {
				p.Fatalf("limit %d: %d members of %d, more %v", limit, len(page.Members), page.Count, page.More)
			}
			for _, m := range page.Members {
				got = append(got, m.Subject)
			}
			if more = page.More; more {
				after = got[len(got)-1]
			}
			if limit == 1 && len(got) == 20 {
				break
			}
		}
		if !slices.Equal(got, all[:len(got)]) || limit > 1 && len(got) != n {
			p.Fatalf("limit %d: %d subjects, not in order or not all", limit, len(got))
		}
	}
	for after, first := range map[string]string{"": "s0000", "a": "s0000", "s0000": "s0005", "s0003": "s0005", "s0005": "s0010"} {
		if page := p.list(after, 1); len(page.Members) != 1 || page.Members[0].Subject != first {
			p.Errorf("after %q: %v", after, page.Members)
		}
	}
	if page := p.list("t", 5); len(page.Members) != 0 || page.More || page.Count != n {
		p.Errorf("after the last: %+v", page)
	}
	if page := p.list("", 0); len(page.Members) != 0 || page.Count != n {
		p.Errorf("the count alone: %d of %d", len(page.Members), page.Count)
	}
}

func presenceWatch(p *presence) {
	first, second := &visitor{}, &visitor{}
	p.Watch(p.topic, first)
	p.change(update{Put: []codec.Member{put("a", "")}})
	p.Watch(p.topic, second)
	p.change(update{Put: []codec.Member{put("b", "")}})
	first.want(p.T, "from the beginning", "anew", "+a", "+b")
	second.want(p.T, "from its own", "anew", "+b")
	p.Unwatch(p.topic, second)
	p.Unwatch(p.topic, second)
	p.change(update{Put: []codec.Member{put("c", "")}})
	first.want(p.T, "one stays", "anew", "+a", "+b", "+c")
	p.Watch(p.topic, second)
	p.change(update{Remove: []string{"c"}})
	second.want(p.T, "it is back", "anew", "+b", "anew", "-c")
	first.want(p.T, "the other", "anew", "+a", "+b", "+c", "-c")
	p.Unwatch(p.topic, first)
	p.Unwatch(p.topic, second)
}

// An epoch that is left for a while, by everybody, is gone, or goes on.
func presenceEpochs(p *presence) {
	seen := map[string]uint64{}
	for i := range 20 {
		var at bridge.Mark
		if i%2 == 0 {
			at = p.change(update{Put: []codec.Member{put("a", "")}})
		} else {
			at = p.change(update{Remove: []string{"a"}})
		}
		if at.Seq < seen[at.Epoch] || at.Seq == seen[at.Epoch] {
			p.Fatalf("epoch %q was at %d, and is at %d after a change", at.Epoch, seen[at.Epoch], at.Seq)
		}
		seen[at.Epoch] = at.Seq
	}
}

func presenceIsolation(p *presence) {
	v := &visitor{}
	p.Watch(p.topic, v)
	p.change(update{Put: []codec.Member{put("a", "")}})
	own := p.topic
	for _, other := range []codec.Topic{topicOf("acme", "chat:2"), topicOf("umbra", "chat:1"), topicOf("acme", "chat")} {
		p.topic = other
		p.want("elsewhere")
		p.change(update{Put: []codec.Member{put("b", "")}})
		p.change(update{Whole: true})
	}
	p.topic = own
	p.want("here", "a×1=")
	v.want(p.T, "here", "anew", "+a")
	p.Unwatch(p.topic, v)
}

func presenceReentry(p *presence) {
	v := &visitor{}
	done := newGate(3)
	var once bool
	v.on = func() {
		if once {
			return
		}
		once = true
		p.List(p.topic, "", 1, func(bridge.MemberPage, *codec.Error) {
			p.Change(p.topic, 100, update{Put: []codec.Member{put("b", "")}}, func(bridge.Mark, *codec.Error) { done.pass() })
			p.Watch(p.topic, &visitor{})
			done.pass()
		})
		done.pass()
	}
	p.Watch(p.topic, v)
	p.change(update{Put: []codec.Member{put("a", "")}})
	done.wait(p.T)
	v.want(p.T, "with what the callback did", "anew", "+a", "+b")
	p.Unwatch(p.topic, v)
}

// Random updates against a map.
func presenceModel(p *presence) {
	random := rand.New(rand.NewPCG(2, 2))
	there := map[string]string{}
	v := &visitor{}
	p.Watch(p.topic, v)
	for range 300 {
		var u update
		used := map[string]bool{}
		for range random.IntN(5) {
			subject := fmt.Sprint("s", random.IntN(30))
			if used[subject] {
				continue
			}
			used[subject] = true
			if random.IntN(2) == 0 {
				u.Put = append(u.Put, put(subject, fmt.Sprint(random.IntN(3))))
			} else {
				u.Remove = append(u.Remove, subject)
			}
		}
		if u.Whole = random.IntN(20) == 0; u.Whole {
			u.Remove = nil
			clear(there)
		}
		for _, m := range u.Put {
			there[m.Subject] = string(m.Data.Raw())
		}
		for _, subject := range u.Remove {
			delete(there, subject)
		}
		p.change(u)
		page := p.list("", 1000)
		if page.Count != len(there) || len(page.Members) != len(there) {
			p.Fatalf("%d listed, count %d, want %d", len(page.Members), page.Count, len(there))
		}
		for _, m := range page.Members {
			if there[m.Subject] != string(m.Data.Raw()) {
				p.Fatalf("%s has %s, want %s", m.Subject, m.Data.Raw(), there[m.Subject])
			}
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.faults) > 0 {
		p.Error(v.faults)
	}
}

func presenceClosed(p *presence) {
	v := &visitor{}
	p.Watch(p.topic, v)
	p.change(update{Put: []codec.Member{put("a", "")}})
	v.want(p.T, "before", "anew", "+a")
	p.Close()
	p.Close()
	refused := make(chan *codec.Error, 1)
	p.Change(p.topic, 99, update{Remove: []string{"a"}}, func(_ bridge.Mark, err *codec.Error) { refused <- err })
	unavailable(p.T, "a change", receive(p.T, refused, "the answer to a change"))
	p.List(p.topic, "", 1, func(_ bridge.MemberPage, err *codec.Error) { refused <- err })
	unavailable(p.T, "a list", receive(p.T, refused, "a page"))
	p.Watch(p.topic, &visitor{})
	p.Unwatch(p.topic, v)
	v.want(p.T, "after", "anew", "+a")
}

func unavailable(t *testing.T, what string, err *codec.Error) {
	t.Helper()
	if err == nil || err.Code != codec.CodeUnavailable {
		t.Errorf("%s: %v", what, err)
	}
}
