package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// maxExpires is the latest instant in a token, in seconds: its milliseconds are an
// exact integer in every client.
const maxExpires = (1<<53 - 1) / 1000

// JWTConfig says which tokens a JWT accepts.
type JWTConfig struct {
	// Keys verify tokens, and so do those of JWKS. A token whose header names a
	// kid is verified by the keys of that ID only; where no key has it, by those
	// without ID; a token that names none, by any of its algorithm. Without keys
	// every token is refused.
	Keys []Key
	JWKS JWKSConfig
	// Issuer and Audience are checked when they are not empty.
	Issuer, Audience string
	// TenantClaim names the claim that holds the tenant; empty: "tenant".
	TenantClaim string
	// Leeway is taken off for clocks that differ, at both ends of a token's life.
	Leeway time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// JWT authenticates by JSON Web Tokens. A token needs an end (exp); one that is
// not good yet (nbf), or was issued in the future (iat), is refused.
type JWT struct {
	keys        keyring
	set         *keySet // nil: none
	tenantClaim string
	leeway      time.Duration
	parser      *jwt.Parser    // signature only
	validator   *jwt.Validator // claims, after the signature
}

// NewJWT checks c, reporting every fault at once, and returns an authenticator.
// A key set is fetched when the first token needs it.
func NewJWT(c JWTConfig) (*JWT, error) {
	j := &JWT{tenantClaim: tenantClaim(c.TenantClaim), leeway: c.Leeway}
	var faults []error
	for _, k := range c.Keys {
		v, _, err := k.parse()
		if err != nil {
			faults = append(faults, err)
		}
		if k.ID != "" && j.keys.names(k.ID) {
			faults = append(faults, fmt.Errorf("auth: two keys with kid %q", k.ID))
		}
		j.keys = append(j.keys, v)
	}
	if c.JWKS.URL != "" {
		if err := c.JWKS.validate(); err != nil {
			faults = append(faults, err)
		}
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
	if c.JWKS.URL != "" {
		j.set = newKeySet(c.JWKS, c.Now)
	}
	claims := []jwt.ParserOption{
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(c.Leeway), jwt.WithTimeFunc(c.Now),
	}
	if c.Issuer != "" {
		claims = append(claims, jwt.WithIssuer(c.Issuer))
	}
	if c.Audience != "" {
		claims = append(claims, jwt.WithAudience(c.Audience))
	}
	j.parser = jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())
	j.validator = jwt.NewValidator(claims...)
	return j, nil
}

// Close ends what fetches the key set, if there is one. Tokens are judged by the
// keys that are there from then on.
func (j *JWT) Close() {
	if j.set != nil {
		j.set.end()
	}
}

// Authenticate verifies c.Token and reads the identity from it.
func (j *JWT) Authenticate(ctx context.Context, c Credentials) (*Identity, error) {
	if c.Token == "" {
		return nil, fmt.Errorf("%w: no token", ErrUnauthenticated)
	}
	claims, err := j.verify(ctx, c.Token)
	if err != nil {
		return nil, err
	}
	id, err := j.identity(claims)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	return id, nil
}

// verify returns the text of the claims of a token whose signature holds. Its
// error wraps ErrUnauthenticated unless keys are missing that might have verified
// the token.
func (j *JWT) verify(ctx context.Context, token string) ([]byte, error) {
	if strings.ContainsAny(token, "\r\n") { // which the decoder would pass over
		return nil, fmt.Errorf("%w: a token with line breaks", ErrUnauthenticated)
	}
	var claims sealed
	var missing error
	_, err := j.parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		var set jwt.VerificationKeySet
		id, err := keyID(t.Header)
		if err == nil {
			set.Keys, missing = j.candidates(ctx, t.Method.Alg(), id)
		}
		if err == nil && len(set.Keys) == 0 {
			err = errors.New("auth: no key for the token's alg and kid")
		}
		return set, err
	})
	switch {
	case err == nil:
		return claims.text, nil
	case missing != nil:
		return nil, missing
	}
	return nil, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
}

// candidates returns the keys that may verify a token of alg that names the key
// id, or none. With an error there may be others, which could not be had.
func (j *JWT) candidates(ctx context.Context, alg, id string) ([]jwt.VerificationKey, error) {
	keys := j.keys
	var err error
	public := alg == RS256 || alg == ES256 || alg == EdDSA
	if j.set != nil && public && (id == "" || !keys.names(id)) {
		var fetched keyring
		fetched, err = j.set.find(ctx, id)
		keys = slices.Concat(keys, fetched)
	}
	return keys.candidates(alg, id), err
}

// keyID is the kid of a token's header, empty where there is none.
func keyID(header map[string]any) (string, error) {
	// Extensions that must be understood (RFC 7515, 4.1.11): there are none here.
	if _, critical := header["crit"]; critical {
		return "", errors.New("auth: the token has critical extensions")
	}
	value, given := header["kid"]
	kid, ok := value.(string)
	if given && !ok {
		return "", errors.New("auth: the token's kid is no text")
	}
	return kid, nil
}

// identity reads the claims of a token whose signature holds.
func (j *JWT) identity(text []byte) (*Identity, error) {
	v, err := decodeStrict(text)
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("auth: the claims are no object")
	}
	claims := jwt.MapClaims(object)
	if err := checkTimes(claims); err != nil {
		return nil, err
	}
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

// checkTimes refuses instants that the library would turn into others: beyond 64 bits
// those of the far future become ones long past.
func checkTimes(claims jwt.MapClaims) error {
	for _, name := range []string{"exp", "nbf", "iat"} {
		n, ok := claims[name].(json.Number)
		if !ok {
			continue // what is no number is the library's to refuse
		}
		if s, err := n.Float64(); err != nil || s < 0 || s > maxExpires {
			return fmt.Errorf("auth: %s is out of range", name)
		}
	}
	return nil
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
	if len(name) < 1 || len(name) > maxTenant {
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
	if len(s) < 1 || len(s) > maxSubject {
		return errors.New("auth: a subject has 1 to 256 bytes")
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError) {
		return errors.New("auth: a subject is valid UTF-8")
	}
	return nil
}
