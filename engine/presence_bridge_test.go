package engine

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	bridgememory "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

// puppetPresence is a Presence that can lose everything, be away, or not answer.
type puppetPresence struct {
	mu sync.Mutex
	// guarded by mu
	bridge.Presence
	watchers map[bridge.Watcher]codec.Topic
	away     bool
	silent   []func() // answers that are held back; nil: none are
	changes  int
}

func newPuppetPresence() *puppetPresence {
	return &puppetPresence{Presence: bridgememory.NewPresence(), watchers: map[bridge.Watcher]codec.Topic{}}
}

func (f *puppetPresence) now() (inner bridge.Presence, away, silent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Presence, f.away, f.silent != nil
}

var errNoAnswer = codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "away")

func (f *puppetPresence) Change(topic codec.Topic, generation uint64, u bridge.PresenceUpdate, done func(bridge.Mark, *codec.Error)) {
	inner, away, silent := f.now()
	f.mu.Lock()
	f.changes++
	f.mu.Unlock()
	switch {
	case away:
		done(bridge.Mark{}, errNoAnswer)
	case silent:
		inner.Change(topic, generation, u, func(m bridge.Mark, err *codec.Error) { f.hold(func() { done(m, err) }) })
	default:
		inner.Change(topic, generation, u, done)
	}
}

func (f *puppetPresence) List(topic codec.Topic, after string, limit int, done func(bridge.MemberPage, *codec.Error)) {
	inner, away, silent := f.now()
	switch {
	case away:
		done(bridge.MemberPage{}, errNoAnswer)
	case silent:
		inner.List(topic, after, limit, func(p bridge.MemberPage, err *codec.Error) { f.hold(func() { done(p, err) }) })
	default:
		inner.List(topic, after, limit, done)
	}
}

func (f *puppetPresence) hold(answer func()) {
	f.mu.Lock()
	f.silent = append(f.silent, answer)
	f.mu.Unlock()
}

func (f *puppetPresence) Watch(topic codec.Topic, w bridge.Watcher) {
	f.mu.Lock()
	f.watchers[w] = topic
	f.mu.Unlock()
	inner, _, _ := f.now()
	inner.Watch(topic, w)
}

func (f *puppetPresence) Unwatch(topic codec.Topic, w bridge.Watcher) {
	f.mu.Lock()
	delete(f.watchers, w)
	f.mu.Unlock()
	inner, _, _ := f.now()
	inner.Unwatch(topic, w)
}

// forget loses everything: from here on it counts anew.
func (f *puppetPresence) forget() {
	f.mu.Lock()
	f.Presence = bridgememory.NewPresence()
	inner := f.Presence
	watchers := maps.Clone(f.watchers)
	f.mu.Unlock()
	for w, topic := range watchers {
		inner.Watch(topic, w)
	}
}

func (f *puppetPresence) set(away, silent bool) {
	f.mu.Lock()
	f.away = away
	held := f.silent
	f.silent = nil
	if silent {
		f.silent = []func(){}
	}
	f.mu.Unlock()
	for _, answer := range held {
		answer()
	}
}

func (f *puppetPresence) count(topic codec.Topic) (n int) {
	inner, _, _ := f.now()
	inner.List(topic, "", 0, func(p bridge.MemberPage, _ *codec.Error) { n = p.Count })
	return n
}

// B144, semaphore-chat/semaphore-chat#270: what the store had lost was refreshed
// as if it were there, and a live member stayed invisible.
func TestB144_WhatTheBridgeHasLostIsToldAgain(t *testing.T) {
	overCodecs(t, func(t *testing.T, in codec.Codec) {
		own := newPuppetPresence()
		e := withPresence(t, func(c *Config) { c.Presence = own })
		a, b := watch(t, e, in, "acme/a", sees), watch(t, e, in, "acme/b", sees)
		a.expect("b joins", "+b")
		for range 3 {
			own.forget()
			a.expect("lost and told again", "full 2")
			b.expect("lost and told again", "full 2")
			if r := a.answer(`{"t":"presence","room":"seen:1"}`); fmt.Sprint(r.at("ok.count")) != "2" {
				t.Errorf("listed: %v", r)
			}
		}
		b.closeWith(1000)
		a.expect("b leaves", "-b")
	})
}

