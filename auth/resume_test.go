package auth

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

var (
	resumeKey      = []byte("a deployment key of 32 bytes....")
	otherResumeKey = []byte("another deployment key, 32 bytes")
	someResume     = Resume{Tenant: "acme", Subject: "Zoë", Session: "s-01JD3Q8R6V", Generation: 7}
)

func newSealer(t testing.TB, keys ...[]byte) *Sealer {
	t.Helper()
	s, err := NewSealer(keys)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refusedResume checks that token gives nothing but the one error.
func refusedResume(t testing.TB, s *Sealer, token string, at time.Time, rule string) {
	t.Helper()
	if r, err := s.Open(token, at); err != ErrResume || r != (Resume{}) {
		t.Errorf("%s: %+v, %v", rule, r, err)
	}
}

func TestResumeComesBack(t *testing.T) {
	s := newSealer(t, resumeKey)
	for _, r := range []Resume{
		someResume, {},
		{strings.Repeat("t", maxTenant), strings.Repeat("s", maxSubject), strings.Repeat("i", maxSession), 1<<64 - 1},
	} {
		token := s.Seal(r, now)
		if got, err := s.Open(token, now); err != nil || got != r {
			t.Errorf("%+v, %v; want %+v", got, err, r)
		}
		if strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("%s is not safe in a URL", token)
		}
		if len(token) > 579 {
			t.Errorf("%d bytes", len(token))
		}
		if s.Seal(r, now) == token {
			t.Error("two tokens are the same: they can be linked")
		}
	}
}

func TestResumeTokenIsOpaque(t *testing.T) {
	raw, err := base64.RawURLEncoding.DecodeString(newSealer(t, resumeKey).Seal(someResume, now))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{someResume.Tenant, someResume.Subject, someResume.Session} {
		if strings.Contains(string(raw), text) {
			t.Errorf("%q can be read", text)
		}
	}
}

func TestResumeTokenThatIsDamagedIsNone(t *testing.T) {
	s := newSealer(t, resumeKey, otherResumeKey)
	token := s.Seal(someResume, now)
	for i := range token {
		refusedResume(t, s, token[:i], now, "cut short")
		for _, c := range []byte("Aa0-_=+/. \n\r\x00\xff") {
			if token[i] != c {
				refusedResume(t, s, token[:i]+string(c)+token[i+1:], now, "a character replaced")
			}
			refusedResume(t, s, token[:i]+string(c)+token[i:], now, "a character put in")
		}
	}
	raw, _ := base64.RawURLEncoding.DecodeString(token)
	for i := range raw {
		for bit := range 8 {
			raw[i] ^= 1 << bit
			refusedResume(t, s, base64.RawURLEncoding.EncodeToString(raw), now, "a bit flipped")
			raw[i] ^= 1 << bit
		}
	}
	// One of the spellings that a lax decoder takes for the same bytes.
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		if again := token[:len(token)-1] + string(c); again != token {
			refusedResume(t, s, again, now, "another last character")
		}
	}
	refusedResume(t, s, "", now, "nothing")
	refusedResume(t, s, token+"=", now, "padding")
	refusedResume(t, s, token+"\n", now, "a line break")
	refusedResume(t, s, token+token, now, "twice")
}

func TestResumeTokenOfAnotherKeyOrPurposeIsNone(t *testing.T) {
	s := newSealer(t, resumeKey)
	refusedResume(t, s, newSealer(t, otherResumeKey).Seal(someResume, now), now, "another key")
	aead, err := newAEAD(resumeKey)
	if err != nil {
		t.Fatal(err)
	}
	token := s.Seal(someResume, now)
	raw, _ := base64.RawURLEncoding.DecodeString(token)
	plain, err := aead.Open(nil, nil, raw, []byte(resumePurpose))
	if err != nil {
		t.Fatal(err)
	}
	for _, purpose := range []string{"", "pulse.v1 cursor", "pulse.v2 resume"} {
		other := base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, plain, []byte(purpose)))
		refusedResume(t, s, other, now, "purpose "+purpose)
	}
	// What was sealed for the purpose, but says something else than Seal does.
	for _, plain := range [][]byte{{}, plain[:15], plain[:len(plain)-1], append(plain, 0)} {
		other := base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, plain, []byte(resumePurpose)))
		refusedResume(t, s, other, now, "another form")
	}
}

func TestResumeKeysRotate(t *testing.T) {
	before := newSealer(t, resumeKey)
	during := newSealer(t, otherResumeKey, resumeKey)
	after := newSealer(t, otherResumeKey)
	if got, err := during.Open(before.Seal(someResume, now), now); err != nil || got != someResume {
		t.Errorf("the old key does not open any more: %v", err)
	}
	token := during.Seal(someResume, now)
	if got, err := after.Open(token, now); err != nil || got != someResume {
		t.Errorf("the first key does not seal: %v", err)
	}
	refusedResume(t, before, token, now, "a key that is not known")
}

func TestResumeTokenLivesADay(t *testing.T) {
	s := newSealer(t, resumeKey)
	token := s.Seal(someResume, now)
	for _, tt := range []struct {
		rule string
		at   time.Duration
		ok   bool
	}{
		{"at once", 0, true},
		{"just before its end", ResumeLife - time.Millisecond, true},
		{"at its end", ResumeLife, false},
		{"long after", 400 * ResumeLife, false},
		{"the sealer's clock a minute ahead", -time.Minute, true},
		{"from the future", -time.Minute - time.Millisecond, false},
		{"from far in the future", -400 * ResumeLife, false},
	} {
		r, err := s.Open(token, now.Add(tt.at))
		if tt.ok != (err == nil) || !tt.ok && (err != ErrResume || r != Resume{}) {
			t.Errorf("%s: %+v, %v", tt.rule, r, err)
		}
	}
}

func TestOversizedResumeTokenIsRefusedUnread(t *testing.T) {
	s := newSealer(t, resumeKey)
	huge := strings.Repeat("A", 1<<20)
	if n := testing.AllocsPerRun(10, func() { refusedResume(t, s, huge, now, "huge") }); n > 0 {
		t.Errorf("%v allocations for a token that is too long", n)
	}
}

func TestSealPanicsOnNamesThatNoIdentityHas(t *testing.T) {
	s := newSealer(t, resumeKey)
	for _, r := range []Resume{{Tenant: strings.Repeat("t", 65)}, {Subject: strings.Repeat("s", 257)}, {Session: strings.Repeat("i", 65)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("sealed %+v", r)
				}
			}()
			s.Seal(r, now)
		}()
	}
}

func TestNewSealerReportsEveryFault(t *testing.T) {
	if _, err := NewSealer(nil); err == nil {
		t.Error("no key is accepted")
	}
	_, err := NewSealer([][]byte{resumeKey[1:], resumeKey, append([]byte{0}, resumeKey...)})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"key 1", "31 bytes", "key 3", "33 bytes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// FuzzOpenResume: nothing opens but what was sealed, and no input does harm.
func FuzzOpenResume(f *testing.F) {
	s := newSealer(f, resumeKey, otherResumeKey)
	sealed := s.Seal(someResume, now) // another one in each of the fuzzer's processes
	f.Add(sealed)
	f.Add(sealed[:len(sealed)/2])
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		r, err := s.Open(token, now)
		if err == nil && r != someResume || err != nil && err != ErrResume {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func BenchmarkResume(b *testing.B) {
	s := newSealer(b, resumeKey)
	token := s.Seal(someResume, now)
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Seal(someResume, now)
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Open(token, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
