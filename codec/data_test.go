package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

func mustData(t testing.TB, c Codec, raw []byte) Data {
	t.Helper()
	d, err := MakeData(c, raw)
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return d
}

func TestMakeDataTellsMalformedFromFaults(t *testing.T) {
	for _, c := range []struct {
		rule      string
		codec     Codec
		raw       string
		malformed bool
	}{
		{"nothing", JSON, "", true},
		{"two values", JSON, "1 2", true},
		{"bad UTF-8", JSON, "\"\xff\"", true},
		{"repeated key", JSON, `{"a":1,"a":1}`, true},
		{"too deep", JSON, deep(49), false},
		{"far too deep", JSON, deep(1000), true},
		{"beyond uint64", JSON, "18446744073709551616", false},
		{"nothing in msgpack", Msgpack, "", true},
		{"two values in msgpack", Msgpack, "\x01\x02", true},
		{"extension", Msgpack, "\xd4\x01\x00", false},
		{"NaN", Msgpack, "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			_, err := MakeData(c.codec, []byte(c.raw))
			var e *Error
			if err == nil || errors.Is(err, ErrMalformed) != c.malformed || errors.As(err, &e) == c.malformed {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestDataIsKept(t *testing.T) {
	raw := []byte(`{"a":1}`)
	d := mustData(t, JSON, raw)
	if &d.Raw()[0] != &raw[0] || &d.In(JSON)[0] != &raw[0] || d.Len() != len(raw) || d.Codec() != JSON || d.IsZero() {
		t.Error("data is not the bytes it was made of")
	}
	if d := mustData(t, JSON, []byte(" 1\n")); string(d.Raw()) != "1" {
		t.Errorf("space around a value is kept: %q", d.Raw())
	}
	if !(Data{}).IsZero() || mustData(t, JSON, []byte("null")).IsZero() {
		t.Error("null is not absent")
	}
}

func TestTranscode(t *testing.T) {
	for _, c := range []struct{ rule, text, packed string }{
		{"null", `null`, "c0"},
		{"booleans", `[true,false]`, "92 c3 c2"},
		{"the shortest integers", `[0,127,128,255,256,65535,65536,4294967295,4294967296,18446744073709551615]`, "9a 00 7f cc80 ccff cd0100 cdffff ce00010000 ceffffffff cf0000000100000000 cfffffffffffffffff"},
		{"the shortest negative integers", `[-1,-32,-33,-128,-129,-32768,-32769,-2147483648,-2147483649,-9223372036854775808]`, "9a ff e0 d0df d080 d1ff7f d18000 d2ffff7fff d280000000 d3ffffffff7fffffff d38000000000000000"},
		{"B120: integers beyond 2^53 keep every digit", `[9007199254740993,-9007199254740993]`, "92 cf0020000000000001 d3ffdfffffffffffff"},
		{"floats", `[0.5,-1.5,0.1]`, "93 cb3fe0000000000000 cbbff8000000000000 cb3fb999999999999a"},
		{"negative zero", `-0.0`, "cb8000000000000000"},
		{"a float from 2^53 on has an exponent", `9.007199254740992e+15`, "cb4340000000000000"},
		{"a float beyond every integer", `1e+20`, "cb4415af1d78b58c40"},
		{"a tiny float", `1e-07`, "cb3e7ad7f29abcaf48"},
		{"the largest float", `1.7976931348623157e+308`, "cb7fefffffffffffff"},
		{"text", `"Zoë 🎉"`, "a9 5a6fc3ab20f09f8e89"},
		{"text with what JSON must escape", `"\"\\/\n\r\t\u0000\u001f"`, "a8 225c2f0a0d09001f"},
		{"text of 31", `"` + strings.Repeat("a", 31) + `"`, "bf" + strings.Repeat("61", 31)},
		{"text of 255", `"` + strings.Repeat("a", 255) + `"`, "d9ff" + strings.Repeat("61", 255)},
		{"text of 65535", `"` + strings.Repeat("a", 65535) + `"`, "daffff" + strings.Repeat("61", 65535)},
		{"array of 15", `[` + strings.Repeat("1,", 14) + `1]`, "9f" + strings.Repeat("01", 15)},
		{"array of 65535", `[` + strings.Repeat("1,", 65534) + `1]`, "dcffff" + strings.Repeat("01", 65535)},
		{"text of 32", `"` + strings.Repeat("a", 32) + `"`, "d920" + strings.Repeat("61", 32)},
		{"text of 256", `"` + strings.Repeat("a", 256) + `"`, "da0100" + strings.Repeat("61", 256)},
		{"text of 65536", `"` + strings.Repeat("a", 65536) + `"`, "db00010000" + strings.Repeat("61", 65536)},
		{"array of 16", `[` + strings.Repeat("1,", 15) + `1]`, "dc0010" + strings.Repeat("01", 16)},
		{"array of 65536", `[` + strings.Repeat("1,", 65535) + `1]`, "dd00010000" + strings.Repeat("01", 65536)},
		{"names are plain data", `{"$bin":"x","__proto__":{}}`, "82 a42462696e a178 a95f5f70726f746f5f5f 80"},
		{"nested", `[[],{},[[{"a":[]}]]]`, "93 90 80 91 91 81 a161 90"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			packed := unhex(t, c.packed)
			if got := mustData(t, JSON, []byte(c.text)).In(Msgpack); !bytes.Equal(got, packed) {
				t.Errorf("to msgpack %x, want %x", got, packed)
			}
			if got := mustData(t, Msgpack, packed).In(JSON); string(got) != c.text {
				t.Errorf("to JSON %s, want %s", got, c.text)
			}
		})
	}
}

// What is read in more than one spelling is written in one.
func TestTranscodeNormalises(t *testing.T) {
	for _, c := range []struct {
		rule  string
		codec Codec
		raw   string
		want  string
	}{
		{"space", JSON, "{ \"a\" : [ 1 , 2 ] ,\n\"b\":{ } }", "82 a161 92 01 02 a162 80"},
		{"escapes", JSON, `"\u0041\/\ud83d\ude00"`, "a6 41 2f f09f9880"},
		{"every short escape", JSON, `"\b\f\n\r\t\/\\\""`, "a8 080c0a0d092f5c22"},
		{"hexadecimal in both cases", JSON, `"\u00AB\u00ab\uABCD"`, "a7 c2ab c2ab eaaf8d"},
		{"escapes in keys", JSON, `{"\u0041":1}`, "81 a141 01"},
		{"numbers with an exponent are floats", JSON, `[1e0,1E+2,100e-2]`, "93 cb3ff0000000000000 cb4059000000000000 cb3ff0000000000000"},
		{"minus zero without a fraction is the integer", JSON, `-0`, "00"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := mustData(t, c.codec, []byte(c.raw)).In(Msgpack); !bytes.Equal(got, unhex(t, c.want)) {
				t.Errorf("%x, want %s", got, c.want)
			}
		})
	}
	for _, c := range []struct{ rule, packed, want string }{
		{"bin is base64", "c403 fffefd", `"//79"`},
		{"bin16 and bin32", "92 c50001 00 c600000001 00", `["AA==","AA=="]`},
		{"an integral float has no fraction", "cb4008000000000000", `3`},
		{"float32", "ca3fc00000", `1.5`},
		{"wide forms", "dd00000003 d300000000000000ff d90161 df00000000", `[255,"a",{}]`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := mustData(t, Msgpack, unhex(t, c.packed)).In(JSON); string(got) != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Floats of any bit pattern come back equal from JSON, and as floats where they
// are beyond the exact integers.
func TestFloatsComeBackEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(f float64) {
		d := Data{Msgpack, (&writer{codec: Msgpack}).float(f)}
		text := d.In(JSON)
		back := mustData(t, JSON, bytes.Clone(text)).In(Msgpack)
		x, ok := value{Msgpack, back}.number()
		got := x.f
		if !x.float {
			got, _ = strconv.ParseFloat(string(text), 64)
		}
		if !ok || math.Float64bits(got) != math.Float64bits(f) {
			t.Fatalf("%v became %s and then %v", f, text, got)
		}
		if math.Abs(f) >= 1<<53 && !x.float {
			t.Fatalf("%v became the integer %s", f, text)
		}
		if want, _ := json.Marshal(f); len(text) > len(want)+5 {
			t.Fatalf("%s is longer than %s", text, want)
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, 1 << 53, -(1 << 53), 1<<53 + 2, 1 << 63, 1 << 64, 1e15, 1e21, 1e22, 5e-324, math.MaxFloat64, 1e-6, 1e-7, 123456789.125} {
		check(f)
	}
	for range 20000 {
		if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			check(f)
		}
		check(float64(r.Int64()))
	}
}

func (w *writer) float(f float64) []byte {
	w.number(number{float: true, f: f})
	return w.b
}

// randomValue is a value of the document model as Go has it.
func randomValue(r *rand.Rand, depth int) any {
	n := 9
	if depth > 4 {
		n = 7
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.Uint64() >> r.IntN(64))
	case 3:
		return r.Uint64() | 1<<63
	case 4:
		return r.NormFloat64() * math.Pow(10, float64(r.IntN(38)-20)) // below 2^63
	case 5:
		return randomText(r)
	case 6:
		return []byte(randomText(r))
	case 7:
		list := []any{}
		for range r.IntN(20) {
			list = append(list, randomValue(r, depth+1))
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(20) {
		object[randomText(r)] = randomValue(r, depth+1)
	}
	return object
}

func randomText(r *rand.Rand) string {
	var s strings.Builder
	for range r.IntN(40) {
		s.WriteRune([]rune("abc \"\\/\n\x00\x1fé€😀\u2028<&'")[r.IntN(17)])
	}
	return s.String()
}

// viaJSON is a value as plainValue has what JSON clients read: bin is base64 text,
// and floats without a fraction are integers.
func viaJSON(v any) any {
	switch v := v.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return plainValue(int64(v))
		}
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, viaJSON(e))
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for k, e := range v {
			object[k] = viaJSON(e)
		}
		return object
	}
	return plainValue(v)
}

// Any value, as the msgpack library writes it: JSON clients read what there is of
// it in JSON; the libraries agree; transcoding there and back changes nothing more;
// NewData makes the same of the Go value.
func TestDataProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		v := randomValue(r, 0)
		packed, err := msgpack.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		d := mustData(t, Msgpack, packed)
		text := d.In(JSON)
		if got := plainValue(inGo(t, d)); !reflect.DeepEqual(got, viaJSON(v)) {
			t.Fatalf("%v became %s", v, text)
		}
		again := mustData(t, Msgpack, mustData(t, JSON, text).In(Msgpack))
		if !bytes.Equal(again.In(JSON), text) {
			t.Fatalf("%s became %s", text, again.In(JSON))
		}
		sameByLibraries(t, text, again.Raw())
		if len(text) > 6*d.Len() {
			t.Fatalf("%d bytes of msgpack became %d of JSON", d.Len(), len(text))
		}
		if len(again.Raw()) > 6*len(text) {
			t.Fatalf("%d bytes of JSON became %d of msgpack", len(text), len(again.Raw()))
		}
		made, err := NewData(v)
		if err != nil || !reflect.DeepEqual(meaning(t, made.In(JSON)), meaning(t, text)) {
			t.Fatalf("%v is the data %s, %v", v, made.In(JSON), err)
		}
	}
}

