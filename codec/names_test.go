package codec

import (
	"strings"
	"testing"
)

func TestGrammar(t *testing.T) {
	long := strings.Repeat("a", 300)
	for _, c := range []struct {
		rule  string
		valid func(string) bool
		yes   []string
		no    []string
	}{
		{"tenant", ValidTenant,
			[]string{"a", "A.b-c_9", "...", long[:64]},
			[]string{"", ".", "..", "a:b", "a b", "a/b", "a~b", "é", "a\x00", "{a}", long[:65]}},
		{"kind", ValidKind,
			[]string{"chat", "0", "-", long[:32]},
			[]string{"", ".", "..", "a:b", "a~b", "*", long[:33]}},
		{"event", ValidEvent,
			[]string{"said", "user.moved", "_", long[:64]},
			[]string{"", ".", "..", "a:b", "a b", "é", long[:65]}},
		{"room", ValidRoom,
			[]string{"chat", "chat:1", "chat:a:b", "chat::", "chat:~x.-_", "chat:..", long[:32] + ":" + long[:95]},
			[]string{"", ":", "chat:", ":x", ".", "..", "..:x", "chat 1", "ch~at", "chat:é", "chat:{x}", "chat:a/b", long[:33], long[:33] + ":x", long[:32] + ":" + long[:96]}},
		{"subject", ValidSubject,
			[]string{"a", "alice@example.org", "Zoë 🎉", " ", long[:256]},
			[]string{"", "\xff", long[:257]}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for _, s := range c.yes {
				if !c.valid(s) {
					t.Errorf("%q is refused", s)
				}
			}
			for _, s := range c.no {
				if c.valid(s) {
					t.Errorf("%q passes", s)
				}
			}
		})
	}
}

// Every byte, alone and inside, against the character classes spelt out.
func TestGrammarBytes(t *testing.T) {
	const name = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
	for b := range 256 {
		s := "a" + string([]byte{byte(b)}) + "a"
		in := strings.IndexByte(name, byte(b)) >= 0
		if ValidTenant(s) != in || ValidKind(s) != in || ValidEvent(s) != in {
			t.Errorf("byte %#x in a name", b)
		}
		if want := in || b == '~' || b == ':'; ValidRoom("k:"+s) != want {
			t.Errorf("byte %#x in a room", b)
		}
	}
}

func TestKindOfATopic(t *testing.T) {
	for _, c := range []struct{ tenant, room, kind string }{
		{"acme", "chat", "chat"}, {"acme", "chat:lobby", "chat"}, {"a.b-c", "chat:a:b", "chat"}, {"x", "y::", "y"},
	} {
		topic, err := NewTopic(c.tenant, c.room)
		if err != nil {
			t.Fatal(err)
		}
		if topic.Kind() != c.kind {
			t.Errorf("kind of %v: %q", topic, topic.Kind())
		}
	}
}

func TestTopicRefuses(t *testing.T) {
	for _, c := range [][2]string{
		{"", ""}, {"acme", ""}, {"", "chat"}, {"..", "chat"}, {"acme", "chat:"}, {"ac me", "chat"}, {"acme", ".."}, {"a:b", "chat"}, {"a", "b c"},
	} {
		if topic, err := NewTopic(c[0], c[1]); err == nil {
			t.Errorf("%q became %v", c, topic)
		}
	}
}

// Two different topics never have the same text: all pairs over a small alphabet.
func TestTopicIsInjective(t *testing.T) {
	var names []string
	for _, a := range []string{"", "a", "b", ":", "."} {
		for _, b := range []string{"", "a", "b", ":", "."} {
			for _, c := range []string{"", "a", ":", "."} {
				names = append(names, a+b+c)
			}
		}
	}
	seen := map[string]Topic{}
	for _, tenant := range names {
		for _, room := range names {
			topic, err := NewTopic(tenant, room)
			if err != nil {
				continue
			}
			if other, there := seen[topic.String()]; there && other != topic {
				t.Fatalf("%v and %v are both %q", topic, other, topic)
			}
			seen[topic.String()] = topic
		}
	}
	if len(seen) < 100 {
		t.Fatalf("only %d topics were compared", len(seen))
	}
}

func TestPosition(t *testing.T) {
	if !(Position{}).IsZero() || (Position{Epoch: "e"}).IsZero() || (Position{Offset: 1}).IsZero() {
		t.Error("only the position without epoch and offset is zero")
	}
}
