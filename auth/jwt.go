package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// maxExpires is the latest end of a token, in seconds: its milliseconds are an
// exact integer in every client.
const maxExpires = (1<<53 - 1) / 1000

// JWTConfig says which tokens a JWT accepts.
type JWTConfig struct {
	// Keys verify tokens. A token whose header names a kid is verified by the
	// keys of that ID and by those without one; a token that names none, by any.
	// Without keys every token is refused.
	Keys []Key
	// Issuer and Audience are checked when they are not empty.
	Issuer, Audience string
	// TenantClaim names the claim that holds the tenant; empty: "tenant".
	TenantClaim string
	// Leeway is taken off for clocks that differ, at both ends of a token's life.
	Leeway time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// JWT authenticates by JSON Web Tokens. It is immutable.
type JWT struct {
	keys        []Key
	tenantClaim string
	leeway      time.Duration
	parser      *jwt.Parser    // signature only
	validator   *jwt.Validator // claims, after the signature
}

// NewJWT checks c, reporting every fault at once, and returns an authenticator.
func NewJWT(c JWTConfig) (*JWT, error) {
	var faults []error
	seen := map[string]bool{}
	for _, k := range c.Keys {
		if err := k.validate(); err != nil {
			faults = append(faults, err)
		}
		if k.ID != "" && seen[k.ID] {
			faults = append(faults, fmt.Errorf("auth: two keys with kid %q", k.ID))
		}
		seen[k.ID] = true
	}
	if c.Leeway < 0 {
		faults = append(faults, errors.New("auth: a negative leeway"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	claims := []jwt.ParserOption{jwt.WithExpirationRequired(), jwt.WithLeeway(c.Leeway), jwt.WithTimeFunc(c.Now)}
	if c.Issuer != "" {
		claims = append(claims, jwt.WithIssuer(c.Issuer))
	}
	if c.Audience != "" {
		claims = append(claims, jwt.WithAudience(c.Audience))
	}
	return &JWT{
		keys:        slices.Clone(c.Keys),
		tenantClaim: tenantClaim(c.TenantClaim),
		leeway:      c.Leeway,
		parser:      jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding()),
		validator:   jwt.NewValidator(claims...),
	}, nil
}

// Authenticate verifies c.Token and reads the identity from it.
func (j *JWT) Authenticate(_ context.Context, c Credentials) (*Identity, error) {
	if c.Token == "" {
		return nil, fmt.Errorf("%w: no token", ErrUnauthenticated)
	}
	id, err := j.identity(c.Token)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	return id, nil
}

func (j *JWT) identity(token string) (*Identity, error) {
	var raw sealed
	if _, err := j.parser.ParseWithClaims(token, &raw, j.candidates); err != nil {
		return nil, err
	}
	v, err := decodeStrict(raw.text)
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("auth: the claims are no object")
	}
	claims := jwt.MapClaims(object)
	if err := j.validator.Validate(claims); err != nil {
		return nil, err
	}
	return j.read(claims)
}

// read takes the identity from claims whose signature and times hold.
func (j *JWT) read(claims jwt.MapClaims) (*Identity, error) {
	exp, err := claims.GetExpirationTime()
	if err != nil {
		return nil, err
	}
	if s := exp.Unix(); s <= 0 || s > maxExpires {
		return nil, errors.New("auth: exp is out of range")
	}
	id := &Identity{Expires: exp.Time, Leeway: j.leeway}
	for _, text := range []struct {
		claim    string
		into     *string
		required bool
	}{
		{"sub", &id.Subject, true},
		{j.tenantClaim, &id.Tenant, true},
		{"jti", &id.TokenID, false},
	} {
		value, given := claims[text.claim]
		if !given && !text.required {
			continue
		}
		s, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("auth: claim %s is missing or no text", text.claim)
		}
		*text.into = s
	}
	if err := errors.Join(checkSubject(id.Subject), checkTenant(id.Tenant)); err != nil {
		return nil, err
	}
	if claim, given := claims["pulse"]; given {
		if id.Grants, err = grantsOf(claim); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// candidates returns the keys that may verify a token: those of the header's
// algorithm, and of its kid if both sides name one.
func (j *JWT) candidates(t *jwt.Token) (any, error) {
	kid, err := keyID(t.Header)
	if err != nil {
		return nil, err
	}
	// Extensions that must be understood (RFC 7515, 4.1.11): there are none here.
	if _, critical := t.Header["crit"]; critical {
		return nil, errors.New("auth: the token has critical extensions")
	}
	var set jwt.VerificationKeySet
	for _, k := range j.keys {
		if k.Alg == t.Method.Alg() && (k.ID == "" || kid == "" || k.ID == kid) {
			set.Keys = append(set.Keys, k.Secret)
		}
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("auth: no key for the token's alg and kid")
	}
	return set, nil
}

func keyID(header map[string]any) (string, error) {
	value, given := header["kid"]
	if !given {
		return "", nil
	}
	kid, ok := value.(string)
	if !ok {
		return "", errors.New("auth: the token's kid is no text")
	}
	return kid, nil
}

// sealed keeps a token's claims as they are, to be decoded only when the
// signature over them holds.
type sealed struct {
	jwt.MapClaims // always empty; makes sealed a jwt.Claims
	text          []byte
}

// UnmarshalJSON keeps a copy of text.
func (s *sealed) UnmarshalJSON(text []byte) error {
	s.text = slices.Clone(text)
	return nil
}

func tenantClaim(name string) string {
	if name == "" {
		return "tenant"
	}
	return name
}

func checkTenant(name string) error {
	if len(name) < 1 || len(name) > 64 {
		return errors.New("auth: a tenant has 1 to 64 bytes")
	}
	if name == "." || name == ".." {
		return errors.New("auth: '.' and '..' are no tenants")
	}
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return errors.New("auth: a tenant is made of A-Z, a-z, 0-9, '_', '.' and '-'")
		}
	}
	return nil
}

// checkSubject also refuses the replacement character: it stands for text that
// could not be decoded, and two subjects must not become one that way.
func checkSubject(s string) error {
	if len(s) < 1 || len(s) > 256 {
		return errors.New("auth: a subject has 1 to 256 bytes")
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError) {
		return errors.New("auth: a subject is valid UTF-8")
	}
	return nil
}
