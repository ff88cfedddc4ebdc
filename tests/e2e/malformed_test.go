package e2e

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// ping is where a malformed frame carries its fault: in a field that nobody knows,
// so that only the frame as a whole can be at fault.
func malformedInside(json, msgpack string) string {
	return `
		alice hello chat:1
		alice >json {"t":"publish","room":"chat:1","event":"message","data":1,"x":` + json + `}
		alice >msgpack ` + packed(map[string]any{}, msgpack) + `
		alice closed 4400`
}

// packed is a publish to chat:1 in hex, with the field x holding what hex says.
func packed(more map[string]any, x string) string {
	b := []byte{0x85}
	for _, pair := range [][2]any{{"t", "publish"}, {"room", "chat:1"}, {"event", "message"}, {"data", 1}} {
		b = pack(pack(b, pair[0]), pair[1])
	}
	return hex.EncodeToString(pack(b, "x")) + strings.ReplaceAll(x, " ", "")
}

func deepJSON(n int) string    { return strings.Repeat("[", n) + strings.Repeat("]", n) }
func deepMsgpack(n int) string { return strings.Repeat("91", n-1) + "90" }

// Section 3, malformed messages: closed with 4400, and nothing of them takes effect.
func TestMalformedIsClosed4400(t *testing.T) {
	conform(t, serve(t, nil), []rule{
		{"no object", `
			alice hello
			alice >json [1]
			alice >msgpack 91 01
			alice closed 4400`},
		{"nothing at all", `
			alice hello
			alice >json
			alice >msgpack
			alice closed 4400`},
		{"t is missing", `
			alice hello
			alice > {"id":1}
			alice closed 4400`},
		{"t is no text", `
			alice hello
			alice > {"t":5,"id":1}
			alice closed 4400`},
		{"t is null", `
			alice hello
			alice > {"t":null,"id":1}
			alice closed 4400`},
		{"a key is repeated", `
			alice hello
			alice >json {"t":"ping","id":1,"id":1}
			alice >msgpack 83 a174 a470696e67 a26964 01 a26964 01
			alice closed 4400`},
		{"a key is repeated within data", `
			alice hello chat:1
			alice >json {"t":"publish","id":1,"room":"chat:1","event":"message","data":[{"a":{"b":1,"b":2}}]}
			alice >msgpack 85 a174 a77075626c697368 a26964 01 a4726f6f6d a6636861743a31 a56576656e74 a76d657373616765 a464617461 82 a162 01 a162 02
			alice closed 4400`},
		{"a key is repeated after unescaping", `
			alice hello
			alice >json {"t":"ping","\u0069d":1,"id":1}
			alice >msgpack 83 a174 a470696e67 a26964 01 d9026964 01
			alice closed 4400`},
		{"a key is repeated where nobody looks", malformedInside(`{"a":1,"a":1}`, `82 a161 01 a161 01`)},
		{"invalid UTF-8 or an unpaired surrogate", malformedInside(`"\ud800"`, `a2 c328`)},
		{"an unpaired surrogate of the second half in a key", malformedInside(`{"\udc00":1}`, `81 a1 ff 01`)},
		{"nesting of 65", malformedInside(deepJSON(64), deepMsgpack(64))},
		{"a declared length that the input does not have", malformedInside(`"abc`, `da ffff 6162`)},
		{"bytes left over", `
			alice hello
			alice >json {"t":"ping","id":1} x
			alice >msgpack 82 a174 a470696e67 a26964 01 c0
			alice closed 4400`},
		{"two frames in one message", `
			alice hello
			alice >json {"t":"ping","id":1}{"t":"ping","id":2}
			alice >msgpack 82 a174 a470696e67 a26964 01 82 a174 a470696e67 a26964 02
			alice closed 4400`},
		{"a message of the other kind", `
			alice hello
			alice >other {"t":"ping","id":1}
			alice closed 4400`},
		{"a hello of the other kind", `
			alice >other {"t":"hello","token":"acme/alice"}
			alice closed 4400`},
		{"a first frame that is not hello", `
			alice > {"t":"ping","id":1}
			alice closed 4400`},
		{"a first frame that nobody knows", `
			alice > {"t":"greetings","id":1}
			alice closed 4400`},
		{"a hello with a token that is no text", `
			alice > {"t":"hello","token":5}
			alice closed 4400`},
		{"a hello with rooms that are no list", `
			alice > {"t":"hello","token":"acme/alice","rooms":{}}
			alice closed 4400`},
		{"a hello with a room that is no object", `
			alice > {"t":"hello","token":"acme/alice","rooms":["chat:1"]}
			alice closed 4400`},
		{"a hello with an entry without a room", `
			alice > {"t":"hello","token":"acme/alice","rooms":[{"room":"chat:1"},{"echo":true}]}
			alice closed 4400`},
		{"a hello with a room that is no text", `
			alice > {"t":"hello","token":"acme/alice","rooms":[{"room":7}]}
			alice closed 4400`},
		{"a hello with an offset that is no integer", `
			alice > {"t":"hello","token":"acme/alice","rooms":[{"room":"chat:1","epoch":"e","offset":"1"}]}
			alice closed 4400`},
		{"a hello with accept that is no list of text", `
			alice > {"t":"hello","token":"acme/alice","accept":[1]}
			alice closed 4400`},
		{"a hello with a client of 129 bytes", `
			alice > {"t":"hello","token":"acme/alice","client":"` + strings.Repeat("c", 129) + `"}
			alice closed 4400`},
		{"a second hello with a field of the wrong type", `
			alice hello
			alice > {"t":"hello","token":5}
			alice closed 4400`},
		{"a key that is no text outside data", `
			alice hello
			alice >json {"t":"ping",1:2}
			alice >msgpack 82 a174 a470696e67 01 02
			alice closed 4400`},
		{"nothing of a malformed message takes effect", `
			bob hello chat:1
			alice hello chat:1
			alice >json {"t":"publish","room":"chat:1","event":"message","data":1} x
			alice >msgpack 84 a174 a77075626c697368 a4726f6f6d a6636861743a31 a56576656e74 a76d657373616765 a464617461 01 00
			alice closed 4400
			bob quiet`},
	})
}

