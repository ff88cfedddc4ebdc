package auth

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func mustGrants(t testing.TB, claim string) Grants {
	t.Helper()
	g, err := ParseGrants([]byte(claim))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGrantsAllow(t *testing.T) {
	const claim = `[
		{"rooms":"chat:*","allow":["join","publish","unheard-of"]},
		{"rooms":"chat:staff","allow":["history"],"note":"unknown fields are ignored"},
		{"rooms":"lobby","allow":["join"]},
		{"rooms":"lobby","allow":["presence"]},
		{"rooms":"c*","allow":["command"]}
	]`
	tests := []struct {
		rule  string
		claim string
		right Right
		room  string
		want  bool
	}{
		{"a prefix covers what it starts", claim, Join, "chat:1", true},
		{"a prefix covers itself", claim, Join, "chat:", true},
		{"chat:* does not cover chat", claim, Join, "chat", false},
		{"a prefix does not cover a neighbour", claim, Join, "chats:1", false},
		{"a right that is not listed is not granted", claim, History, "chat:1", false},
		{"an exact name adds to a prefix", claim, History, "chat:staff", true},
		{"a prefix adds to an exact name", claim, Publish, "chat:staff", true},
		{"an exact name covers nothing longer", claim, History, "chat:staff2", false},
		{"a shorter prefix adds to a longer one", claim, Command, "chat:1", true},
		{"a shorter prefix holds where the longer does not", claim, Command, "cat", true},
		{"the same name twice: rights add up (first)", claim, Join, "lobby", true},
		{"the same name twice: rights add up (second)", claim, Presence, "lobby", true},
		{"names are compared with case", claim, Join, "Chat:1", false},
		{"a room nobody names", claim, Join, "other", false},
		{"no grant, no right", `[]`, Join, "chat", false},
		{"a star alone covers all", `[{"rooms":"*","allow":["join"]}]`, Join, "anything:at-all", true},
		{"only unknown words grant nothing", `[{"rooms":"*","allow":["joins",""]}]`, Join, "chat", false},
		{"words are compared with case", `[{"rooms":"*","allow":["Join"]}]`, Join, "chat", false},
		{"a right out of range is not granted", `[{"rooms":"*","allow":["join"]}]`, rights, "chat", false},
		{"a right far out of range is not granted", `[{"rooms":"*","allow":["join"]}]`, 255, "chat", false},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			if got := mustGrants(t, tt.claim).Allows(tt.right, tt.room); got != tt.want {
				t.Errorf("Allows(%v, %q) = %v", tt.right, tt.room, got)
			}
		})
	}
}

func TestTenantCommandsNeedTheStar(t *testing.T) {
	for claim, want := range map[string]bool{
		`[{"rooms":"*","allow":["command"]}]`:                                    true,
		`[{"rooms":"*","allow":["join"]}]`:                                       false,
		`[{"rooms":"c*","allow":["command"]},{"rooms":"x","allow":["command"]}]`: false,
		`[]`: false,
	} {
		if got := mustGrants(t, claim).AllowsTenant(Command); got != want {
			t.Errorf("%s: AllowsTenant = %v", claim, got)
		}
	}
}

func TestZeroGrantsNothingAndAllowAllEverything(t *testing.T) {
	for _, r := range Rights() {
		if (Grants{}).Allows(r, "chat") || (Grants{}).AllowsTenant(r) {
			t.Errorf("the zero value grants %v", r)
		}
		if !AllowAll().Allows(r, "chat") || !AllowAll().AllowsTenant(r) {
			t.Errorf("AllowAll does not grant %v", r)
		}
	}
}

func TestMalformedClaimIsRefused(t *testing.T) {
	for name, claim := range map[string]string{
		"null":                        `null`,
		"an object":                   `{"rooms":"*","allow":["join"]}`,
		"text":                        `"*"`,
		"an entry that is text":       `["*"]`,
		"an entry that is null":       `[null]`,
		"no rooms":                    `[{"allow":["join"]}]`,
		"rooms in another case":       `[{"Rooms":"*","allow":["join"]}]`,
		"rooms a number":              `[{"rooms":1,"allow":["join"]}]`,
		"rooms a list":                `[{"rooms":["*"],"allow":["join"]}]`,
		"rooms empty":                 `[{"rooms":"","allow":["join"]}]`,
		"a star in the middle":        `[{"rooms":"a*b","allow":["join"]}]`,
		"two stars":                   `[{"rooms":"**","allow":["join"]}]`,
		"a name outside the grammar":  `[{"rooms":"a b","allow":["join"]}]`,
		"a name too long":             `[{"rooms":"` + strings.Repeat("a", 129) + `","allow":["join"]}]`,
		"no allow":                    `[{"rooms":"*"}]`,
		"allow null":                  `[{"rooms":"*","allow":null}]`,
		"allow text":                  `[{"rooms":"*","allow":"join"}]`,
		"allow a number":              `[{"rooms":"*","allow":[1]}]`,
		"a repeated key":              `[{"rooms":"a","allow":["join"],"rooms":"*"}]`,
		"a repeated key, escaped":     `[{"rooms":"a","allow":["join"],"\u0072ooms":"*"}]`,
		"invalid UTF-8":               "[{\"rooms\":\"*\",\"allow\":[\"\xff\"]}]",
		"something left over":         `[] []`,
		"cut short":                   `[{"rooms":"*"`,
		"a bracket that does not fit": `[}`,
		"nested too deep":             strings.Repeat("[", 100) + strings.Repeat("]", 100),
		"nothing":                     ``,
	} {
		t.Run(name, func(t *testing.T) {
			if g, err := ParseGrants([]byte(claim)); err == nil {
				t.Errorf("accepted: %+v", g)
			}
		})
	}
}

