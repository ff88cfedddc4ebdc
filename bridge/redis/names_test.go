package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/codec"
)

// No two things share a key or a channel, whatever topics are called.
func TestNamesDoNotMeet(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		n := names{key: "pulse:", channel: "pulse:", cluster: cluster}
		seen := map[string]string{}
		add := func(what, name string) {
			if other, ok := seen[name]; ok {
				t.Errorf("%s and %s are both %q", what, other, name)
			}
			seen[name] = what
		}
		d := newDigest(ofPublication, "alice", "k")
		channels := map[string]string{}
		for _, tenant := range []string{"a", "A", "a.b", "a.", "ab", "buffer", "meta", "presence", "room", "ctl", "n1", "node", "-", "...", "pulse"} {
			for _, room := range []string{"b", "b:c", "b::c", "b.c", "b:/", "buffer:b", "b:" + d.String(), "b:~"} {
				topic := codec.Topic{Tenant: tenant, Room: room}
				add("buffer of "+topic.String(), n.buffer(topic))
				add("meta of "+topic.String(), n.meta(topic))
				add("dedup of "+topic.String(), n.dedup(topic, d))
				add("presence of "+topic.String(), n.presence(topic))
				add("presence on n1 of "+topic.String(), n.presenceOf(topic, "n1"))
				for _, channel := range []string{n.room(topic), n.changes(topic)} {
					if other, ok := channels[channel]; ok {
						t.Errorf("%s and %s share the channel %q", topic, other, channel)
					}
					channels[channel] = topic.String()
				}
			}
			add("session of "+tenant, n.session(tenant, "s1"))
		}
		for _, channel := range []string{n.control("n1"), n.probe("", "n1"), n.probe("tag", "n1")} {
			if other, ok := channels[channel]; ok {
				t.Errorf("a node and %s share the channel %q", other, channel)
			}
		}
		add("node", n.node("n1"))
		add("nodes", n.nodes())
		add("trial", n.trial("", "n1"))
	}
}

// Names are those of the configuration's table.
func TestNamesAsDocumented(t *testing.T) {
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	n := names{key: "pulse:", channel: "p:"}
	for _, c := range []struct{ got, want string }{
		{n.buffer(topic), "pulse:buffer:acme:chat:1"},
		{n.meta(topic), "pulse:meta:acme:chat:1"},
		{n.presence(topic), "pulse:presence:acme:chat:1"},
		{n.session("acme", "s1"), "pulse:session:acme:s1"},
		{n.node("n1"), "pulse:node:n1"},
		{n.nodes(), "pulse:nodes"},
		{n.room(topic), "p:room:acme:chat:1"},
		{n.control("n1"), "p:ctl:n1"},
		{n.probe("", "n1"), "p:probe:n1"},
		{n.probe("tag", "n1"), "p:probe{tag}:n1"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	n.cluster = true
	// Part of the format: whoever changes the table or the hash loses what is stored.
	if got, want := n.buffer(topic), "pulse:buffer{"+tagOf("acme:chat:1")+"}:acme:chat:1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each tag has slots of its own, spread evenly; all of a topic lies in one.
func TestTagsAreSpreadOverTheSlots(t *testing.T) {
	if got := slotOf("123456789"); got != 0x31c3 {
		t.Errorf("the checksum of 123456789 is %#x", got)
	}
	for p, tag := range tags() {
		if got := slotOf(tag) / 16; got != p {
			t.Errorf("tag %d, %q, is in stretch %d", p, tag, got)
		}
	}
	var topics [tagCount]int
	for i := range 100 * tagCount {
		topics[indexOf(t, tagOf(fmt.Sprintf("acme:chat:%d", i)))]++
	}
	for p, n := range topics {
		if n < 40 || n > 180 {
			t.Errorf("tag %d has %d topics of 100", p, n)
		}
	}
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	n := names{cluster: true}
	for _, name := range []string{n.buffer(topic), n.meta(topic), n.dedup(topic, digest{}), n.room(topic), n.presence(topic), n.presenceOf(topic, "n1")} {
		_, rest, _ := strings.Cut(name, "{")
		if tag, _, _ := strings.Cut(rest, "}"); tag != n.tag(topic.String()) {
			t.Errorf("%q lies elsewhere", name)
		}
	}
}

// These are fixed for good.
func TestTagsThatAreStored(t *testing.T) {
	table := tags()
	for p, want := range map[int]string{0: "ru", 1: "2ke", 511: "2e", 1023: "wu"} {
		if table[p] != want {
			t.Errorf("tag %d is %q, was %q", p, table[p], want)
		}
	}
	if got := tagOf("acme:chat:1"); got != "vs" {
		t.Errorf("acme:chat:1 is under %q", got)
	}
}

func indexOf(t *testing.T, tag string) int {
	t.Helper()
	return slotOf(tag) / 16
}

// Nobody's choice of subject or key makes two names of one.
func TestDigestsDoNotMeet(t *testing.T) {
	seen := map[digest]string{}
	for _, c := range []struct {
		of           byte
		subject, key string
	}{
		{ofPublication, "a", "bc"}, {ofPublication, "ab", "c"}, {ofPublication, "", "abc"}, {ofCommand, "a", "bc"},
		{ofPublication, "a", "b\x00c"}, {ofPublication, "a\x00b", "c"}, {ofPublication, strings.Repeat("x", 600), "k"},
	} {
		d := newDigest(c.of, c.subject, c.key)
		if other, ok := seen[d]; ok {
			t.Errorf("%q is %s", c, other)
		}
		seen[d] = fmt.Sprint(c)
	}
}
