package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// Section 3: ids, and the fields of requests.
func TestIDs(t *testing.T) {
	var rules []rule
	for _, r := range []struct{ about, frame string }{
		{"join", `"t":"join","room":"chat:2"`},
		{"leave", `"t":"leave","room":"chat:1"`},
		{"command", `"t":"command","room":"chat:1","name":"go"`},
		{"history", `"t":"history","room":"chat:1"`},
		{"presence", `"t":"presence","room":"chat:1"`},
		{"token", `"t":"token","token":"x"`},
	} {
		rules = append(rules, rule{"missing in " + r.about, fmt.Sprintf(`
			alice hello chat:1
			alice > {%s}
			alice < {"t":"error","code":"bad_request","re":%q,"message":"*","retry_after_ms":null,"id":null}
			alice quiet`, r.frame, r.about)})
	}
	for _, id := range []string{`0`, `-1`, `-9223372036854775808`, `1.5`, `9007199254740992`, `18446744073709551615`, `1e300`, `"1"`, `true`, `[1]`, `{}`} {
		rules = append(rules, rule{"of " + id, fmt.Sprintf(`
			alice hello chat:1
			alice > {"t":"publish","id":%s,"room":"chat:1","event":"message","data":1}
			alice < {"t":"error","code":"bad_request","re":"publish","room":"chat:1"}
			alice > {"t":"ping","id":%s}
			alice < {"t":"error","code":"bad_request","re":"ping"}
			alice > {"t":"dance","id":%s}
			alice quiet`, id, id, id)})
	}
	for _, id := range []string{`1`, `9007199254740991`} {
		rules = append(rules, rule{"of " + id, fmt.Sprintf(`
			alice hello chat:1
			alice > {"t":"publish","id":%s,"room":"chat:1","event":"message","data":1}
			alice <~ {"t":"reply","id":%s,"ok":{"outcome":"accepted"}}`, id, id)})
	}
	rules = append(rules, []rule{
		{"an integral float counts", `
			alice hello
			alice > {"t":"ping","id":7.0}
			alice < {"t":"pong","id":7}
			alice > {"t":"ping","id":9007199254740991.0}
			alice < {"t":"pong","id":9007199254740991}
			alice >json {"t":"ping","id":70e-1}
			alice >msgpack 82 a174 a470696e67 a26964 ca40e00000
			alice < {"t":"pong","id":7}`},
		{"equal ones in flight are each answered", `
			alice hello chat:1
			alice > {"t":"publish","id":5,"room":"chat:1","event":"typing","data":1}
			alice > {"t":"publish","id":5,"room":"chat:1","event":"typing","data":2}
			alice > {"t":"leave","id":5,"room":"chat:1"}
			alice <~ {"t":"reply","id":5,"ok":{"outcome":"accepted"}}
			alice <~ {"t":"reply","id":5,"ok":{"outcome":"accepted"}}
			alice <~ {"t":"reply","id":5,"ok":{"room":"chat:1"}}`},
		{"publish ack ping and pong go without", `
			alice hello chat:1
			alice > {"t":"publish","room":"chat:1","event":"message","data":1}
			alice < {"t":"event","epoch":"$e"}
			alice > {"t":"ack","room":"chat:1","epoch":"$e","offset":1}
			alice > {"t":"pong"}
			alice > {"t":"pong","id":7}
			alice > {"t":"ping"}
			alice < {"t":"pong","id":null}
			alice quiet`},
		{"a publish without one that is refused gets an error frame", `
			alice hello
			alice > {"t":"publish","room":"chat:1","event":"message","data":1}
			alice < {"t":"error","code":"not_joined","message":"*","re":"publish","room":"chat:1"}`},
	}...)
	conform(t, serve(t, nil), rules)
}