// inGo is what Unmarshal puts into an any.
func inGo(t *testing.T, d Data) (v any) {
	t.Helper()
	if err := d.Unmarshal(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestField(t *testing.T) {
	text := mustData(t, JSON, []byte(`{"s":"a\u0062","t":"1","n":1,"f":1.0,"e":10e-1,"big":18446744073709551615,"neg":-5,"half":5e-1,"z":-0.0,"true":true,"null":null,"bin":"AA==","list":[1],"map":{}}`))
	packed := mustData(t, Msgpack, unhex(t, "8e a173 a26162 a174 a131 a16e cd0001 a166 ca3f800000 a165 01 a3626967 cfffffffffffffffff a36e6567 d1fffb a468616c66 cb3fe0000000000000 a17a 00 a474727565 c3 a46e756c6c c0 a362696e c40100 a46c697374 9101 a36d6170 80"))
	for name, want := range map[string]string{"s": `"ab"`, "t": `"1"`, "n": "1", "f": "1", "e": "1", "big": "18446744073709551615", "neg": "-5", "half": "0.5", "z": "0", "true": "true", "null": "null", "bin": `"AA=="`} {
		for _, d := range []Data{text, packed} {
			if key, ok := d.Field(name); !ok || key != want {
				t.Errorf("%s in %s: %q, %v", name, d.Codec(), key, ok)
			}
		}
	}
	for _, d := range []Data{text, packed, jsonData(`[1]`), jsonData(`"s"`), {}} {
		for _, name := range []string{"list", "map", "missing", ""} {
			if key, ok := d.Field(name); ok {
				t.Errorf("%s has the key %q", name, key)
			}
		}
	}
}

func TestNewData(t *testing.T) {
	type holder struct {
		Data  Data            `json:"d"`
		Maybe Data            `json:"m,omitzero"`
		List  []Data          `json:"l,omitempty"`
		Map   map[string]Data `json:"o,omitempty"`
		To    *Data           `json:"p,omitempty"`
	}
	text := jsonData(`{"a":1.50}`)
	bin := mustData(t, Msgpack, unhex(t, "92 c401ff 01"))
	for _, c := range []struct {
		rule string
		v    any
		want string
	}{
		{"integers are exact", []any{int64(math.MinInt64), uint64(math.MaxUint64)}, `[-9223372036854775808,18446744073709551615]`},
		{"bytes are base64", []byte{255, 254, 253}, `"//79"`},
		{"nothing is escaped for HTML", "<&>", `"<&>"`},
		{"what is not UTF-8 is replaced", "a\xff", `"a\ufffd"`},
		{"nil is null", nil, `null`},
		{"absent data is null", Data{}, `null`},
		{"data within is as it is", holder{Data: text, Maybe: text}, `{"d":{"a":1.50},"m":{"a":1.50}}`},
		{"absent data within is null, or left out", holder{}, `{"d":null}`},
		{"data in a slice, a map, behind a pointer", holder{List: []Data{text, {}}, Map: map[string]Data{"k": text}, To: &text}, `{"d":null,"l":[{"a":1.50},null],"o":{"k":{"a":1.50}},"p":{"a":1.50}}`},
		{"msgpack within is transcoded", map[string]any{"x": bin}, `{"x":["/w==",1]}`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			d, err := NewData(c.v)
			if err != nil || d.Codec() != JSON || string(d.Raw()) != c.want {
				t.Errorf("%s in %s, %v; want %s", d.Raw(), d.Codec(), err, c.want)
			}
		})
	}
	if d, err := NewData(bin); err != nil || d.Codec() != Msgpack || &d.Raw()[0] != &bin.Raw()[0] {
		t.Errorf("data itself is not kept: %x, %v", d.Raw(), err)
	}
	if _, err := NewData(nestedSlices(48)); err != nil {
		t.Errorf("48 deep: %v", err)
	}
}

type unsaid struct{}

var errUnsaid = errors.New("a secret of the embedder")

func (unsaid) MarshalJSON() ([]byte, error) { return nil, errUnsaid }

// Whatever it is for, a refusal is one that a client may see; the reason is in the
// error only.
func TestNewDataRefuses(t *testing.T) {
	type ring struct{ Next *ring }
	loop := &ring{}
	loop.Next = loop
	for _, c := range []struct {
		rule string
		v    any
	}{
		{"NaN", math.NaN()},
		{"infinity", []any{math.Inf(1)}},
		{"a function", func() {}},
		{"a channel", map[string]any{"c": make(chan int)}},
		{"a complex number", complex(1, 1)},
		{"a cycle", loop},
		{"nesting of 49", nestedSlices(49)},
		{"nesting of 1000", nestedSlices(1000)},
		{"keys that are equal once they are UTF-8", map[string]int{"\xff": 1, "\xfe": 2}},
		{"a float that encoding/json writes as an integer beyond 64 bits", 1e20},
		{"a raw message that is no JSON", json.RawMessage("{")},
		{"a raw message with a repeated key", json.RawMessage(`{"a":1,"a":1}`)},
		{"an integer beyond 64 bits", json.Number("18446744073709551616")},
		{"a number that is none", json.Number("0x1")},
		{"what fails by itself", unsaid{}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			d, err := NewData(c.v)
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeBadRequest || strings.Contains(e.Message, "secret") || !d.IsZero() {
				t.Errorf("%s, %v", d.Raw(), err)
			}
		})
	}
	if _, err := NewData(unsaid{}); !errors.Is(err, errUnsaid) {
		t.Errorf("the reason is lost: %v", err)
	}
}

