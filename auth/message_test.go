package auth

import (
	"bytes"
	"testing"
	"time"
)

// A message is read by who has its key, for a minute, and by nobody for anything else.
func TestMessagesBetweenNodes(t *testing.T) {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	sealer := func(keys ...[]byte) *Sealer {
		s, err := NewSealer(keys)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	now := time.Now()
	old, both, other := sealer(key(1)), sealer(key(2), key(1)), sealer(key(3))
	sealed := old.SealMessage([]byte("tell"), now)
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	resume, err := resumeText.DecodeString(old.Seal(Resume{Tenant: "t", Subject: "s", Session: "x"}, now))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		by   *Sealer
		what []byte
		at   time.Time
		good bool
	}{
		"its own":           {old, sealed, now, true},
		"by an older key":   {both, sealed, now, true},
		"empty":             {old, old.SealMessage(nil, now), now, true},
		"of another key":    {other, sealed, now, false},
		"changed":           {old, changed, now, false},
		"nothing":           {old, nil, now, false},
		"a resume token":    {old, resume, now, false},
		"late":              {old, sealed, now.Add(59 * time.Second), true},
		"too late":          {old, sealed, now.Add(61 * time.Second), false},
		"by a clock behind": {old, sealed, now.Add(-59 * time.Second), true},
		"by a wrong clock":  {old, sealed, now.Add(-61 * time.Second), false},
	} {
		if _, err := tt.by.OpenMessage(tt.what, tt.at); (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if plain, _ := both.OpenMessage(sealed, now); string(plain) != "tell" {
		t.Errorf("%q", plain)
	}
	if _, err := old.Open(resumeText.EncodeToString(sealed), now); err == nil {
		t.Error("a message is taken for a resume token")
	}
}

// A list of grants makes the same grants again.
func TestGrantsAreTheirList(t *testing.T) {
	g, err := NewGrants(
		Grant{Rooms: "chat:*", Allow: []Right{Join, Publish}}, Grant{Rooms: "chat:1*", Allow: []Right{Presence}},
		Grant{Rooms: "chat:1", Allow: []Right{History}}, Grant{Rooms: "desk", Allow: nil},
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]Grants{"some": g, "all": AllowAll(), "none": {}} {
		again, err := NewGrants(of.List()...)
		if err != nil {
			t.Fatal(err)
		}
		for _, room := range []string{"chat:1", "chat:12", "chat:2", "desk", "other"} {
			for _, right := range Rights() {
				if of.Allows(right, room) != again.Allows(right, room) || of.AllowsTenant(right) != again.AllowsTenant(right) {
					t.Errorf("%s: %v in %s", name, right, room)
				}
			}
		}
	}
}
