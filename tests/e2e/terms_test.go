package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// Section 1: names, tenants, positions.
func TestTerms(t *testing.T) {
	conform(t, serve(t, nil), append([]rule{
		{"the tenant comes from the credentials and never from a frame", `
			alice > {"t":"hello","token":"$TENANT/alice","tenant":"other","subject":"eve"}
			alice < {"t":"welcome","tenant":"*","subject":"alice"}
			alice > {"t":"join","id":1,"room":"chat:1","tenant":"other"}
			alice < {"t":"reply","id":1,"ok":{"room":"chat:1"}}
			bob hello chat:1
			alice > {"t":"publish","room":"chat:1","tenant":"other","event":"message","data":1}
			bob < {"t":"event","from":"alice"}`},
		{"a subject is of at most 256 bytes", `
			alice > {"t":"hello","token":"acme/` + strings.Repeat("é", 128) + `"}
			alice < {"t":"welcome","subject":"` + strings.Repeat("é", 128) + `"}`},
		{"buffered events take one offset after the other and transient ones none", `
			alice hello chat:1
			alice > {"t":"publish","room":"chat:1","event":"message","data":1}
			alice < {"t":"event","event":"message","epoch":"$e","offset":1,"eid":"*","ts":"*"}
			alice > {"t":"publish","room":"chat:1","event":"typing","data":1}
			alice < {"t":"event","event":"typing","epoch":null,"offset":null,"eid":"*","ts":"*"}
			alice > {"t":"publish","room":"chat:1","event":"note","data":1}
			alice < {"t":"event","event":"note","epoch":null,"offset":null}
			alice > {"t":"publish","room":"chat:1","event":"message","data":2}
			alice < {"t":"event","event":"message","epoch":"$e","offset":2}`},
		{"rooms of one kind are apart", `
			alice hello chat chat:1 chat:2
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			alice <~ {"t":"event","room":"chat:1","offset":1}
			alice <~ {"t":"reply","id":1}
			alice > {"t":"publish","id":2,"room":"chat","event":"message","data":1}
			alice <~ {"t":"event","room":"chat","offset":1}
			alice <~ {"t":"reply","id":2}
			alice quiet`},
		{"tenants have rooms of one name apart", `
			alice > {"t":"hello","token":"$TENANT/alice","rooms":[{"room":"chat:1"}]}
			alice < {"t":"welcome"}
			bob > {"t":"hello","token":"$TENANT-2/bob","rooms":[{"room":"chat:1"}]}
			bob < {"t":"welcome"}
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			alice <~ {"t":"reply","id":1,"ok":{"outcome":"accepted"}}
			bob quiet`},
	}, namesOf()...))
}

// namesOf are rules of one name each.
func namesOf() (rules []rule) {
	k32, long := strings.Repeat("k", 32), strings.Repeat("r", 123)
	for name, fits := range map[string]bool{
		"chat": true, "chat:1": true, "chat:A-z_9.~:x": true, "chat::": true, "chat:" + long: true,
		"": false, ":": false, "chat:": false, ":1": false, ".": false, "..": false, "chat/1": false, "chat 1": false,
		"chät": false, "a~b": false, k32: true, k32 + "k": false, k32 + "k:1": false, "chat:" + long + "r": false, "*": false,
	} {
		answer := `"err":{"code":"bad_request"}`
		switch {
		case strings.HasPrefix(name, "chat") && fits:
			answer = `"ok":{"room":` + fmt.Sprintf("%q", name) + `}`
		case fits:
			answer = `"err":{"code":"not_found"}`
		}
		rules = append(rules, rule{fmt.Sprintf("the name of a room %.20q of %d", name, len(name)), fmt.Sprintf(`
			alice hello
			alice > {"t":"join","id":1,"room":%q}
			alice < {"t":"reply","id":1,%s}`, name, answer)})
	}
	for name, fits := range map[string]bool{
		"message": true, "M-e_s.9": true, strings.Repeat("e", 64): true,
		"": false, "a b": false, "a:b": false, "a~b": false, "é": false, strings.Repeat("e", 65): false,
	} {
		code := "not_found"
		if !fits {
			code = "bad_request"
		}
		answer := fmt.Sprintf(`"err":{"code":%q}`, code)
		if name == "message" {
			answer = `"ok":{"outcome":"accepted"}`
		}
		rules = append(rules, rule{fmt.Sprintf("the name of an event %.20q of %d", name, len(name)), fmt.Sprintf(`
			alice hello chat:1
			alice > {"t":"publish","id":1,"room":"chat:1","event":%q,"data":1}
			alice <~ {"t":"reply","id":1,%s}`, name, answer)})
	}
	return rules
}
