package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// HS256 is HMAC with SHA-256, one secret for signing and verifying.
const HS256 = "HS256"

// minSecret is the shortest symmetric key, in bytes: the size of the hash, as
// RFC 7518, 3.2 requires.
const minSecret = 32

// Key verifies, and may sign, tokens of one algorithm.
type Key struct {
	Alg    string // HS256
	ID     string // "kid" of the tokens it is for; empty: of any
	Secret []byte // raw bytes, at least 32
}

func (k Key) validate() error {
	if k.Alg != HS256 {
		return fmt.Errorf("auth: key %q: algorithm %q is not supported; supported is %s", k.ID, k.Alg, HS256)
	}
	if len(k.Secret) < minSecret {
		return fmt.Errorf("auth: key %q: a symmetric key has at least %d bytes, this one has %d", k.ID, minSecret, len(k.Secret))
	}
	return nil
}

// Claims is what a token says.
type Claims struct {
	Tenant      string
	TenantClaim string // name of the claim that holds Tenant; empty: "tenant"
	Subject     string
	Issuer      string // empty: none
	Audience    string // empty: none
	Expires     time.Time
	TokenID     string // empty: none
	Grants      []Grant
}

// Sign returns a token that says c, in the JWT compact form. What a JWT would
// refuse by its grammar is not signed.
func (k Key) Sign(c Claims) (string, error) {
	if err := k.validate(); err != nil {
		return "", err
	}
	if err := checkTenant(c.Tenant); err != nil {
		return "", err
	}
	if err := checkSubject(c.Subject); err != nil {
		return "", err
	}
	if _, err := NewGrants(c.Grants...); err != nil {
		return "", err
	}
	if c.Expires.IsZero() {
		return "", errors.New("auth: a token needs an end")
	}
	claims := jwt.MapClaims{"exp": c.Expires.Unix()}
	for name, value := range map[string]string{"iss": c.Issuer, "aud": c.Audience, "jti": c.TokenID} {
		if value != "" {
			claims[name] = value
		}
	}
	if len(c.Grants) > 0 {
		claims["pulse"] = c.Grants
	}
	claims["sub"] = c.Subject
	name := tenantClaim(c.TenantClaim)
	if other, taken := claims[name]; taken && other != c.Tenant {
		return "", fmt.Errorf("auth: claim %s cannot hold the tenant, it says something else already", name)
	}
	claims[name] = c.Tenant
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	if k.ID != "" {
		token.Header["kid"] = k.ID
	}
	return token.SignedString(k.Secret)
}
