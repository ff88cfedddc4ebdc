package auth

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// pair is a key pair of one algorithm, and both its halves as PEM.
type pair struct {
	alg     string
	private crypto.Signer
	pem     []byte // private
	public  []byte
}

var pairs = sync.OnceValue(func() map[string]pair {
	made := map[string]pair{}
	for _, name := range []string{RS256, ES256, EdDSA} {
		made[name] = newPair(name)
		made["other "+name] = newPair(name)
	}
	return made
})

func newPair(alg string) pair {
	var private crypto.Signer
	switch alg {
	case RS256:
		private = must(rsa.GenerateKey(rand.Reader, 2048))
	case ES256:
		private = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	case EdDSA:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		private = must(key, err)
	}
	return pair{
		alg: alg, private: private,
		pem:    toPEM("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private))),
		public: toPEM("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(private.Public()))),
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func toPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// token is signed by hand, with any header.
func (p pair) token(header, claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	sig := must(jwt.GetSigningMethod(p.alg).Sign(text, p.private))
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func (p pair) plain() string { return p.token(fmt.Sprintf(`{"alg":%q}`, p.alg), claims("")) }

// keysOf are the public keys of all algorithms, named after them or not at all.
func keysOf(named bool) []Key {
	keys := []Key{{Alg: HS256, Secret: secret}}
	for _, alg := range []string{RS256, ES256, EdDSA} {
		keys = append(keys, Key{Alg: alg, PEM: pairs()[alg].public})
	}
	for i := range keys {
		if named {
			keys[i].ID = keys[i].Alg
		}
	}
	return keys
}

func authenticate(j *JWT, token string) error {
	_, err := j.Authenticate(context.Background(), Credentials{Token: token, Source: Hello})
	return err
}

func TestEachAlgorithmIsVerifiedByItsOwnKeyOnly(t *testing.T) {
	tokens := map[string]string{HS256: hs256(plain, claims(""))}
	for _, alg := range []string{RS256, ES256, EdDSA} {
		tokens[alg] = pairs()[alg].plain()
	}
	for _, key := range keysOf(false) {
		j := newJWT(t, func(c *JWTConfig) { c.Keys = []Key{key} })
		for alg, token := range tokens {
			err := authenticate(j, token)
			if alg == key.Alg && err != nil {
				t.Errorf("%s: %v", alg, err)
			}
			if n := len(j.keys.candidates(alg, "")); (n == 1) != (alg == key.Alg) {
				t.Errorf("%s: %d keys for %s are tried", key.Alg, n, alg)
			}
			if alg != key.Alg && !errors.Is(err, ErrUnauthenticated) {
				t.Errorf("%s by a key for %s: %v", alg, key.Alg, err)
			}
		}
	}
}

// What is known to have broken verifiers, tried with every key at hand and with
// a header that names none, or the key under attack.
func TestAttacksOnSignatures(t *testing.T) {
	rs, es, ed := pairs()[RS256], pairs()[ES256], pairs()[EdDSA]
	evil := pairs()["other "+RS256]
	hmacWith := func(key []byte) func(string) string {
		return func(kid string) string { return forge(`{"alg":"HS256"`+kid+`}`, claims(""), sha256.New, key) }
	}
	signed := func(p pair, alg, more string) func(string) string {
		return func(kid string) string { return p.token(`{"alg":"`+alg+`"`+more+kid+`}`, claims("")) }
	}
	withSignature := func(alg string, sig []byte) func(string) string {
		return func(kid string) string {
			return forge(`{"alg":"`+alg+`"`+kid+`}`, claims(""), nil, nil) + base64.RawURLEncoding.EncodeToString(sig)
		}
	}
	der := func(p pair) []byte { b, _ := pem.Decode(p.public); return b.Bytes }
	jwk := fmt.Sprintf(`,"jwk":{"kty":"RSA","n":%q,"e":"AQAB"}`,
		base64.RawURLEncoding.EncodeToString(evil.private.Public().(*rsa.PublicKey).N.Bytes()))
	for _, attack := range []struct {
		name   string
		target string // algorithm of the key under attack
		token  func(kid string) string
	}{
		{"HMAC with the RSA key's PEM", RS256, hmacWith(rs.public)},
		{"HMAC with the RSA key's PEM without its line break", RS256, hmacWith(rs.public[:len(rs.public)-1])},
		{"HMAC with the RSA key's DER", RS256, hmacWith(der(rs))},
		{"HMAC with the ECDSA key's PEM", ES256, hmacWith(es.public)},
		{"HMAC with the Ed25519 key's bytes", EdDSA, hmacWith(ed.private.Public().(ed25519.PublicKey))},
		{"HMAC with nothing", RS256, hmacWith(nil)},
		{"none", RS256, withSignature("none", nil)},
		{"nOnE", ES256, withSignature("nOnE", nil)},
		{"none with a signature", RS256, signed(rs, "none", "")},
		{"PSS instead of PKCS #1", RS256, signed(pair{alg: "PS256", private: rs.private}, "PS256", "")},
		{"PSS named RS256", RS256, signed(pair{alg: "PS256", private: rs.private}, "RS256", "")},
		{"SHA-512 by the same RSA key", RS256, signed(pair{alg: "RS512", private: rs.private}, "RS512", "")},
		{"a good RSA signature named ES256", ES256, signed(rs, "ES256", "")},
		{"a good RSA signature named HS256", HS256, signed(rs, "HS256", "")},
		{"another RSA key", RS256, signed(evil, "RS256", "")},
		{"another ECDSA key", ES256, signed(pairs()["other "+ES256], "ES256", "")},
		{"another Ed25519 key", EdDSA, signed(pairs()["other "+EdDSA], "EdDSA", "")},
		{"a key that the token brings along", RS256, signed(evil, "RS256", jwk)},
		{"a key set that the token names", RS256, signed(evil, "RS256", `,"jku":"https://evil.example/keys","x5u":"https://evil.example/x"`)},
		{"an ECDSA signature of zeros", ES256, withSignature("ES256", make([]byte, 64))},
		{"an Ed25519 signature of zeros", EdDSA, withSignature("EdDSA", make([]byte, 64))},
		{"an RSA signature of zeros", RS256, withSignature("RS256", make([]byte, 256))},
		{"an RSA signature of one", RS256, withSignature("RS256", append(make([]byte, 255), 1))},
		{"no signature", EdDSA, withSignature("EdDSA", nil)},
		{"an ECDSA signature as DER", ES256, func(kid string) string {
			text := forge(`{"alg":"ES256"`+kid+`}`, claims(""), nil, nil)
			sum := sha256.Sum256([]byte(strings.TrimSuffix(text, ".")))
			return text + base64.RawURLEncoding.EncodeToString(must(es.private.Sign(rand.Reader, sum[:], crypto.SHA256)))
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			for _, named := range []bool{false, true} {
				j := newJWT(t, func(c *JWTConfig) { c.Keys = keysOf(named) })
				for _, kid := range []string{"", `,"kid":"` + attack.target + `"`, `,"kid":"nobody's"`, `,"kid":"../../dev/null"`} {
					if err := authenticate(j, attack.token(kid)); !errors.Is(err, ErrUnauthenticated) {
						t.Errorf("keys named %v, token with %q: %v", named, kid, err)
					}
				}
			}
		})
	}
}

func TestKidPicksTheKey(t *testing.T) {
	first, second := pairs()[ES256], pairs()["other "+ES256]
	keys := []Key{
		{Alg: ES256, ID: "first", PEM: first.public},
		{Alg: ES256, ID: "second", PEM: second.public},
	}
	unnamed := append(keys[1:2:2], Key{Alg: ES256, PEM: first.public})
	for _, tt := range []struct {
		rule string
		keys []Key
		by   pair
		kid  string
		ok   bool
	}{
		{"its own key", keys, first, `,"kid":"first"`, true},
		{"another's key", keys, first, `,"kid":"second"`, false},
		{"nobody's key", keys, first, `,"kid":"third"`, false},
		{"none: the first that fits", keys, first, "", true},
		{"none: the second that fits", keys, second, "", true},
		{"empty is none", keys, second, `,"kid":""`, true},
		{"a name that no key has goes to keys without one", unnamed, first, `,"kid":"third"`, true},
		{"a name that a key has goes to that one only", unnamed, first, `,"kid":"second"`, false},
		{"a name of a key for another algorithm", append(unnamed, Key{Alg: HS256, ID: "hmac", Secret: secret}), first, `,"kid":"hmac"`, false},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			j := newJWT(t, func(c *JWTConfig) { c.Keys = tt.keys })
			if err := authenticate(j, tt.by.token(`{"alg":"ES256"`+tt.kid+`}`, claims(""))); (err == nil) != tt.ok {
				t.Error(err)
			}
		})
	}
}

func TestKeyThatCannotBeUsedIsRefusedWithWhatWouldBeRight(t *testing.T) {
	weak := must(rsa.GenerateKey(rand.Reader, 1024))
	p384 := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	x25519 := must(ecdh.X25519().GenerateKey(rand.Reader)).PublicKey()
	public := func(key any) []byte { return toPEM("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(key))) }
	rsaPEM := func(n *big.Int, e int) []byte {
		return toPEM("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsa.PublicKey{N: n, E: e}))
	}
	odd := func(bits uint) *big.Int {
		return new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), bits-1), big.NewInt(1))
	}
	rs, es, ed := pairs()[RS256], pairs()[ES256], pairs()[EdDSA]
	rsaPublic := rs.private.Public().(*rsa.PublicKey)
	derRSA := x509.MarshalPKCS1PublicKey(rsaPublic)
	block, _ := pem.Decode(ed.public)
	for _, tt := range []struct {
		rule string
		key  Key
		want string
	}{
		{"no algorithm", Key{PEM: rs.public}, "supported are HS256, RS256, ES256 and EdDSA"},
		{"none", Key{Alg: "none"}, `"none" is not supported`},
		{"an algorithm in another case", Key{Alg: "rs256", PEM: rs.public}, "not supported"},
		{"another hash", Key{Alg: "RS512", PEM: rs.public}, "not supported"},
		{"a short secret", Key{Alg: HS256, Secret: secret[1:]}, "at least 32 bytes, this one has 31"},
		{"no secret", Key{Alg: HS256}, "at least 32 bytes"},
		{"PEM for a secret", Key{Alg: HS256, PEM: secret}, "takes a secret, no PEM"},
		{"a public key as a secret, PEM", Key{Alg: HS256, Secret: rs.public}, "give it as PEM, with its algorithm"},
		{"a public key as a secret, DER", Key{Alg: HS256, Secret: derRSA}, "give it as PEM, with its algorithm"},
		{"a public key as a secret, PKIX", Key{Alg: HS256, Secret: block.Bytes}, "give it as PEM, with its algorithm"},
		{"a private key as a secret", Key{Alg: HS256, Secret: rs.pem}, "give it as PEM, with its algorithm"},
		{"a secret for PEM", Key{Alg: ES256, Secret: secret, PEM: es.public}, "takes PEM, no secret"},
		{"nothing", Key{Alg: ES256}, "it takes a public or a private key as PEM"},
		{"no PEM", Key{Alg: RS256, PEM: derRSA}, "it takes a public or a private key as PEM"},
		{"two keys", Key{Alg: ES256, PEM: append(es.public[:len(es.public):len(es.public)], es.public...)}, "it takes one"},
		{"a certificate", Key{Alg: RS256, PEM: toPEM("CERTIFICATE", derRSA)}, `"CERTIFICATE"; it takes a PUBLIC KEY`},
		{"an encrypted key", Key{Alg: RS256, PEM: toPEM("ENCRYPTED PRIVATE KEY", derRSA)}, "not encrypted"},
		{"PEM of something else", Key{Alg: RS256, PEM: toPEM("PUBLIC KEY", []byte("hello"))}, "PUBLIC KEY: "},
		{"RSA of 1024 bits", Key{Alg: RS256, PEM: public(&weak.PublicKey)}, "1024 bits; RS256 takes 2048 to 8192"},
		{"RSA of 8200 bits", Key{Alg: RS256, PEM: rsaPEM(odd(8200), 65537)}, "8200 bits; RS256 takes 2048 to 8192"},
		{"RSA with an even modulus", Key{Alg: RS256, PEM: rsaPEM(new(big.Int).Lsh(big.NewInt(1), 2050), 65537)}, "modulus"},
		{"RSA with an even exponent", Key{Alg: RS256, PEM: rsaPEM(rsaPublic.N, 4)}, "exponent"},
		{"RSA with the exponent 1", Key{Alg: RS256, PEM: rsaPEM(rsaPublic.N, 1)}, "exponent"},
		{"P-384", Key{Alg: ES256, PEM: public(&p384.PublicKey)}, "P-384; ES256 takes P-256"},
		{"P-224, private", Key{Alg: ES256, PEM: toPEM("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(p224)))}, "P-224; ES256 takes P-256"},
		{"ECDSA for RS256", Key{Alg: RS256, PEM: es.public}, "a key for ES256, not for RS256"},
		{"RSA for ES256", Key{Alg: ES256, PEM: rs.public}, "a key for RS256, not for ES256"},
		{"RSA for EdDSA", Key{Alg: EdDSA, PEM: rs.pem}, "a key for RS256, not for EdDSA"},
		{"Ed25519 for ES256", Key{Alg: ES256, PEM: ed.public}, "a key for EdDSA, not for ES256"},
		{"a key for another purpose", Key{Alg: EdDSA, PEM: public(x25519)}, "nor Ed25519 (EdDSA)"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			tt.key.ID = "k7"
			_, err := NewJWT(JWTConfig{Keys: []Key{tt.key}})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `key "k7"`) {
				t.Errorf("%v; want %q in it", err, tt.want)
			}
			if tt.key.CanSign() {
				t.Error("it can sign")
			}
		})
	}
}

func TestKeysSignWhatTheirPublicHalvesVerify(t *testing.T) {
	ec := pairs()[ES256].private.(*ecdsa.PrivateKey)
	params := toPEM("EC PARAMETERS", []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7})
	for name, key := range map[string]Key{
		"HS256":                         {Alg: HS256, Secret: secret},
		"RS256":                         {Alg: RS256, PEM: pairs()[RS256].pem},
		"RS256, PKCS #1":                {Alg: RS256, PEM: toPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(pairs()[RS256].private.(*rsa.PrivateKey)))},
		"ES256":                         {Alg: ES256, PEM: pairs()[ES256].pem},
		"ES256, SEC 1 after parameters": {Alg: ES256, PEM: append(params, toPEM("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(ec)))...)},
		"EdDSA":                         {Alg: EdDSA, PEM: pairs()[EdDSA].pem},
	} {
		t.Run(name, func(t *testing.T) {
			key.ID = key.Alg
			if !key.CanSign() {
				t.Error("it says that it cannot sign")
			}
			token, err := key.Sign(Claims{Tenant: "acme", Subject: "alice", Expires: now.Add(time.Minute)})
			if err != nil {
				t.Fatal(err)
			}
			for _, keys := range [][]Key{keysOf(true), {key}} {
				if err := authenticate(newJWT(t, func(c *JWTConfig) { c.Keys = keys }), token); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestPublicKeyCannotSign(t *testing.T) {
	for _, key := range keysOf(true)[1:] {
		if _, err := key.Sign(Claims{Tenant: "acme", Subject: "alice", Expires: now}); err == nil || key.CanSign() {
			t.Errorf("%s: %v, %v", key.Alg, err, key.CanSign())
		}
	}
}
