package codec

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// deep is n nested arrays.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// deepObjects is n nested objects.
func deepObjects(n int) string {
	return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1)
}

func manyKeys(n int, last string) string {
	var s strings.Builder
	s.WriteByte('{')
	for i := range n {
		fmt.Fprintf(&s, `"k%d":%d,`, i, i)
	}
	return s.String() + `"` + last + `":0}`
}

var (
	okay  = verdict{}
	fault = verdict{fault: true}
	bad   = malformedVerdict
)

// jsonGateCases are also the fuzzers' seeds.
var jsonGateCases = []struct {
	rule    string
	message string
	want    verdict
}{
	{"an object is a frame", `{"t":"ping"}`, okay},
	{"white space around is no rest", " \t\r\n{ \"t\" : \"ping\" , \"id\" : 1 } \n", okay},
	{"empty", ``, bad},
	{"only space", `  `, bad},
	{"no object: array", `[1]`, bad},
	{"no object: text", `"t"`, bad},
	{"no object: null", `null`, bad},
	{"bytes left over", `{"t":"ping"}x`, bad},
	{"a second object", `{"t":"ping"}{}`, bad},
	{"byte order mark", "\ufeff{}", bad},
	{"truncated", `{"t":"ping"`, bad},
	{"truncated string", `{"t":"pi`, bad},
	{"truncated escape", `{"t":"\`, bad},
	{"trailing comma", `{"t":"ping",}`, bad},
	{"trailing comma in an array", `{"x":[1,]}`, bad},
	{"missing colon", `{"t" "ping"}`, bad},
	{"missing comma", `{"a":1 "b":2}`, bad},
	{"key is no string", `{1:2}`, bad},
	{"comments are no space", `{/**/}`, bad},
	{"control character", "{\"a\":\"\x01\"}", bad},
	{"unknown escape", `{"a":"\x"}`, bad},
	{"short unicode escape", `{"a":"\u12"}`, bad},
	{"literals are whole", `{"a":tru}`, bad},
	{"literals have no case", `{"a":True}`, bad},
	{"NaN is no JSON", `{"a":NaN}`, bad},
	{"a leading zero is no number", `{"a":01}`, bad},
	{"a bare minus is no number", `{"a":-}`, bad},
	{"a bare point is no number", `{"a":1.}`, bad},
	{"a bare exponent is no number", `{"a":1e}`, bad},
	{"a plus is no number", `{"a":+1}`, bad},
	{"hexadecimal is no number", `{"a":0x1}`, bad},

	{"repeated key", `{"t":"ping","t":"ping"}`, bad},
	{"repeated key after unescaping", `{"a":1,"\u0061":2}`, bad},
	{"repeated key by another escape", `{"/":1,"\/":2}`, bad},
	{"repeated key deep down", `{"data":[[{"a":{"b":1,"b":1}}]]}`, bad},
	{"repeated empty key", `{"":1,"":2}`, bad},
	{"repeated key among many", manyKeys(100, "k57"), bad},
	{"repeated key among many, escaped", manyKeys(100, `\u006b57`), bad},
	{"many keys", manyKeys(100, "k100"), okay},
	{"keys differ by case", `{"t":"ping","T":"x"}`, okay},
	{"the same key in two objects", `{"a":{"a":1},"b":{"a":1}}`, okay},
	{"the same key inside and after", `{"a":{"b":1,"c":{"b":1}},"b":1}`, okay},

	{"invalid UTF-8", "{\"a\":\"\xff\"}", bad},
	{"invalid UTF-8 in a key", "{\"\xc3\x28\":1}", bad},
	{"overlong UTF-8", "{\"a\":\"\xc0\xaf\"}", bad},
	{"surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", bad},
	{"unpaired high surrogate", `{"a":"\ud800"}`, bad},
	{"unpaired low surrogate", `{"a":"\udc00"}`, bad},
	{"surrogates in the wrong order", `{"a":"\udc00\ud800"}`, bad},
	{"two high surrogates", `{"a":"\ud800\ud800"}`, bad},
	{"unpaired surrogate in a key", `{"\ud800":1}`, bad},
	{"a pair of surrogates", `{"a":"\ud83d\ude00"}`, okay},
	{"an escaped replacement character", `{"a":"\ufffd"}`, okay},
	{"an escaped backslash before u", `{"a":"\\ud800"}`, okay},

	{"nesting of 64", `{"x":` + deep(63) + `}`, okay},
	{"nesting of 65", `{"x":` + deep(64) + `}`, bad},
	{"nesting of objects of 65", `{"x":` + deepObjects(64) + `}`, bad},
	{"data of 48", `{"data":` + deep(48) + `}`, okay},
	{"data of 49", `{"data":` + deep(49) + `}`, fault},
	{"data objects of 48", `{"data":` + deepObjects(48) + `}`, okay},
	{"data objects of 49", `{"data":` + deepObjects(49) + `}`, fault},
	{"data of 48 with scalars inside", `{"data":` + strings.Repeat("[", 48) + "1" + strings.Repeat("]", 48) + `}`, okay},
	{"data of 63", `{"data":` + deep(63) + `}`, fault},
	{"data of 64", `{"data":` + deep(64) + `}`, bad},

	{"int64 and uint64", `{"data":[9223372036854775807,-9223372036854775808,18446744073709551615]}`, okay},
	{"uint64 plus one", `{"data":18446744073709551616}`, fault},
	{"int64 minus one", `{"data":-9223372036854775809}`, fault},
	{"a huge integer", `{"data":` + strings.Repeat("9", 400) + `}`, fault},
	{"a float at the limit", `{"data":[1.7976931348623157e308,-1e-400]}`, okay},
	{"a float beyond", `{"data":1e309}`, fault},
	{"a float beyond without an exponent", `{"data":` + strings.Repeat("9", 400) + `.5}`, fault},
	{"a long number in front of an exponent", `{"data":` + strings.Repeat("0.", 1) + strings.Repeat("0", 400) + `1e390}`, okay},
	{"numbers outside of data are nobody's", `{"x":1e999,"y":18446744073709551616}`, okay},
	{"a fault of data does not hide what is malformed", `{"data":[1e999,{"a":1,"a":1}]}`, bad},
	{"a fault in the data of a room is not the frame's", `{"rooms":[{"data":1e999}],"data":1}`, okay},
	{"a fault in data is kept whatever follows", `{"data":1e999,"rooms":[{"data":1}],"x":1}`, fault},
	{"data below another key is no data", `{"x":{"data":1e999}}`, okay},
	{"data as deep as that of rooms, behind them, is none", `{"rooms":[],"x":[{"data":1e999}],"data":1}`, okay},
}

// packGateCases are hex; also the fuzzers' seeds.
var packGateCases = []struct {
	rule    string
	message string
	want    verdict
}{
	{"a map is a frame", "81 a174 a470696e67", okay},
	{"map16", "de0001 a174 a470696e67", okay},
	{"map32", "df00000001 a174 a470696e67", okay},
	{"str8", "81 d90174 d904 70696e67", okay},
	{"empty map", "80", okay},
	{"empty", "", bad},
	{"no map: array", "9101", bad},
	{"no map: nil", "c0", bad},
	{"no map: text", "a174", bad},
	{"bytes left over", "81a174a470696e67 00", bad},
	{"the reserved byte", "81 a161 c1", bad},
	{"truncated head", "de00", bad},
	{"truncated key", "81 a2 74", bad},
	{"missing value", "81 a174", bad},
	{"missing value of an empty key", "81 a0", bad},
	{"missing pair", "82 a174 01", bad},
	{"text longer than the input", "81 a174 db7fffffff", bad},
	{"bin longer than the input", "81 a174 c6ffffffff", bad},
	{"ext longer than the input", "81 a174 c9ffffffff01", bad},
	{"array longer than the input", "81 a174 ddffffffff", bad},
	{"map longer than the input", "81 a174 dfffffffff", bad},
	{"repeated key", "82 a174 01 a174 02", bad},
	{"repeated key in another form", "82 a174 01 d90174 02", bad},
	{"repeated key in data", "81 a464617461 82 a161 01 a161 01", bad},
	{"invalid UTF-8", "81 a174 a1ff", bad},
	{"invalid UTF-8 in a key", "81 a1ff 01", bad},
	{"any bytes in bin", "81 a161 c401ff", okay},
	{"a key that is no text", "81 01 02", bad},
	{"a key that is no text below", "81 a178 81 01 02", bad},
	{"a bin key", "81 c40174 02", bad},
	{"a key that is no text, in data", "81 a464617461 81 01 02", fault},
	{"a map as key, in data", "81 a464617461 81 81a178c3 c3", fault},
	{"repeated text keys beside another", "81 a464617461 83 01 02 a161 01 a161 01", bad},
	{"two keys that are no text, in data", "81 a464617461 82 01 02 01 02", fault},
	{"a key that is no text in the data of a room", "81 a5726f6f6d73 91 81 a464617461 81 01 02", okay},
	{"a key that is no text beside the data of a room", "81 a5726f6f6d73 91 81 a161 81 01 02", bad},
	{"a key that is no text deeper than the data of a room", "81 a5726f6f6d73 91 81 a161 81 a464617461 81 01 02", bad},
	{"a key that is no text as deep as the data of rooms, behind them", "82 a5726f6f6d73 90 a178 91 81 a464617461 81 01 02", bad},
	{"ext outside of data", "81 a161 d40100", okay},
	{"ext in data", "81 a464617461 d40100", fault},
	{"timestamp in data", "81 a464617461 d6ff00000000", fault},
	{"NaN in data", "81 a464617461 cb7ff8000000000001", fault},
	{"infinity in data", "81 a464617461 ca7f800000", fault},
	{"NaN outside of data", "81 a161 cb7ff8000000000001", okay},
	{"every number in data", "81 a464617461 9c 00 7f ff e0 ccff cdffff ceffffffff cfffffffffffffffff d080 d18000 d280000000 d38000000000000000", okay},
	{"nesting of 64", "81 a178" + strings.Repeat("91", 62) + "90", okay},
	{"nesting of 65", "81 a178" + strings.Repeat("91", 63) + "90", bad},
	{"data of 48", "81 a464617461" + strings.Repeat("91", 47) + "90", okay},
	{"data of 49", "81 a464617461" + strings.Repeat("91", 48) + "90", fault},
	{"nesting of keys of 65", "81 a464617461" + strings.Repeat("81", 64) + strings.Repeat("01", 65), bad},
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGateJSON(t *testing.T) {
	for _, c := range jsonGateCases {
		t.Run(c.rule, func(t *testing.T) {
			if got := gateVerdict(JSON, []byte(c.message)); got != c.want {
				t.Errorf("gate %+v, want %+v", got, c.want)
			}
			if got := naiveJSON([]byte(c.message)); got != c.want {
				t.Errorf("the naive gate %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestGateMsgpack(t *testing.T) {
	for _, c := range packGateCases {
		t.Run(c.rule, func(t *testing.T) {
			message := unhex(t, c.message)
			if got := gateVerdict(Msgpack, message); got != c.want {
				t.Errorf("gate %+v, want %+v", got, c.want)
			}
			if got := naivePack(message); got != c.want {
				t.Errorf("the naive gate %+v, want %+v", got, c.want)
			}
		})
	}
}

// Every prefix of a good message is malformed, and so is every message with a
// byte behind it.
func TestGateTruncation(t *testing.T) {
	for _, c := range []Codec{JSON, Msgpack} {
		message := publishFrame(t, c)
		for n := range message {
			if got := gateVerdict(c, message[:n]); !got.malformed {
				t.Errorf("%s: the first %d bytes passed", c, n)
			}
		}
		if got := gateVerdict(c, append(message, 'x')); !got.malformed {
			t.Errorf("%s: a byte left over passed", c)
		}
	}
}

// A repeated key is found wherever it stands and however many others there are,
// on both sides of the bound between comparing and hashing.
func TestGateRepeatedKeyAnywhere(t *testing.T) {
	for _, n := range []int{1, 2, fewKeys - 1, fewKeys, fewKeys + 1, 17, 64, 300} {
		for i := range n {
			message := manyKeys(n, fmt.Sprintf("k%d", i))
			for _, c := range []Codec{JSON, Msgpack} {
				if got := gateVerdict(c, inCodec(t, c, message)); !got.malformed {
					t.Fatalf("%s: key %d of %d repeated at the end passed", c, i, n)
				}
			}
		}
	}
}

// Scratch is used again without a trace of the message before.
func TestGateReuse(t *testing.T) {
	d := newDecoder()
	for round := range 3 {
		for _, c := range jsonGateCases {
			if got := !d.gate.frame(JSON, []byte(c.message)); got != c.want.malformed {
				t.Errorf("round %d, %s: malformed %v", round, c.rule, got)
			}
		}
		for _, c := range packGateCases {
			if got := !d.gate.frame(Msgpack, unhex(t, c.message)); got != c.want.malformed {
				t.Errorf("round %d, %s: malformed %v", round, c.rule, got)
			}
		}
	}
}

// After the scratch has grown once, the gate allocates nothing, whatever comes.
func TestGateAllocates(t *testing.T) {
	d := newDecoder()
	for _, shape := range gateShapes() {
		for _, c := range []Codec{JSON, Msgpack} {
			message := inCodec(t, c, shape.message)
			if n := testing.AllocsPerRun(5, func() { d.gate.frame(c, message) }); n != 0 {
				t.Errorf("%s in %s: %v allocations", shape.name, c, n)
			}
		}
	}
}

// Scratch lives on after an ordinary message, not after a huge one.
func TestScratchIsBounded(t *testing.T) {
	d := newDecoder()
	d.gate.frame(JSON, []byte(manyKeys(1000, `\u0061`)))
	d.forget()
	if d.gate.keys == nil || d.gate.table == nil || d.gate.text == nil || d.gate.in != nil {
		t.Error("nothing is used again, or the message is still held")
	}
	d.gate.frame(JSON, []byte(manyKeys(50000, "x")))
	d.forget()
	if d.gate.keys != nil || d.gate.table != nil || d.gate.text != nil {
		t.Error("scratch of a huge message is kept")
	}
}
