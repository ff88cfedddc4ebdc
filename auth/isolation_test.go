package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// B102: names are compared byte by byte, and none is a pattern or reaches into
// another tenant (StackExchange/StackExchange.Redis#112).
func TestB102_NamesAreNoPatterns(t *testing.T) {
	j := newJWT(t, nil)
	for _, name := range []string{"*", "?", "[ab]", "a*", "b:c", "a:b", "..", `\`, "a\x00", "a/b", "a|b", "{a}", "a\u200b", "é", "e\u0301", "ａ"} {
		quoted := string(must(json.Marshal(name)))
		if err := authenticate(j, hs256(plain, withTenant(quoted))); err == nil {
			t.Errorf("tenant %q", name)
		}
		// As a subject it is a name like any other, and its own only.
		id, err := j.Authenticate(context.Background(), Credentials{Token: hs256(plain, withSub(quoted))})
		if err != nil || id.Subject != name || id.Tenant != "acme" {
			t.Errorf("subject %q: %+v, %v", name, id, err)
		}
	}
	for _, rooms := range []string{"?", "[ab]", "a*b", "*a", "**", `\*`, "a\x00*", "{a}", "é"} {
		if g, err := NewGrants(Grant{Rooms: rooms, Allow: []Right{Join}}); err == nil {
			t.Errorf("rooms %q: %+v", rooms, g)
		}
	}
	g := mustGrants(t, `[{"rooms":"b:c","allow":["join"]},{"rooms":"x.y","allow":["join"]}]`)
	for room, want := range map[string]bool{
		"b:c": true, "x.y": true,
		"b": false, "c": false, "b:": false, "b:c:d": false, "a:b:c": false, "xzy": false, "*": false, "": false, "b:c\x00": false,
	} {
		if g.Allows(Join, room) != want {
			t.Errorf("%q: %v", room, !want)
		}
	}
}

// B104: nothing is allowed that no grant names, whatever else the token says
// (dunglas/mercure#372, #579, #691).
func TestB104_DenyByDefault(t *testing.T) {
	one := func(rooms string) string { return `"pulse":[{"rooms":"` + rooms + `","allow":["join"]}]` }
	for name, claim := range map[string]string{
		"no grant":                       `"scope":"admin join publish","roles":["admin"],"admin":true,"rooms":"*","allow":["join"]`,
		"no grant, empty":                `"pulse":[]`,
		"another room":                   one("chat:other"),
		"a longer name":                  one("chat:staff2"),
		"a shorter name":                 one("chat"),
		"the room's kind and colon":      one("chat:"),
		"a prefix that does not reach":   one("chat:staff:*"),
		"another case":                   one("CHAT:STAFF"),
		"a grant in another claim":       `"Pulse":[{"rooms":"*","allow":["join"]}]`,
		"a word that is no right":        `"pulse":[{"rooms":"*","allow":["*","all","admin","subscribe"]}]`,
		"another right":                  `"pulse":[{"rooms":"*","allow":["publish","command","presence","history"]}]`,
		"a private flag of its own mind": `"pulse":[{"rooms":"chat:staff","allow":[],"private":false,"public":true}]`,
	} {
		id, err := newJWT(t, nil).Authenticate(context.Background(), Credentials{Token: hs256(plain, claims(claim))})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if id.Grants.Allows(Join, "chat:staff") {
			t.Errorf("%s: it may join", name)
		}
	}
}

// B105: no part of a token is in an error (aspnet/SignalR#2526,
// duplicati/duplicati#5550).
func TestB105_ErrorsRepeatNothingOfAToken(t *testing.T) {
	const mark = "S3CR3T-MARK"
	j := newJWT(t, func(c *JWTConfig) {
		c.Keys = append(keysOf(true), Key{Alg: HS256, Secret: secret})
		c.Issuer, c.Audience = "https://issuer", "pulse"
	})
	good := `"iss":"https://issuer","aud":"pulse"`
	tokens := []string{
		mark, mark + "." + mark + "." + mark, mark + mark,
		hs256(`{"alg":"`+mark+`"}`, claims(good)),
		hs256(`{"alg":"HS256","kid":"`+mark+`","crit":["`+mark+`"]}`, claims(good)),
		hs256(`{"alg":"HS256","kid":["`+mark+`"]}`, claims(good)),
		pairs()["other "+RS256].token(`{"alg":"RS256","kid":"`+mark+`"}`, claims(good)),
		forge(`{"alg":"HS256","kid":"`+mark+`"}`, claims(good), sha256.New, other),
		hs256(`{"alg":"HS256"`+mark, claims(good)),
	}
	for _, claim := range []string{
		`"iss":"%s","aud":"pulse"`, `"iss":"https://issuer","aud":"%s"`, good + `,"nbf":"%s"`, good + `,"iat":"%s"`, good + `,"exp":"%s"`,
		good + `,"tenant":"%s"`, good + `,"jti":["%s"]`, good + `,"%[1]s":1,"%[1]s":2`, good + `,"pulse":"%s"`,
		good + `,"pulse":[{"rooms":"%s!","allow":["join"]}]`, good + `,"pulse":[{"rooms":"%s*x","allow":[]}]`, good + `,"x":%s`,
	} {
		tokens = append(tokens, hs256(plain, claims(fmt.Sprintf(claim, mark))))
	}
	tokens = append(tokens, hs256(plain, withTenant(`"`+mark+`/"`)), hs256(plain, withSub(`["`+mark+`"]`)))
	for i, token := range tokens {
		err := authenticate(j, token)
		if err == nil {
			t.Errorf("token %d is good", i)
			continue
		}
		if strings.Contains(err.Error(), mark) {
			t.Errorf("token %d: %v", i, err)
		}
		for part := range strings.SplitSeq(token, ".") {
			if len(part) >= 8 && strings.Contains(err.Error(), part[:8]) {
				t.Errorf("token %d: %v", i, err)
			}
		}
	}
}
