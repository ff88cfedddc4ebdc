package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// jwk is the public half of p as RFC 7517 has it, with more fields.
func (p pair) jwk(more string) string {
	text := base64.RawURLEncoding.EncodeToString
	var fields string
	switch key := p.private.Public().(type) {
	case *rsa.PublicKey:
		fields = fmt.Sprintf(`"kty":"RSA","n":%q,"e":%q`, text(key.N.Bytes()), text(big.NewInt(int64(key.E)).Bytes()))
	case *ecdsa.PublicKey:
		point := must(key.Bytes())
		size := len(point) / 2
		fields = fmt.Sprintf(`"kty":"EC","crv":%q,"x":%q,"y":%q`, key.Curve.Params().Name, text(point[1:1+size]), text(point[1+size:]))
	case ed25519.PublicKey:
		fields = fmt.Sprintf(`"kty":"OKP","crv":"Ed25519","x":%q`, text(key))
	}
	if more != "" {
		fields += "," + more
	}
	return "{" + fields + "}"
}

func set(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

// Keys that cannot be used are left out, the others stay.
func TestKeysOfASetThatAreLeftOut(t *testing.T) {
	es := pairs()[ES256]
	weak := pair{private: must(rsa.GenerateKey(rand.Reader, 1024))}
	p384 := pair{private: must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))}
	var point map[string]string
	if err := json.Unmarshal([]byte(es.jwk("")), &point); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{
		"no object":                 `"key"`,
		"no type":                   `{}`,
		"a symmetric key":           `{"kty":"oct","k":"` + base64.RawURLEncoding.EncodeToString(secret) + `"}`,
		"an RSA key of 1024 bits":   weak.jwk(""),
		"an RSA key without n":      `{"kty":"RSA","e":"AQAB"}`,
		"an RSA exponent beyond":    `{"kty":"RSA","n":"` + strings.Repeat("_", 344) + `","e":"_____w"}`,
		"P-384":                     p384.jwk(""),
		"a point that is not on it": `{"kty":"EC","crv":"P-256","x":"` + point["x"] + `","y":"` + point["x"] + `"}`,
		"a point cut short":         `{"kty":"EC","crv":"P-256","x":"` + point["x"] + `"}`,
		"a short Ed25519 key":       `{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`,
		"X25519":                    `{"kty":"OKP","crv":"X25519","x":"` + strings.Repeat("A", 43) + `"}`,
		"for encryption":            es.jwk(`"use":"enc"`),
		"for signing only":          es.jwk(`"key_ops":["sign"]`),
		"another algorithm":         es.jwk(`"alg":"ES384"`),
		"an algorithm by mistake":   es.jwk(`"alg":"HS256"`),
		"a kid that is no text":     es.jwk(`"kid":1`),
		"broken base64":             `{"kty":"OKP","crv":"Ed25519","x":"!` + strings.Repeat("A", 42) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := parseKeySet([]byte(set(key, pairs()[EdDSA].jwk(`"alg":"Ed25519"`))))
			if err != nil || len(keys) != 1 || keys[0].alg != EdDSA {
				t.Errorf("%+v, %v", keys, err)
			}
			if keys, err := parseKeySet([]byte(set(key))); err == nil {
				t.Errorf("alone: %+v", keys)
			}
		})
	}
	if keys, err := parseKeySet([]byte(set())); err != nil || keys == nil {
		t.Errorf("an issuer that has withdrawn all keys: %v", err)
	}
}

// FuzzKeySet: whatever an endpoint says, each key has one algorithm and keeps its
// rules.
func FuzzKeySet(f *testing.F) {
	for _, p := range pairs() {
		f.Add([]byte(set(p.jwk(`"kid":"1"`))))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeySet(text)
		if err != nil {
			return
		}
		for _, k := range keys {
			if err := checkPublic(k.alg, k.key); err != nil {
				t.Error(err)
			}
		}
	})
}
