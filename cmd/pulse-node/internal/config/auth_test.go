package config

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
)

// pair is a new key pair of an algorithm, as PEM.
func pair(t *testing.T, alg string) (private, public string) {
	t.Helper()
	var key crypto.Signer
	var err error
	switch alg {
	case "RS256":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "EdDSA":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	private = encode("PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	return private, encode("PUBLIC KEY", der, err)
}

// A public key verifies, a private one, which is a secret, also signs.
func TestKeysOfEveryAlgorithm(t *testing.T) {
	for _, alg := range []string{"RS256", "ES256", "EdDSA"} {
		t.Run(alg, func(t *testing.T) {
			private, public := pair(t, alg)
			for i, tt := range []struct {
				fields  string
				environ []string
				signs   bool
			}{
				{"public_key_file: " + write(t, "public.pem", public), nil, false},
				{"secret_file: " + write(t, "private.pem", private), nil, true},
				{"secret_env: ISSUER", []string{"ISSUER=" + private}, true},
				{fmt.Sprintf("secret: %q", private), nil, true},
			} {
				c := mustLoad(t, key("kid: a, alg: "+alg+", "+tt.fields), tt.environ)
				if k := c.Auth.JWT.Keys[0].Key; k.Alg != alg || k.ID != "a" || k.CanSign() != tt.signs {
					t.Errorf("%d: %s %q, signs %v", i, k.Alg, k.ID, k.CanSign())
				}
			}
		})
	}
}

func TestFaultsOfKeyFiles(t *testing.T) {
	private, public := pair(t, "ES256")
	for rule, tt := range map[string]struct{ fields, says string }{
		"a private key where a public one belongs": {"alg: ES256, public_key_file: " + write(t, "a.pem", private), "give that as secret_file"},
		"a key of another algorithm":               {"alg: EdDSA, public_key_file: " + write(t, "b.pem", public), "a key for ES256, not for EdDSA"},
		"two keys in one file":                     {"alg: ES256, public_key_file: " + write(t, "c.pem", public+public), "several keys"},
		"no key":                                   {"alg: ES256, public_key_file: " + write(t, "d.pem", "hush-hush"), "no PEM"},
		"a key pair as the secret of HS256":        {"alg: HS256, secret_file: " + write(t, "e.pem", private), "not HS256"},
	} {
		t.Run(rule, func(t *testing.T) {
			_, err := load(t, key(tt.fields), nil)
			faults := faultsOf(t, err)
			if len(faults) != 1 || faults[0].Key != "auth.jwt.keys[0]" || !strings.Contains(faults[0].Problem, tt.says) ||
				!strings.HasSuffix(faults[0].Source, "pulse.yaml:1") || strings.Contains(err.Error(), "hush-hush") {
				t.Errorf("%v", err)
			}
		})
	}
}