// While presence is away joins are answered without members; once it is back each
// who asked gets a full, with itself in it.
func TestJoinsWhilePresenceIsAway(t *testing.T) {
	overCodecs(t, func(t *testing.T, in codec.Codec) {
		own := newPuppetPresence()
		e := withPresence(t, func(c *Config) { c.Presence = own })
		own.set(true, false)
		began := time.Now()
		a, b := watch(t, e, in, "acme/a", sees), watch(t, e, in, "acme/b", sees)
		for _, o := range []*onlooker{a, b} {
			if told, _ := o.knows(); told || time.Since(began) > 100*time.Millisecond {
				t.Errorf("%s joined after %v, and was told of others: %v", o.subject, time.Since(began), told)
			}
		}
		if r := a.answer(`{"t":"presence","room":"seen:1"}`); r.at("err.code") != "unavailable" || r.at("err.retry_after_ms") == nil {
			t.Errorf("a page: %v", r)
		}
		time.Sleep(20 * time.Second)
		own.mu.Lock()
		if own.changes > 30 {
			t.Errorf("%d tries in 20 s", own.changes)
		}
		own.mu.Unlock()
		a.expect("still away", "")
		own.set(false, false)
		time.Sleep(6 * time.Second) // the longest wait between two tries
		a.expect("back", "full 2")
		b.expect("back", "full 2")
		c := watch(t, e, in, "acme/c", sees)
		a.expect("and all is as ever", "+c")
		if c.sees() != "a b c" {
			t.Errorf("sees %s", c.sees())
		}
		own.set(true, false)
		watch(t, e, in, "acme/d", "")
		c.closeWith(1000)
		a.expect("away again, and others come and go", "")
		own.set(false, false)
		time.Sleep(6 * time.Second)
		a.expect("back", "+d -c")
	})
}

// A presence that does not answer holds a join up for a second, not longer.
func TestJoinsWhilePresenceDoesNotAnswer(t *testing.T) {
	virtual(t, func(t *testing.T) {
		own := newPuppetPresence()
		e := withPresence(t, func(c *Config) { c.Presence = own })
		own.set(false, true)
		began := time.Now()
		blind := watch(t, e, codec.JSON, "acme/blind", "")
		if time.Since(began) > 0 {
			t.Errorf("who does not look waited %v", time.Since(began))
		}
		a := watch(t, e, codec.JSON, "acme/a", sees)
		told, _ := a.knows()
		if took := time.Since(began); told || took < time.Second || took > time.Second+50*time.Millisecond {
			t.Errorf("joined after %v, and was told of others: %v", took, told)
		}
		left := watch(t, e, codec.JSON, "acme/left", "")
		left.request(`{"t":"join","room":"seen:1","presence":true}`)
		if r := left.answer(`{"t":"leave","room":"seen:1"}`); r.at("ok") == nil || time.Since(began) > time.Second+100*time.Millisecond {
			t.Errorf("a leave behind a join that waits: %v after %v", r, time.Since(began))
		}
		own.set(false, false)
		a.look()
		if a.sees() != "a blind" {
			t.Errorf("sees %s", a.sees())
		}
		blind.closeWith(1000)
		a.expect("and all is as ever", "-blind")
	})
}

// A further session of a member that is there already, with the same data, waits for
// nothing.
func TestFurtherSessionsDoNotWaitForPresence(t *testing.T) {
	virtual(t, func(t *testing.T) {
		own := newPuppetPresence()
		e := withPresence(t, func(c *Config) { c.Presence = own })
		watch(t, e, codec.JSON, "acme/a", `,"data":1`)
		own.set(false, true)
		for _, c := range []struct {
			data string
			wait time.Duration
		}{{"1", 0}, {"2", time.Second}, {"1", time.Second}} {
			began := time.Now()
			o := watch(t, e, codec.JSON, "acme/a", sees+`,"data":`+c.data)
			told, _ := o.knows()
			if took := time.Since(began).Round(100 * time.Millisecond); took != c.wait || told != (c.wait == 0) {
				t.Errorf("data %s: joined after %v, told %v", c.data, took, told)
			}
		}
		own.set(false, false)
	})
}