// A field of the wrong type, or outside its bounds, in any frame but hello.
func TestFieldsOfRequests(t *testing.T) {
	var rules []rule
	for name, frame := range map[string]string{
		"join without a room":               `"t":"join"`,
		"join whose room is a number":       `"t":"join","room":5`,
		"join whose room is null":           `"t":"join","room":null`,
		"join whose echo is text":           `"t":"join","room":"chat:1","echo":"no"`,
		"join whose presence is a number":   `"t":"join","room":"chat:1","presence":1`,
		"join with an epoch alone":          `"t":"join","room":"chat:1","epoch":"e"`,
		"join with an offset alone":         `"t":"join","room":"chat:1","offset":1`,
		"join whose offset is null":         `"t":"join","room":"chat:1","epoch":"e","offset":null`,
		"join whose offset is text":         `"t":"join","room":"chat:1","epoch":"e","offset":"1"`,
		"join whose offset is a fraction":   `"t":"join","room":"chat:1","epoch":"e","offset":1.5`,
		"join whose offset is negative":     `"t":"join","room":"chat:1","epoch":"e","offset":-1`,
		"join whose offset is 2^53":         `"t":"join","room":"chat:1","epoch":"e","offset":9007199254740992`,
		"join whose epoch is a number":      `"t":"join","room":"chat:1","epoch":1,"offset":1`,
		"join whose epoch is of 17 bytes":   `"t":"join","room":"chat:1","epoch":"12345678901234567","offset":1`,
		"join whose data is 49 deep":        `"t":"join","room":"chat:1","data":` + deepJSON(49),
		"leave without a room":              `"t":"leave"`,
		"leave whose room is outside":       `"t":"leave","room":"a b"`,
		"publish without an event":          `"t":"publish","room":"chat:1","data":1`,
		"publish without data":              `"t":"publish","room":"chat:1","event":"message"`,
		"publish whose event is a list":     `"t":"publish","room":"chat:1","event":[],"data":1`,
		"publish whose ttl is negative":     `"t":"publish","room":"chat:1","event":"message","data":1,"ttl_ms":-1`,
		"publish whose ttl is a fraction":   `"t":"publish","room":"chat:1","event":"message","data":1,"ttl_ms":0.5`,
		"publish whose ttl is text":         `"t":"publish","room":"chat:1","event":"message","data":1,"ttl_ms":"5"`,
		"publish whose dedup_key is empty":  `"t":"publish","room":"chat:1","event":"message","data":1,"dedup_key":""`,
		"publish whose dedup_key is long":   `"t":"publish","room":"chat:1","event":"message","data":1,"dedup_key":"` + strings.Repeat("d", 257) + `"`,
		"publish whose dedup_key is a list": `"t":"publish","room":"chat:1","event":"message","data":1,"dedup_key":[]`,
		"command without a name":            `"t":"command","room":"chat:1"`,
		"command whose name is outside":     `"t":"command","room":"chat:1","name":"a:b"`,
		"command whose deadline is wrong":   `"t":"command","room":"chat:1","name":"a","deadline_ms":-1`,
		"history whose limit is 0":          `"t":"history","room":"chat:1","limit":0`,
		"history with half a position":      `"t":"history","room":"chat:1","offset":1`,
		"presence whose limit is negative":  `"t":"presence","room":"chat:1","limit":-5`,
		"token without a token":             `"t":"token"`,
		"token that is a number":            `"t":"token","token":1`,
	} {
		rules = append(rules, rule{name, `
			alice hello chat:1
			alice > {"id":9,` + frame + `}
			alice < {"t":"reply","id":9,"ok":null,"err":{"code":"bad_request","message":"*","retry_after_ms":null}}
			alice quiet`})
	}
	rules = append(rules,
		rule{"ack without a position", `
			alice hello chat:1
			alice > {"t":"ack","room":"chat:1"}
			alice < {"t":"error","code":"bad_request","re":"ack","room":"chat:1"}`},
		rule{"ack of another epoch is ignored", `
			alice hello chat:1
			alice > {"t":"ack","room":"chat:1","epoch":"other","offset":9}
			alice quiet`},
		rule{"an integral float is an integer in every field", `
			alice hello
			alice > {"t":"join","id":1,"room":"chat:1","epoch":"e","offset":0.0}
			alice < {"t":"reply","id":1,"ok":{"recovered":false,"reset":"epoch"}}
			alice > {"t":"publish","id":2,"room":"chat:1","event":"message","data":1,"ttl_ms":60000.0}
			alice <~ {"t":"reply","id":2,"ok":{"outcome":"accepted"}}`},
		rule{"a message never repeats input", `
			alice hello
			alice > {"t":"join","id":1,"room":"<script>"}
			alice < {"t":"reply","id":1,"err":{"code":"bad_request","message":"room is outside the grammar"}}`},
	)
	conform(t, serve(t, nil), rules)
}