// naiveAllows reads the rule off the list: any grant that names the room and
// the right is enough.
func naiveAllows(list []Grant, right Right, room string) bool {
	for _, g := range list {
		prefix, isPrefix := strings.CutSuffix(g.Rooms, "*")
		if g.Rooms != room && !(isPrefix && strings.HasPrefix(room, prefix)) {
			continue
		}
		for _, r := range g.Allow {
			if r == right {
				return true
			}
		}
	}
	return false
}

func TestGrantsAgreeWithTheNaiveList(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	name := func() string { // few letters, so that names meet
		b := make([]byte, 1+rng.IntN(5))
		for i := range b {
			b[i] = "ab:"[rng.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		var list []Grant
		for range rng.IntN(12) {
			g := Grant{Rooms: name()}
			if rng.IntN(2) == 0 {
				g.Rooms = g.Rooms[:rng.IntN(len(g.Rooms))] + "*"
			}
			for range rng.IntN(3) {
				g.Allow = append(g.Allow, Right(rng.IntN(int(rights))))
			}
			list = append(list, g)
		}
		g, err := NewGrants(list...)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			right, room := Right(rng.IntN(int(rights))), name()
			if got, want := g.Allows(right, room), naiveAllows(list, right, room); got != want {
				t.Fatalf("seed %d: Allows(%v, %q) = %v with %v", seed, right, room, got, list)
			}
		}
	}
}

func manyGrants(n int) []Grant {
	var list []Grant
	for i := range n {
		list = append(list, Grant{Rooms: "chat:" + strings.Repeat("x", i%60) + string(rune('a'+i%26)) + "*", Allow: []Right{Join}})
	}
	return list
}

func TestAllowsDoesNotAllocate(t *testing.T) {
	g, err := NewGrants(append(manyGrants(100), Grant{Rooms: "lobby", Allow: []Right{Join}})...)
	if err != nil {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(100, func() {
		g.Allows(Join, "chat:xxxxxxxx")
		g.Allows(Join, "lobby")
		g.AllowsTenant(Command)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// FuzzParseGrants: no input panics, and what is accepted means what the same
// document means to a plain reader.
func FuzzParseGrants(f *testing.F) {
	f.Add([]byte(`[{"rooms":"chat:*","allow":["join","publish"]}]`), "chat:1")
	f.Add([]byte(`[{"rooms":"a","allow":["join"],"rooms":"*"}]`), "b")
	f.Add([]byte(`[{"rooms":"*","allow":[]},{"rooms":"","allow":["x"]}]`), "")
	f.Add([]byte(`[}`), "")
	f.Fuzz(func(t *testing.T, claim []byte, room string) {
		g, err := ParseGrants(claim)
		if err != nil {
			return
		}
		v, err := decodeStrict(claim)
		if err != nil {
			t.Fatal("accepted, but no strict JSON")
		}
		var list []Grant
		for _, e := range v.([]any) {
			entry := e.(map[string]any)
			grant := Grant{Rooms: entry["rooms"].(string)}
			for _, w := range entry["allow"].([]any) {
				for _, r := range Rights() {
					if r.String() == w {
						grant.Allow = append(grant.Allow, r)
					}
				}
			}
			list = append(list, grant)
		}
		for _, r := range Rights() {
			if !strings.HasSuffix(room, "*") && g.Allows(r, room) != naiveAllows(list, r, room) {
				t.Fatalf("Allows(%v, %q) = %v", r, room, g.Allows(r, room))
			}
		}
	})
}

func BenchmarkGrants(b *testing.B) {
	for name, list := range map[string][]Grant{
		"one":  {{Rooms: "chat:*", Allow: []Right{Join, Publish}}},
		"1000": manyGrants(1000),
	} {
		g, err := NewGrants(list...)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Allows(Publish, "chat:general")
			}
		})
		b.Run(name+"/naive", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				naiveAllows(list, Publish, "chat:general")
			}
		})
	}
}
