package config

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/yaza-dev/pulse/auth"
)

// checkAuth looks at how clients are known, and makes the keys.
func (l *loader) checkAuth() {
	a := &l.config.Auth
	if a.Cookie != "" && (&http.Cookie{Name: a.Cookie}).Valid() != nil {
		l.fault("auth.cookie", l.source("auth.cookie"), fmt.Sprintf("%q must be the name of a cookie", a.Cookie))
	}
	if a.JWT.TenantClaim == "" {
		l.fault("auth.jwt.tenant_claim", l.source("auth.jwt.tenant_claim"), "must name a claim")
	}
	if problem := problemOf(auth.JWTConfig{JWKS: auth.JWKSConfig{URL: a.JWT.JWKS.URL}}); problem != "" {
		l.fault("auth.jwt.jwks.url", l.source("auth.jwt.jwks.url"), problem)
	}
	seen := map[string]bool{}
	for i := range a.JWT.Keys {
		k := &a.JWT.Keys[i]
		path := fmt.Sprintf("auth.jwt.keys[%d]", i)
		if k.KID != "" && seen[k.KID] {
			l.fault(join(path, "kid"), l.source(path), fmt.Sprintf("%q is another key's; each kid must be given once", k.KID))
		}
		seen[k.KID] = true
		if k.Alg == "" {
			if _, given := l.sources[join(path, "alg")]; !given { // else there is a fault about it
				l.fault(join(path, "alg"), l.source(path), "must be given: HS256, RS256, ES256 or EdDSA")
			}
			continue
		}
		if err := l.key(k); err != nil {
			l.fault(path, l.source(path), err.Error())
		}
	}
}

// key reads k's key.
func (l *loader) key(k *Key) error {
	if k.Alg == auth.HS256 && k.PublicKeyFile != "" {
		return errors.New("HS256 takes a secret; must have exactly one of secret_file, secret_env, secret")
	}
	material, err := l.material(*k)
	if err != nil {
		return err
	}
	k.Key = auth.Key{Alg: k.Alg, ID: k.KID}
	if k.Alg == auth.HS256 {
		k.Key.Secret = material
	} else {
		k.Key.PEM = material
	}
	if problem := problemOf(auth.JWTConfig{Keys: []auth.Key{k.Key}}); problem != "" {
		return errors.New(problem)
	}
	if k.PublicKeyFile != "" && k.Key.CanSign() {
		return errors.New("public_key_file holds a private key; give that as secret_file")
	}
	return nil
}

// problemOf is what auth finds wrong with a part of its configuration; empty:
// nothing.
func problemOf(c auth.JWTConfig) string {
	j, err := auth.NewJWT(c)
	if err != nil {
		return strings.TrimPrefix(err.Error(), "auth: ")
	}
	j.Close()
	return ""
}
