package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

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
	_, private, err := k.parse()
	if err != nil {
		return "", err
	}
	if private == nil {
		return "", fmt.Errorf("auth: key %q is public, it cannot sign", k.ID)
	}
	claims, err := c.encode()
	if err != nil {
		return "", err
	}
	token := jwt.NewWithClaims(jwt.GetSigningMethod(k.Alg), claims)
	if k.ID != "" {
		token.Header["kid"] = k.ID
	}
	return token.SignedString(private)
}

func (c Claims) encode() (jwt.MapClaims, error) {
	if err := checkTenant(c.Tenant); err != nil {
		return nil, err
	}
	if err := checkSubject(c.Subject); err != nil {
		return nil, err
	}
	if _, err := NewGrants(c.Grants...); err != nil {
		return nil, err
	}
	if c.Expires.IsZero() {
		return nil, errors.New("auth: a token needs an end")
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
		return nil, fmt.Errorf("auth: claim %s cannot hold the tenant, it says something else already", name)
	}
	claims[name] = c.Tenant
	return claims, nil
}
