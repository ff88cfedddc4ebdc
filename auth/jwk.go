package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// maxSetKeys bounds what a set may cost whoever verifies a token that names no
// key.
const maxSetKeys = 64

// parseKeySet reads a JSON Web Key Set (RFC 7517). Keys of it that verify none of
// the algorithms here are left out, as the RFC wants it: symmetric ones, those
// for encryption, too weak ones. A set of which nothing is left, though it has
// keys, is refused; one without keys is a set.
func parseKeySet(text []byte) (keyring, error) {
	v, err := decodeStrict(text)
	if err != nil {
		return nil, err
	}
	set, _ := v.(map[string]any)
	list, ok := set["keys"].([]any)
	if !ok {
		return nil, errors.New("auth: no key set: it has no array of keys")
	}
	if len(list) > maxSetKeys {
		return nil, fmt.Errorf("auth: a key set of over %d keys", maxSetKeys)
	}
	keys := keyring{}
	var left []error
	for i, entry := range list {
		fields, _ := entry.(map[string]any)
		key, err := parseJWK(fields)
		if err != nil {
			left = append(left, fmt.Errorf("auth: key %d of the set: %w", i, err))
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 && len(left) > 0 {
		return nil, fmt.Errorf("auth: no key of the set can be used: %w", errors.Join(left...))
	}
	return keys, nil
}

// parseJWK reads one public key for signatures.
func parseJWK(fields map[string]any) (verifier, error) {
	if use, given := fields["use"]; given && use != "sig" {
		return verifier{}, errors.New("not for signatures")
	}
	if ops, given := fields["key_ops"]; given {
		if list, _ := ops.([]any); !slices.Contains(list, any("verify")) {
			return verifier{}, errors.New("not for verifying")
		}
	}
	id, ok := fields["kid"].(string)
	if _, given := fields["kid"]; given && !ok {
		return verifier{}, errors.New("its kid is no text")
	}
	public, err := publicJWK(fields)
	if err != nil {
		return verifier{}, err
	}
	own, err := algOf(public)
	if err != nil {
		return verifier{}, err
	}
	// RFC 9864 names what EdDSA means with this key.
	if alg, given := fields["alg"]; given && alg != own && !(own == EdDSA && alg == "Ed25519") {
		return verifier{}, fmt.Errorf("a key for %s whose alg says otherwise", own)
	}
	return verifier{alg: own, id: id, key: public}, nil
}

func publicJWK(fields map[string]any) (any, error) {
	kty, _ := fields["kty"].(string)
	crv, _ := fields["crv"].(string)
	switch {
	case kty == "RSA":
		n, e := jwkBytes(fields, "n"), new(big.Int).SetBytes(jwkBytes(fields, "e"))
		if !e.IsInt64() || e.Int64() >= 1<<31 {
			return nil, errors.New("its exponent is beyond 31 bits")
		}
		return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(e.Int64())}, nil
	case kty == "EC" && crv == "P-256":
		point := slices.Concat([]byte{4}, jwkBytes(fields, "x"), jwkBytes(fields, "y"))
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	case kty == "OKP" && crv == "Ed25519":
		x := jwkBytes(fields, "x")
		if len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("an Ed25519 key of %d bytes", len(x))
		}
		return ed25519.PublicKey(x), nil
	}
	return nil, errors.New("neither RSA, EC on P-256 nor OKP on Ed25519")
}

// jwkBytes is a field's value; nothing where it is none, which no key can be
// made of.
func jwkBytes(fields map[string]any, name string) []byte {
	text, _ := fields[name].(string)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return b
}
