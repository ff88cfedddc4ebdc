package bridgetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// PresenceFactory makes a fresh Presence, in which nobody is, of one node. The
// suite closes it.
type PresenceFactory = func(t *testing.T) bridge.Presence

// TestPresence is what every Presence must pass, as far as one node can show it.
func TestPresence(t *testing.T, factory PresenceFactory) {
	for _, part := range []struct {
		name string
		run  func(p *presence)
	}{
		{"a change is told if it changes who is there or with what", presenceChanges},
		{"a change is the same twice, and late ones change nothing", presenceRepeats},
		{"a whole update replaces all that the node has told", presenceWhole},
		{"pages are in order of subject and complete", presencePages},
		{"a watcher begins anew and then gets every change once", presenceWatch},
		{"an epoch does not count backwards", presenceEpochs},
		{"tenants and topics do not touch each other", presenceIsolation},
		{"callbacks may call back", presenceReentry},
		{"whoever follows the rules has what is there", presenceModel},
		{"later calls are unavailable", presenceClosed},
	} {
		t.Run(part.name, func(t *testing.T) {
			p := &presence{T: t, Presence: factory(t), topic: topicOf("acme", "chat:1")}
			t.Cleanup(p.Close)
			part.run(p)
		})
	}
}

// presence is one test's, with its calls made synchronous.
type presence struct {
	*testing.T
	bridge.Presence
	topic      codec.Topic
	generation uint64
}

func put(subject, data string) codec.Member {
	m := codec.Member{Subject: subject, Sessions: 1}
	if data != "" {
		d, err := codec.MakeData(codec.JSON, []byte(data))
		if err != nil {
			panic(err)
		}
		m.Data = d
	}
	return m
}

// change makes one, of the next generation.
func (p *presence) change(u bridge.PresenceUpdate) bridge.Mark {
	p.Helper()
	p.generation++
	return p.changeAt(p.generation, u)
}

func (p *presence) changeAt(generation uint64, u bridge.PresenceUpdate) bridge.Mark {
	p.Helper()
	done := make(chan answer[bridge.Mark], 2)
	p.Change(p.topic, generation, u, func(m bridge.Mark, err *codec.Error) { done <- answer[bridge.Mark]{m, err} })
	a := receive(p.T, done, "the answer to a change")
	if a.err != nil || a.v.Epoch == "" || len(a.v.Epoch) > 16 {
		p.Fatalf("change: at %+v, %v", a.v, a.err)
	}
	return a.v
}

type answer[T any] struct {
	v   T
	err *codec.Error
}

func (p *presence) list(after string, limit int) bridge.MemberPage {
	p.Helper()
	done := make(chan answer[bridge.MemberPage], 2)
	p.List(p.topic, after, limit, func(page bridge.MemberPage, err *codec.Error) { done <- answer[bridge.MemberPage]{page, err} })
	a := receive(p.T, done, "a page")
	if a.err != nil {
		p.Fatalf("list: %v", a.err)
	}
	return a.v
}

// want compares the first page with members as "subject×sessions=data".
func (p *presence) want(what string, members ...string) {
	p.Helper()
	if got := written(p.list("", 1000).Members); !slices.Equal(got, members) {
		p.Fatalf("%s: listed %v, want %v", what, got, members)
	}
}

func written(members []codec.Member) (list []string) {
	for _, m := range members {
		list = append(list, fmt.Sprintf("%s×%d=%s", m.Subject, m.Sessions, m.Data.Raw()))
	}
	return list
}

// visitor is a Watcher that keeps what it gets: "anew", or what changed.
type visitor struct {
	mu sync.Mutex
	// guarded by mu
	log    []string
	last   bridge.Mark
	faults []string
	on     func()
}

func (v *visitor) Anew() {
	v.mu.Lock()
	v.log, v.last = append(v.log, "anew"), bridge.Mark{}
	v.mu.Unlock()
}

func (v *visitor) Changed(c bridge.PresenceChange) {
	v.mu.Lock()
	if v.last.Epoch == c.Mark.Epoch && c.Prev != v.last.Seq || c.Mark.Seq <= c.Prev {
		v.faults = append(v.faults, fmt.Sprintf("%+v after %+v", c, v.last))
	}
	v.last = c.Mark
	var words []string
	for _, m := range c.Joined {
		words = append(words, "+"+m.Subject)
	}
	for _, m := range c.Updated {
		words = append(words, "~"+m.Subject)
	}
	for _, subject := range c.Left {
		words = append(words, "-"+subject)
	}
	slices.Sort(words)
	v.log = append(v.log, strings.Join(words, " "))
	on := v.on
	v.mu.Unlock()
	if on != nil {
		on()
	}
}

// want waits for exactly this log.
func (v *visitor) want(t *testing.T, what string, log ...string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		v.mu.Lock()
		got, faults := slices.Clone(v.log), v.faults
		v.mu.Unlock()
		switch {
		case len(faults) > 0:
			t.Fatalf("%s: %v", what, faults)
		case slices.Equal(got, log):
			return
		case len(got) > len(log) || time.Now().After(end):
			t.Fatalf("%s: told %q, want %q", what, got, log)
		}
	}
}
