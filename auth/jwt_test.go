package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strings"
	"testing"
	"time"
)

var (
	secret = []byte("0123456789abcdef0123456789abcdef")
	other  = []byte("another secret of thirty-two bytes")
	now    = time.Unix(1_800_000_000, 0)
)

// forge makes a token by hand, so that tests can say what no library would.
func forge(header, claims string, newHash func() hash.Hash, key []byte) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	if newHash == nil {
		return text + "."
	}
	mac := hmac.New(newHash, key)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func hs256(header, claims string) string { return forge(header, claims, sha256.New, secret) }

func newJWT(t testing.TB, change func(*JWTConfig)) *JWT {
	t.Helper()
	c := JWTConfig{Keys: []Key{{Alg: HS256, Secret: secret}}, Leeway: 5 * time.Second, Now: func() time.Time { return now }}
	if change != nil {
		change(&c)
	}
	j, err := NewJWT(c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

const plain = `{"alg":"HS256","typ":"JWT"}`

// claims returns a good claim set with more members added; a member given twice is a test's own business.
func claims(more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"exp":%d,"sub":"alice","tenant":"acme"%s}`, now.Unix()+60, more)
}

func withExp(exp any) string { return fmt.Sprintf(`{"exp":%v,"sub":"alice","tenant":"acme"}`, exp) }

func withSub(sub string) string {
	return fmt.Sprintf(`{"exp":%d,"sub":%s,"tenant":"acme"}`, now.Unix()+60, sub)
}

func withTenant(tenant string) string {
	return fmt.Sprintf(`{"exp":%d,"sub":"alice","tenant":%s}`, now.Unix()+60, tenant)
}

func TestJWTAcceptsAndRefuses(t *testing.T) {
	good := hs256(plain, claims(""))
	strict := func(c *JWTConfig) { c.Issuer, c.Audience = "https://issuer", "pulse" }
	named := func(c *JWTConfig) {
		c.Keys = []Key{{Alg: HS256, ID: "k1", Secret: secret}, {Alg: HS256, ID: "k2", Secret: other}}
	}
	tests := []struct {
		rule   string
		token  string
		change func(*JWTConfig)
		ok     bool
	}{
		{"a good token", good, nil, true},
		{"no token", "", nil, false},
		{"no token at all", "hello", nil, false},
		{"two segments", good[:strings.LastIndex(good, ".")], nil, false},
		{"four segments", good + ".x", nil, false},
		{"a signature cut short", good[:len(good)-4], nil, false},
		{"a line break behind", good + "\n", nil, false},
		{"a line break in the signature", good[:len(good)-4] + "\r\n" + good[len(good)-4:], nil, false},
		{"another spelling of the signature's last bits", good[:len(good)-1] + string(good[len(good)-1]+1), nil, false},
		{"an empty signature", good[:strings.LastIndex(good, ".")+1], nil, false},
		{"another secret", forge(plain, claims(""), sha256.New, other), nil, false},
		{"an empty secret", forge(plain, claims(""), sha256.New, nil), nil, false},
		{"alg none", forge(`{"alg":"none"}`, claims(""), nil, nil), nil, false},
		{"alg none with the right signature", hs256(`{"alg":"none"}`, claims("")), nil, false},
		{"alg None", forge(`{"alg":"None"}`, claims(""), nil, nil), nil, false},
		{"no alg", hs256(`{}`, claims("")), nil, false},
		{"alg of the wrong type", hs256(`{"alg":256}`, claims("")), nil, false},
		{"alg in another case", hs256(`{"alg":"hs256"}`, claims("")), nil, false},
		{"alg HS512 with the same secret", forge(`{"alg":"HS512"}`, claims(""), sha512.New, secret), nil, false},
		{"alg RS256 signed as HS256", hs256(`{"alg":"RS256"}`, claims("")), nil, false},
		{"alg EdDSA signed as HS256", hs256(`{"alg":"EdDSA"}`, claims("")), nil, false},
		{"critical extensions", hs256(`{"alg":"HS256","crit":["exp"]}`, claims("")), nil, false},
		{"a header that is no object", hs256(`[]`, claims("")), nil, false},
		{"no keys", good, func(c *JWTConfig) { c.Keys = nil }, false},

		{"kid picks the key", hs256(`{"alg":"HS256","kid":"k1"}`, claims("")), named, true},
		{"kid of another key", hs256(`{"alg":"HS256","kid":"k2"}`, claims("")), named, false},
		{"kid of no key", hs256(`{"alg":"HS256","kid":"k3"}`, claims("")), named, false},
		{"kid of the wrong type", hs256(`{"alg":"HS256","kid":1}`, claims("")), named, false},
		{"kid null", hs256(`{"alg":"HS256","kid":null}`, claims("")), named, false},
		{"no kid: any key", forge(plain, claims(""), sha256.New, other), named, true},
		{"a key without kid verifies any", hs256(`{"alg":"HS256","kid":"k9"}`, claims("")), nil, true},

		{"no exp", hs256(plain, `{"sub":"alice","tenant":"acme"}`), nil, false},
		{"exp null", hs256(plain, withExp("null")), nil, false},
		{"exp as text", hs256(plain, withExp(`"1800000060"`)), nil, false},
		{"exp zero", hs256(plain, withExp(0)), nil, false},
		{"exp negative", hs256(plain, withExp(-1)), nil, false},
		{"exp beyond time", hs256(plain, withExp("1e300")), nil, false},
		{"exp beyond exact milliseconds", hs256(plain, withExp("9007199254741")), nil, false},
		{"exp in milliseconds would live for ever", hs256(plain, withExp(int64(maxExpires)+1)), nil, false},
		{"exp with a fraction", hs256(plain, withExp("1800000060.5")), nil, true},
		{"expired, within the leeway", hs256(plain, withExp(now.Unix()-4)), nil, true},
		{"expired, at the leeway's edge", hs256(plain, withExp(now.Unix()-5)), nil, false},
		{"expired without leeway", hs256(plain, withExp(now.Unix())), func(c *JWTConfig) { c.Leeway = 0 }, false},
		{"nbf within the leeway", hs256(plain, claims(fmt.Sprintf(`"nbf":%d`, now.Unix()+5))), nil, true},
		{"nbf beyond the leeway", hs256(plain, claims(fmt.Sprintf(`"nbf":%d`, now.Unix()+6))), nil, false},
		{"nbf beyond 64 bits", hs256(plain, claims(`"nbf":1e19`)), nil, false},
		{"nbf at the end of 64 bits", hs256(plain, claims(`"nbf":9223372036854775807`)), nil, false},
		{"nbf beyond every number", hs256(plain, claims(`"nbf":1e400`)), nil, false},
		{"nbf before 1970", hs256(plain, claims(`"nbf":-1`)), nil, false},
		{"nbf at the beginning of time", hs256(plain, claims(`"nbf":0`)), nil, true},
		{"iat beyond 64 bits", hs256(plain, claims(`"iat":1e300`)), nil, false},
		{"iat in the past", hs256(plain, claims(`"iat":1`)), nil, true},
		{"iat within the leeway", hs256(plain, claims(fmt.Sprintf(`"iat":%d`, now.Unix()+5))), nil, true},
		{"iat beyond the leeway", hs256(plain, claims(fmt.Sprintf(`"iat":%d`, now.Unix()+6))), nil, false},
		{"iat now, without leeway", hs256(plain, claims(fmt.Sprintf(`"iat":%d,"nbf":%d`, now.Unix(), now.Unix()))), func(c *JWTConfig) { c.Leeway = 0 }, true},
		{"iat of the wrong type", hs256(plain, claims(`"iat":"x"`)), nil, false},
		{"nbf of the wrong type", hs256(plain, claims(`"nbf":"x"`)), nil, false},

		{"sub missing", hs256(plain, `{"exp":1800000060,"tenant":"acme"}`), nil, false},
		{"sub a number", hs256(plain, withSub("1")), nil, false},
		{"sub empty", hs256(plain, withSub(`""`)), nil, false},
		{"sub of 256 bytes", hs256(plain, withSub(`"`+strings.Repeat("a", 256)+`"`)), nil, true},
		{"sub of 257 bytes", hs256(plain, withSub(`"`+strings.Repeat("a", 257)+`"`)), nil, false},
		{"sub in any script", hs256(plain, withSub(`"Zoë 名"`)), nil, true},
		{"sub with an unpaired surrogate", hs256(plain, withSub(`"a\ud800"`)), nil, false},
		{"sub with invalid UTF-8", hs256(plain, withSub("\"a\xff\"")), nil, false},

		{"tenant missing", hs256(plain, `{"exp":1800000060,"sub":"alice"}`), nil, false},
		{"tenant a list", hs256(plain, withTenant(`["acme"]`)), nil, false},
		{"tenant empty", hs256(plain, withTenant(`""`)), nil, false},
		{"tenant ..", hs256(plain, withTenant(`".."`)), nil, false},
		{"tenant ...", hs256(plain, withTenant(`"..."`)), nil, true},
		{"tenant with a slash", hs256(plain, withTenant(`"a/b"`)), nil, false},
		{"tenant with a colon", hs256(plain, withTenant(`"a:b"`)), nil, false},
		{"tenant with a line break", hs256(plain, withTenant(`"a\n"`)), nil, false},
		{"tenant in another alphabet", hs256(plain, withTenant(`"äcme"`)), nil, false},
		{"tenant of 64 bytes", hs256(plain, withTenant(`"`+strings.Repeat("t", 64)+`"`)), nil, true},
		{"tenant of 65 bytes", hs256(plain, withTenant(`"`+strings.Repeat("t", 65)+`"`)), nil, false},
		{"tenant in another case of the claim", hs256(plain, `{"exp":1800000060,"sub":"alice","Tenant":"acme"}`), nil, false},
		{"tenant twice", hs256(plain, claims(`"tenant":"evil"`)), nil, false},
		{"tenant twice, once escaped", hs256(plain, claims(`"\u0074enant":"evil"`)), nil, false},
		{"tenant in another claim", hs256(plain, claims(`"org":"evil"`)), func(c *JWTConfig) { c.TenantClaim = "org" }, true},
		{"tenant claim not there", good, func(c *JWTConfig) { c.TenantClaim = "org" }, false},

		{"jti of the wrong type", hs256(plain, claims(`"jti":1`)), nil, false},
		{"issuer and audience fit", hs256(plain, claims(`"iss":"https://issuer","aud":"pulse"`)), strict, true},
		{"one audience of several fits", hs256(plain, claims(`"iss":"https://issuer","aud":["x","pulse"]`)), strict, true},
		{"issuer missing", hs256(plain, claims(`"aud":"pulse"`)), strict, false},
		{"issuer of another", hs256(plain, claims(`"iss":"https://issuer/","aud":"pulse"`)), strict, false},
		{"audience missing", hs256(plain, claims(`"iss":"https://issuer"`)), strict, false},
		{"audience of another", hs256(plain, claims(`"iss":"https://issuer","aud":["x"]`)), strict, false},
		{"audience of the wrong type", hs256(plain, claims(`"iss":"https://issuer","aud":1`)), strict, false},
		{"issuer and audience not asked for", hs256(plain, claims(`"iss":"x","aud":"y"`)), nil, true},

		{"pulse claim malformed", hs256(plain, claims(`"pulse":{}`)), nil, false},
		{"pulse claim null", hs256(plain, claims(`"pulse":null`)), nil, false},
		{"claims that are no object", hs256(plain, `["exp"]`), nil, false},
		{"claims that are null", hs256(plain, `null`), nil, false},
		{"claims that are no JSON", hs256(plain, `{"exp":`), nil, false},
		{"claims with something left over", hs256(plain, claims("")+"{}"), nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			id, err := newJWT(t, tt.change).Authenticate(context.Background(), Credentials{Token: tt.token, Source: Hello})
			switch {
			case tt.ok && err != nil:
				t.Fatal(err)
			case !tt.ok && err == nil:
				t.Fatalf("accepted as %+v", id)
			case !tt.ok && !errors.Is(err, ErrUnauthenticated):
				t.Errorf("the error does not say that the credentials are at fault: %v", err)
			case !tt.ok && len(tt.token) > 20 && strings.Contains(err.Error(), tt.token[:20]):
				t.Errorf("the error repeats the token: %v", err)
			}
		})
	}
}

func TestJWTGivesTheIdentity(t *testing.T) {
	key := Key{Alg: HS256, ID: "k1", Secret: secret}
	token, err := key.Sign(Claims{
		Tenant: "acme", TenantClaim: "org", Subject: "alice", Issuer: "i", Audience: "a", TokenID: "t1",
		Expires: now.Add(time.Minute), Grants: []Grant{{Rooms: "chat:*", Allow: []Right{Join, Presence}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	j := newJWT(t, func(c *JWTConfig) {
		c.Keys, c.TenantClaim, c.Issuer, c.Audience = []Key{key}, "org", "i", "a"
	})
	id, err := j.Authenticate(context.Background(), Credentials{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if id.Tenant != "acme" || id.Subject != "alice" || id.TokenID != "t1" || id.Leeway != 5*time.Second || !id.Expires.Equal(now.Add(time.Minute)) {
		t.Errorf("identity %+v", id)
	}
	if !id.Grants.Allows(Presence, "chat:1") || id.Grants.Allows(Publish, "chat:1") || id.Grants.Allows(Join, "lobby") {
		t.Errorf("grants %+v", id.Grants)
	}
}

func TestTokenWithoutGrantsHasNoRights(t *testing.T) {
	id, err := newJWT(t, nil).Authenticate(context.Background(), Credentials{Token: hs256(plain, claims(""))})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Rights() {
		if id.Grants.Allows(r, "chat") {
			t.Errorf("%v is granted", r)
		}
	}
}

func TestNewJWTReportsEveryFault(t *testing.T) {
	_, err := NewJWT(JWTConfig{Leeway: -1, Keys: []Key{
		{Alg: HS256, ID: "a", Secret: secret}, {Alg: HS256, ID: "a", Secret: other},
		{Alg: HS256, ID: "short", Secret: secret[:31]}, {Alg: "none", ID: "n", Secret: secret},
	}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`two keys with kid "a"`, `key "short"`, `"none" is not supported`, "negative leeway"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestSignRefusesWhatWouldBeRefused(t *testing.T) {
	good := Claims{Tenant: "acme", Subject: "alice", Expires: now}
	key := Key{Alg: HS256, Secret: secret}
	tests := []struct {
		rule   string
		key    Key
		change func(*Claims)
	}{
		{"a short key", Key{Alg: HS256, Secret: secret[1:]}, func(*Claims) {}},
		{"an unknown algorithm", Key{Alg: "HS1", Secret: secret}, func(*Claims) {}},
		{"a tenant outside the grammar", key, func(c *Claims) { c.Tenant = "a b" }},
		{"no subject", key, func(c *Claims) { c.Subject = "" }},
		{"no end", key, func(c *Claims) { c.Expires = time.Time{} }},
		{"a pattern that is none", key, func(c *Claims) { c.Grants = []Grant{{Rooms: "a*b"}} }},
		{"a right that is none", key, func(c *Claims) { c.Grants = []Grant{{Rooms: "a", Allow: []Right{99}}} }},
		{"a tenant claim with another meaning", key, func(c *Claims) { c.TenantClaim = "sub" }},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			c := good
			tt.change(&c)
			if token, err := tt.key.Sign(c); err == nil {
				t.Errorf("signed %s", token)
			}
		})
	}
	if _, err := key.Sign(good); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

func TestRightWords(t *testing.T) {
	for _, r := range Rights() {
		if got, err := ParseRight(r.String()); err != nil || got != r {
			t.Errorf("ParseRight(%q) = %v, %v", r, got, err)
		}
	}
	if len(Rights()) != int(rights) {
		t.Error("Rights does not list all")
	}
	if _, err := ParseRight("Join"); err == nil {
		t.Error("Join is no word")
	}
}

// FuzzJWT: whatever a well-signed token says, an identity keeps the grammar and
// has an end.
func FuzzJWT(f *testing.F) {
	f.Add(plain, claims(`"pulse":[{"rooms":"*","allow":["join"]}]`))
	f.Add(`{"alg":"HS256","kid":"x"}`, withExp("1e300"))
	f.Add(`null`, `null`)
	j := newJWT(f, nil)
	f.Fuzz(func(t *testing.T, header, claims string) {
		id, err := j.Authenticate(context.Background(), Credentials{Token: hs256(header, claims)})
		if err != nil {
			return
		}
		if checkTenant(id.Tenant) != nil || checkSubject(id.Subject) != nil || !now.Before(id.Expires.Add(5*time.Second)) {
			t.Errorf("%+v", id)
		}
	})
}