func nestedSlices(n int) any {
	v := any([]any{})
	for range n - 1 {
		v = []any{v}
	}
	return v
}

func TestNewDataDepth(t *testing.T) {
	if _, err := NewData(nestedSlices(48)); err != nil {
		t.Error(err)
	}
}

func TestUnmarshal(t *testing.T) {
	type holder struct {
		Text  string `json:"s"`
		Bytes []byte `json:"b"`
		Count int8   `json:"n"`
		Data  Data   `json:"d"`
		Null  Data   `json:"z"`
		None  Data   `json:"none"`
	}
	text := mustData(t, JSON, []byte(`{"s":"Zo\u00eb","b":"/w==","n":-128,"d":{"big":[18446744073709551615,1e2]},"z":null}`))
	packed := mustData(t, Msgpack, unhex(t, "85 a173 a45a6fc3ab a162 c401ff a16e d1ff80 a164 81 a3626967 92 cfffffffffffffffff cb4059000000000000 a17a c0"))
	for _, c := range []struct {
		d    Data
		data string
	}{
		{text, `{"big":[18446744073709551615,1e2]}`},
		{packed, `{"big":[18446744073709551615,100]}`},
	} {
		var got holder
		want := holder{"Zoë", []byte{255}, -128, jsonData(c.data), jsonData("null"), Data{}}
		if err := c.d.Unmarshal(&got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("from %s: %+v, %v", c.d.Codec(), got, err)
		}
		var v map[string]any
		if err := c.d.Unmarshal(&v); err != nil {
			t.Fatal(err)
		}
		if big := v["d"].(map[string]any)["big"].([]any)[0]; big != json.Number("18446744073709551615") {
			t.Errorf("an integer from %s lost digits: %v", c.d.Codec(), big)
		}
	}
}