// Section 2: grammar, right, existence, membership, limits.
func TestRefusalsInOrder(t *testing.T) {
	const nothing = `[{"rooms":"other:*","allow":["join","publish","command","presence","history"]}]`
	const joinOnly = `[{"rooms":"*","allow":["join"]}]`
	conform(t, serve(t, nil), []rule{
		{"grammar before right", `
			alice grants ` + nothing + `
			alice hello
			alice > {"t":"join","id":1,"room":"a b"}
			alice < {"t":"reply","id":1,"err":{"code":"bad_request"}}
			alice > {"t":"publish","id":2,"room":"chat:1","event":"a b","data":1}
			alice < {"t":"reply","id":2,"err":{"code":"bad_request"}}
			alice > {"t":"publish","id":3,"room":"chat:1","event":"message","data":1,"ttl_ms":-1}
			alice < {"t":"reply","id":3,"err":{"code":"bad_request"}}`},
		{"right before existence", `
			alice grants ` + nothing + `
			alice hello
			alice > {"t":"join","id":1,"room":"nosuch:1"}
			alice < {"t":"reply","id":1,"err":{"code":"forbidden"}}
			alice > {"t":"publish","id":2,"room":"nosuch:1","event":"message","data":1}
			alice < {"t":"reply","id":2,"err":{"code":"forbidden"}}
			alice > {"t":"publish","id":3,"room":"chat:1","event":"nosuch","data":1}
			alice < {"t":"reply","id":3,"err":{"code":"forbidden"}}
			alice > {"t":"command","id":4,"room":"nosuch:1","name":"go"}
			alice < {"t":"reply","id":4,"err":{"code":"forbidden"}}`},
		{"a name without a grant is forbidden whether it exists or not", `
			alice grants ` + nothing + `
			alice hello chat:1 nosuch:1
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			alice < {"t":"reply","id":1,"err":{"code":"forbidden"}}`},
		{"replay needs the right to join and no other", `
			bob hello chat:1
			bob > {"t":"publish","room":"chat:1","event":"message","data":1}
			bob < {"t":"event","epoch":"$e"}
			eve grants [{"rooms":"chat:*","allow":["publish","history","presence","command"]}]
			eve hello
			eve > {"t":"join","id":1,"room":"chat:1","epoch":"$e","offset":0}
			eve < {"t":"reply","id":1,"err":{"code":"forbidden"}}
			eve quiet
			alice grants ` + joinOnly + `
			alice hello {"room":"chat:1","epoch":"$e","offset":0}
			alice < {"t":"event","offset":1}`},
		{"publishing needs its own right", `
			alice grants ` + joinOnly + `
			alice hello chat:1
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			alice < {"t":"reply","id":1,"err":{"code":"forbidden"}}
			alice quiet`},
		{"a kind that only the server publishes to is forbidden before its events exist", `
			alice hello board:1
			alice > {"t":"publish","id":1,"room":"board:1","event":"message","data":1}
			alice < {"t":"reply","id":1,"err":{"code":"forbidden"}}
			alice > {"t":"publish","id":2,"room":"board:2","event":"nosuch","data":1}
			alice < {"t":"reply","id":2,"err":{"code":"forbidden"}}`},
		{"presence in a join needs its right and a kind with presence", `
			alice grants ` + joinOnly + `
			alice hello
			alice > {"t":"join","id":1,"room":"chat:1","presence":true}
			alice < {"t":"reply","id":1,"err":{"code":"forbidden"}}
			bob hello
			bob > {"t":"join","id":1,"room":"chat:1","presence":true}
			bob < {"t":"reply","id":1,"err":{"code":"unsupported"}}`},
		{"existence before membership", `
			alice hello
			alice > {"t":"publish","id":1,"room":"nosuch:1","event":"message","data":1}
			alice < {"t":"reply","id":1,"err":{"code":"not_found"}}
			alice > {"t":"publish","id":2,"room":"chat:1","event":"nosuch","data":1}
			alice < {"t":"reply","id":2,"err":{"code":"not_found"}}
			alice > {"t":"command","id":3,"room":"chat:1","name":"nosuch"}
			alice < {"t":"reply","id":3,"err":{"code":"not_found"}}
			alice > {"t":"command","id":4,"name":"nosuch"}
			alice < {"t":"reply","id":4,"err":{"code":"not_found"}}`},
		{"membership before limits", `
			alice hello
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1,"ttl_ms":0}
			alice < {"t":"reply","id":1,"err":{"code":"not_joined"}}`},
		{"limits at the end", `
			alice hello chat:1
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1,"ttl_ms":0}
			alice < {"t":"reply","id":1,"err":{"code":"expired","retry_after_ms":null}}
			alice quiet`},
		{"a kind for those with the grant asks for no membership", `
			bob hello wire:1
			alice hello
			alice > {"t":"publish","id":1,"room":"wire:1","event":"message","data":1}
			alice < {"t":"reply","id":1,"ok":{"outcome":"accepted","epoch":"*","offset":1,"eid":"*"}}
			bob < {"t":"event","from":"alice","offset":1}`},
		{"a handler refuses without telling its secrets", `
			alice hello tally:1
			alice > {"t":"publish","id":1,"room":"tally:1","event":"n","data":-1}
			alice < {"t":"reply","id":1,"err":{"code":"forbidden","message":"*","data":null}}
			alice > {"t":"publish","id":2,"room":"tally:1","event":"n","data":13}
			alice < {"t":"reply","id":2,"err":{"code":"internal","retry_after_ms":null}}
			alice > {"t":"publish","id":3,"room":"tally:1","event":"n","data":5}
			alice <~ {"t":"reply","id":3,"ok":{"outcome":"accepted","offset":1}}`},
	})
}
