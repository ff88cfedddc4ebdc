package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ResumeLife is how long a resume token is good for, from when it was sealed.
const ResumeLife = 24 * time.Hour

// resumeSkew is how far the clock of the node that sealed a token may be ahead
// of the one that opens it.
const resumeSkew = time.Minute

// ErrResume is the one error of Open, for whatever reason: who tries tokens
// learns nothing from it.
var ErrResume = errors.New("auth: no resume token")

// Resume is what a resume token says. It is not an authorisation: it names the
// session that a client had, and nothing that the client may do.
type Resume struct {
	Tenant     string // at most 64 bytes
	Subject    string // at most 256 bytes
	Session    string // at most 64 bytes
	Generation uint64 // of the session's lease when the token was sealed
}

const (
	maxTenant  = 64
	maxSubject = 256
	maxSession = 64
)

// resumePurpose is bound into every resume token, so that nothing else which is
// sealed with the same key, now or in a later version, is taken for one.
const resumePurpose = "pulse.v1 resume"

// Sealed bytes are nonce, ciphertext and tag; the plaintext is two integers of 8
// bytes and three texts with their lengths in 2 bytes.
const (
	sealOverhead = 12 + 16
	resumeFixed  = 8 + 8 + 3*2
	maxResume    = sealOverhead + resumeFixed + maxTenant + maxSubject + maxSession
)

// Strict refuses other spellings of the last character; line breaks, which the
// encoding skips all the same, are refused by Open.
var resumeText = base64.RawURLEncoding.Strict()

// Sealer makes and opens resume tokens. It is immutable and may be used by any
// number of goroutines.
type Sealer struct {
	aeads []cipher.AEAD // the first seals, all open
}

// NewSealer takes keys of 32 random bytes: the first seals, all open. So a key
// is replaced in three steps, on all nodes each: append the new one, move it to
// the front, and a day later take the old one away.
//
// Nonces are random, and all that nodes seal with one key must stay below 2^32
// tokens (NIST SP 800-38D, 8.3): a new key every month allows 1,600 a second.
func NewSealer(keys [][]byte) (*Sealer, error) {
	if len(keys) == 0 {
		return nil, errors.New("auth: no key to seal resume tokens with")
	}
	s := &Sealer{}
	var faults []error
	for i, key := range keys {
		if len(key) != 32 {
			faults = append(faults, fmt.Errorf("auth: key %d for resume tokens has %d bytes; it takes 32", i+1, len(key)))
			continue
		}
		aead, err := newAEAD(key)
		if err != nil {
			faults = append(faults, fmt.Errorf("auth: key %d for resume tokens: %w", i+1, err))
		}
		s.aeads = append(s.aeads, aead)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return s, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal returns a token for r: opaque, URL-safe, at most 579 bytes. Texts longer
// than Resume allows are a broken invariant of the caller, and panic.
func (s *Sealer) Seal(r Resume, now time.Time) string {
	if len(r.Tenant) > maxTenant || len(r.Subject) > maxSubject || len(r.Session) > maxSession {
		panic("auth: a resume token for names that are too long")
	}
	plain := make([]byte, 0, maxResume)
	plain = binary.BigEndian.AppendUint64(plain, uint64(now.UnixMilli()))
	plain = binary.BigEndian.AppendUint64(plain, r.Generation)
	for _, text := range []string{r.Tenant, r.Subject, r.Session} {
		plain = binary.BigEndian.AppendUint16(plain, uint16(len(text)))
		plain = append(plain, text...)
	}
	return resumeText.EncodeToString(s.aeads[0].Seal(nil, nil, plain, []byte(resumePurpose)))
}

// Open returns what a token says that one of the keys has sealed, within
// ResumeLife by now and not after it by more than a minute. Otherwise it is
// ErrResume, at the cost of one pass of bounded length for each key at most.
func (s *Sealer) Open(token string, now time.Time) (Resume, error) {
	if len(token) > resumeText.EncodedLen(maxResume) || strings.ContainsAny(token, "\r\n") {
		return Resume{}, ErrResume
	}
	raw, err := resumeText.DecodeString(token)
	if err != nil {
		return Resume{}, ErrResume
	}
	for _, aead := range s.aeads {
		if plain, err := aead.Open(nil, nil, raw, []byte(resumePurpose)); err == nil {
			return readResume(plain, now)
		}
	}
	return Resume{}, ErrResume
}

// readResume takes apart what Seal put together.
func readResume(plain []byte, now time.Time) (r Resume, err error) {
	if len(plain) < resumeFixed {
		return Resume{}, ErrResume
	}
	sealed := time.UnixMilli(int64(binary.BigEndian.Uint64(plain)))
	if age := now.Sub(sealed); age >= ResumeLife || age < -resumeSkew {
		return Resume{}, ErrResume
	}
	r.Generation = binary.BigEndian.Uint64(plain[8:])
	plain = plain[16:]
	for _, text := range []*string{&r.Tenant, &r.Subject, &r.Session} {
		if len(plain) < 2 || len(plain)-2 < int(binary.BigEndian.Uint16(plain)) {
			return Resume{}, ErrResume
		}
		end := 2 + int(binary.BigEndian.Uint16(plain))
		*text, plain = string(plain[2:end]), plain[end:]
	}
	if len(plain) > 0 {
		return Resume{}, ErrResume
	}
	return r, nil
}