// Data does not change with the bytes that it was read from.
func TestUnmarshalJSONKeepsACopy(t *testing.T) {
	var d Data
	raw := []byte(`[1]`)
	if err := d.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	raw[1] = '2'
	if string(d.Raw()) != `[1]` {
		t.Errorf("%s", d.Raw())
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	for _, c := range []struct {
		rule, text string
		to         any
	}{
		{"128 in an int8", `128`, new(int8)},
		{"-1 in a uint64", `-1`, new(uint64)},
		{"uint64 in an int64", `18446744073709551615`, new(int64)},
		{"a fraction in an int", `1.5`, new(int)},
		{"text in an int", `"1"`, new(int)},
		{"an array in a struct", `[]`, new(struct{})},
		{"text that is no base64 in bytes", `"?"`, new([]byte)},
		{"no pointer", `1`, 0},
		{"a nil pointer", `1`, (*int)(nil)},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for _, codec := range []Codec{JSON, Msgpack} {
				if err := mustData(t, codec, inCodec(t, codec, c.text)).Unmarshal(c.to); err == nil {
					t.Errorf("%s: no error", codec)
				}
			}
		})
	}
	if err := (Data{}).Unmarshal(new(any)); err == nil {
		t.Error("absent data became something")
	}
	var list []Data
	if err := json.Unmarshal([]byte(`[{"a":1,"a":2}]`), &list); !errors.Is(err, ErrMalformed) {
		t.Errorf("JSON from elsewhere passed the gate by: %v", err)
	}
}

// Reading and writing stay linear in what lies deep or is long: each of these
// took minutes when a level or a number looked at everything behind it.
func TestTranscodingIsLinear(t *testing.T) {
	const size = 1 << 20
	deepest := strings.Repeat("[", 47) + "[" + strings.Repeat("1,", size/2) + "1]" + strings.Repeat("]", 47)
	long := `["` + strings.Repeat(`\n`, size/2) + `"]`
	for _, text := range []string{deepest, long} {
		start := time.Now()
		packed := mustData(t, JSON, []byte(text)).In(Msgpack)
		if back := mustData(t, Msgpack, packed).In(JSON); string(back) != text {
			t.Error("changed on the way")
		}
		var v any
		if err := (Data{Msgpack, packed}).Unmarshal(&v); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
	}
}