// Section 3, beside what is malformed: what a node must put up with.
func TestWellFormed(t *testing.T) {
	nested := fmt.Sprintf(`
		alice hello
		alice >json {"t":"ping","id":1,"x":%s}
		alice >msgpack 83 a174 a470696e67 a26964 01 a178 %s
		alice < {"t":"pong","id":1}`, deepJSON(63), deepMsgpack(63))
	conform(t, serve(t, nil), []rule{
		{"unknown fields are ignored", `
			alice hello
			alice > {"t":"ping","id":1,"priority":{"high":[1,2.5,null,"x"]},"T":"hello"}
			alice < {"t":"pong","id":1}`},
		{"null for an optional field is absence", `
			alice > {"t":"hello","token":"$TENANT/alice","client":null,"accept":null,"resume":null,"rooms":[{"room":"chat:1","epoch":null,"offset":null,"presence":null,"echo":null}]}
			alice < {"t":"welcome","rooms":[{"ok":{"recovered":false}}]}
			alice > {"t":"publish","id":null,"room":"chat:1","event":"message","data":1,"dedup_key":null,"ttl_ms":null}
			alice < {"t":"event","data":1}
			alice quiet`},
		{"null in data is data", `
			alice hello chat:1
			alice > {"t":"publish","room":"chat:1","event":"message","data":null}
			alice < {"t":"event","offset":1}
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message"}
			alice < {"t":"reply","id":1,"err":{"code":"bad_request"}}`},
		{"hello.rooms that is null", `
			alice > {"t":"hello","token":"$TENANT/alice","rooms":null}
			alice < {"t":"welcome","rooms":[]}`},
		{"a client of 128 bytes", `
			alice > {"t":"hello","token":"$TENANT/alice","client":"` + strings.Repeat("c", 128) + `"}
			alice < {"t":"welcome"}`},
		{"nesting of 64", nested},
		{"white space around an object", `
			alice hello
			alice >json      {"t" : "ping" , "id" : 1 }     
			alice >msgpack 82 a174 a470696e67 a26964 01
			alice < {"t":"pong","id":1}`},
		{"escaped names and types", `
			alice hello
			alice >json {"\u0074":"\u0070ing","i\u0064":1}
			alice >msgpack 82 d90174 d90470696e67 a26964 d30000000000000001
			alice < {"t":"pong","id":1}`},
		{"an unknown type with an id is answered", `
			alice hello
			alice > {"t":"dance","id":3}
			alice < {"t":"reply","id":3,"ok":null,"err":{"code":"unknown_type","message":"*","retry_after_ms":null}}
			alice quiet`},
		{"an unknown type without an id is answered by nothing", `
			alice hello
			alice > {"t":"dance"}
			alice quiet`},
		{"a type of the server is unknown from a client", `
			alice hello chat:1
			alice > {"t":"event","id":4,"room":"chat:1","event":"message","data":1,"eid":"x"}
			alice < {"t":"reply","id":4,"err":{"code":"unknown_type"}}
			alice > {"t":"welcome"}
			alice quiet`},
		{"a type in another case is unknown", `
			alice hello
			alice > {"t":"Ping","id":4}
			alice < {"t":"reply","id":4,"err":{"code":"unknown_type"}}`},
	})
}
