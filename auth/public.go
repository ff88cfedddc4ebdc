package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Bounds of RSA keys, in bits. Beyond the upper one each verification costs more
// than a stranger should be able to ask for.
const (
	minRSA = 2048
	maxRSA = 8192
)

// decodePEM returns the one key that text holds.
func decodePEM(text []byte) (any, error) {
	block, rest := pem.Decode(text)
	if block != nil && block.Type == "EC PARAMETERS" { // openssl puts them first
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("no PEM; it takes a public or a private key as PEM")
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, errors.New("several keys in one PEM; it takes one")
	}
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("PEM of type %q; it takes a PUBLIC KEY, or a PRIVATE KEY that is not encrypted", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", block.Type, err)
	}
	return key, nil
}

// algOf is the one algorithm that a public key verifies, and why it verifies
// none.
func algOf(public any) (string, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		switch bits := key.N.BitLen(); {
		case bits < minRSA || bits > maxRSA:
			return "", fmt.Errorf("an RSA key of %d bits; RS256 takes %d to %d", bits, minRSA, maxRSA)
		case key.N.Bit(0) == 0 || key.E < 3 || key.E%2 == 0:
			return "", errors.New("no RSA key: its modulus is even, or its exponent is even or below 3")
		}
		return RS256, nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return "", fmt.Errorf("an ECDSA key on %s; ES256 takes P-256", key.Curve.Params().Name)
		}
		return ES256, nil
	case ed25519.PublicKey:
		return EdDSA, nil
	}
	return "", errors.New("neither RSA (RS256), ECDSA on P-256 (ES256) nor Ed25519 (EdDSA)")
}

// checkPublic reports why tokens of alg cannot be verified with public.
func checkPublic(alg string, public any) error {
	own, err := algOf(public)
	if err == nil && own != alg {
		err = fmt.Errorf("a key for %s, not for %s", own, alg)
	}
	return err
}
