package auth

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// Algorithms of tokens. No other is accepted, "none" least of all.
const (
	HS256 = "HS256" // HMAC with SHA-256, one secret for signing and verifying
	RS256 = "RS256" // RSA, PKCS #1 v1.5, with SHA-256
	ES256 = "ES256" // ECDSA on P-256 with SHA-256
	EdDSA = "EdDSA" // Ed25519
)

// minSecret is the shortest symmetric key, in bytes: the size of the hash, as
// RFC 7518, 3.2 requires.
const minSecret = 32

// Key verifies, and may sign, tokens of one algorithm and of no other.
type Key struct {
	Alg string // HS256, RS256, ES256 or EdDSA
	ID  string // "kid" of the tokens it is for; empty: of any
	// Secret is for HS256: raw bytes, at least 32.
	Secret []byte
	// PEM is for the others: one public key ("PUBLIC KEY" or "RSA PUBLIC KEY"),
	// or one private key, which also signs ("PRIVATE KEY", "RSA PRIVATE KEY" or
	// "EC PRIVATE KEY"), not encrypted.
	PEM []byte
}

// CanSign reports whether k is a valid key that Sign can be called with.
func (k Key) CanSign() bool {
	_, private, err := k.parse()
	return err == nil && private != nil
}

// parse returns k ready for use; private is nil for a public key. With an error
// v has its id all the same.
func (k Key) parse() (v verifier, private any, err error) {
	v = verifier{alg: k.Alg, id: k.ID}
	switch k.Alg {
	case HS256:
		v.key, private, err = k.Secret, k.Secret, k.checkSecret()
	case RS256, ES256, EdDSA:
		v.key, private, err = k.parsePEM()
	default:
		err = fmt.Errorf("algorithm %q is not supported; supported are HS256, RS256, ES256 and EdDSA", k.Alg)
	}
	if err != nil {
		err = fmt.Errorf("auth: key %q: %w", k.ID, err)
	}
	return v, private, err
}

// checkSecret also refuses what is a public key, from which everybody could make
// tokens.
func (k Key) checkSecret() error {
	if len(k.PEM) > 0 {
		return fmt.Errorf("%s takes a secret, no PEM", k.Alg)
	}
	if len(k.Secret) < minSecret {
		return fmt.Errorf("a symmetric key has at least %d bytes, this one has %d", minSecret, len(k.Secret))
	}
	block, _ := pem.Decode(k.Secret)
	_, pkix := x509.ParsePKIXPublicKey(k.Secret)
	_, pkcs1 := x509.ParsePKCS1PublicKey(k.Secret)
	if block != nil || pkix == nil || pkcs1 == nil {
		return fmt.Errorf("the secret is a key pair's file; give it as PEM, with its algorithm, which is not %s", k.Alg)
	}
	return nil
}

func (k Key) parsePEM() (public, private any, err error) {
	if len(k.Secret) > 0 {
		return nil, nil, fmt.Errorf("%s takes PEM, no secret", k.Alg)
	}
	parsed, err := decodePEM(k.PEM)
	if err != nil {
		return nil, nil, err
	}
	public = parsed
	if signer, ok := parsed.(crypto.Signer); ok {
		public, private = signer.Public(), parsed
	}
	if err := checkPublic(k.Alg, public); err != nil {
		return nil, nil, err
	}
	return public, private, nil
}
