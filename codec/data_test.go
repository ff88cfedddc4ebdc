package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
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
		if got := x.float64(); !ok || math.Float64bits(got) != math.Float64bits(f) {
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
		return r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20))
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

// viaJSON is a value as a JSON client has it: bin is base64 text, and floats
// without a fraction are integers.
func viaJSON(v any) any {
	switch v := v.(type) {
	case []byte:
		text, _ := json.Marshal(v)
		s, _ := strconv.Unquote(string(text))
		return s
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
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
	return v
}

// Any value: Go to data and back is the same in msgpack, and what JSON has of it
// in JSON; the libraries agree; transcoding there and back changes nothing more.
func TestDataProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		v := randomValue(r, 0)
		d, err := NewData(v)
		if err != nil {
			t.Fatal(err)
		}
		var back any
		if err := d.Unmarshal(&back); err != nil || !reflect.DeepEqual(back, v) {
			t.Fatalf("%v came back as %v, %v", v, back, err)
		}
		text := d.In(JSON)
		j := mustData(t, JSON, text)
		if err := j.Unmarshal(&back); err != nil || !reflect.DeepEqual(back, viaJSON(v)) {
			t.Fatalf("%v came back from JSON as %v, %v", v, back, err)
		}
		again := mustData(t, Msgpack, j.In(Msgpack))
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
	}
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

type inner struct {
	Deep  int    `json:"deep"`
	Title string `json:"title"`
}

type everything struct {
	inner
	Title    string            `json:"title"`
	Count    int8              `json:"count"`
	Size     uint64            `json:"size"`
	Ratio    float32           `json:"ratio"`
	On       bool              `json:"on"`
	Blob     []byte            `json:"blob"`
	List     []int             `json:"list"`
	Pair     [2]string         `json:"pair"`
	Map      map[string]uint16 `json:"map"`
	Next     *everything       `json:"next,omitempty"`
	Any      any               `json:"any"`
	Raw      Data              `json:"raw"`
	At       time.Time         `json:"at"`
	Addr     netip.Addr        `json:"addr"`
	JSON     json.RawMessage   `json:"json"`
	Zero     time.Time         `json:"zero,omitzero"`
	Hidden   string            `json:"-"`
	Untagged string
	private  int
}

func TestGoValuesRoundTrip(t *testing.T) {
	v := everything{
		inner: inner{Deep: 7}, Title: "outer", Count: -128, Size: math.MaxUint64, Ratio: 1.5, On: true, Blob: []byte{0, 255},
		List: []int{1, math.MinInt64}, Pair: [2]string{"a", "b"}, Map: map[string]uint16{"x": 65535}, Next: &everything{Title: "next", Addr: netip.MustParseAddr("::1"), JSON: json.RawMessage("1"), Raw: jsonData("1")},
		Any: []any{int64(-1), "x", nil}, Raw: Data{Msgpack, unhex(t, "92 01 c3")}, At: time.Date(2026, 11, 30, 1, 2, 3, 4, time.UTC),
		Addr: netip.MustParseAddr("10.0.0.1"), JSON: json.RawMessage(`{"a":[1]}`), Hidden: "h", Untagged: "u", private: 1,
	}
	d, err := NewData(v)
	if err != nil {
		t.Fatal(err)
	}
	if text := d.In(JSON); bytes.Contains(text, []byte(`"zero"`)) || bytes.Count(text, []byte(`"next":`)) != 1 {
		t.Errorf("what is to be omitted is there: %s", text)
	}
	want := v
	want.Hidden, want.private = "", 0
	next := *v.Next
	next.Raw = Data{Msgpack, []byte{1}} // data is msgpack as a whole
	want.Next = &next
	var got everything
	if err := d.Unmarshal(&got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v\n%v", got, want, err)
	}
	got = everything{}
	if err := mustData(t, JSON, d.In(JSON)).Unmarshal(&got); err != nil {
		t.Fatal(err)
	}
	want.Raw = jsonData(`[1,true]`)
	next.Raw = jsonData(`1`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("from JSON\ngot  %+v\nwant %+v", got, want)
	}
}

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
		{"keys that are equal once they are UTF-8", map[string]int{"\xff": 1, "\xfe": 2}},
		{"a raw message that is no JSON", json.RawMessage("{")},
		{"a number that is none", json.Number("0x1")},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if d, err := NewData(c.v); err == nil {
				t.Errorf("%s", d.In(JSON))
			}
		})
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

func TestUnmarshalRefuses(t *testing.T) {
	for _, c := range []struct {
		rule, text string
		to         any
	}{
		{"300 in a uint8", `300`, new(uint8)},
		{"128 in an int8", `128`, new(int8)},
		{"-1.0 in a uint64", `-1.0`, new(uint64)},
		{"1e30 in a uint64", `1e30`, new(uint64)},
		{"1e30 in an int64", `1e30`, new(int64)},
		{"-1 in a uint64", `-1`, new(uint64)},
		{"uint64 in an int64", `18446744073709551615`, new(int64)},
		{"a fraction in an int", `1.5`, new(int)},
		{"text in an int", `"1"`, new(int)},
		{"a number in a string", `1`, new(string)},
		{"a number in a bool", `1`, new(bool)},
		{"an array in a struct", `[]`, new(inner)},
		{"an object in a slice", `{}`, new([]int)},
		{"an object in a map with other keys", `{"1":1}`, new(map[int]int)},
		{"text that is no base64 in bytes", `"?"`, new([]byte)},
		{"1e300 in a float32", `1e300`, new(float32)},
		{"a deep mismatch", `{"deep":[]}`, new(inner)},
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
}

type ringA struct {
	*ringB
	*RingC
	Name string `json:"name"`
}
type ringB struct{ *ringA }
type RingC struct {
	*RingC
	Note string `json:"note,omitempty"`
}

// Structs embedded in themselves end.
func TestEmbeddedRings(t *testing.T) {
	d, err := NewData(ringA{Name: "n", RingC: &RingC{Note: "x"}})
	if err != nil || string(d.In(JSON)) != `{"name":"n","note":"x"}` {
		t.Errorf("%s, %v", d.In(JSON), err)
	}
	var back ringA
	if err := d.Unmarshal(&back); err != nil || back.Name != "n" || back.RingC == nil || back.Note != "x" {
		t.Errorf("%+v, %v", back, err)
	}
	if d, err := NewData(ringA{Name: "n"}); err != nil || string(d.In(JSON)) != `{"name":"n"}` {
		t.Errorf("%s, %v", d.In(JSON), err)
	}
}

func TestUnmarshalDetails(t *testing.T) {
	exact := inner{Title: "kept"}
	if err := jsonData(`{"Title":"no","TITLE":"no","deep":3}`).Unmarshal(&exact); err != nil || exact != (inner{3, "kept"}) {
		t.Errorf("case counts in names: %+v, %v", exact, err)
	}
	array := [3]int{9, 9, 9}
	if err := jsonData(`[1,2]`).Unmarshal(&array); err != nil || array != [3]int{1, 2, 0} {
		t.Errorf("a longer array is filled with zeros: %v, %v", array, err)
	}
	short := [1]int{}
	if err := jsonData(`[1,2]`).Unmarshal(&short); err != nil || short != [1]int{1} {
		t.Errorf("a shorter array takes what fits: %v, %v", short, err)
	}
	slice := []inner{{9, "old"}}
	if err := jsonData(`[{"deep":1},{"deep":2}]`).Unmarshal(&slice); err != nil || !reflect.DeepEqual(slice, []inner{{Deep: 1}, {Deep: 2}}) {
		t.Errorf("nothing old is left in a slice: %v, %v", slice, err)
	}
	n := 5
	p := &n
	if err := jsonData(`null`).Unmarshal(&p); err != nil || p != nil {
		t.Errorf("null is nil: %v, %v", p, err)
	}
	var u uint64
	if err := jsonData(`1.8446744073709550e19`).Unmarshal(&u); err != nil || u != 18446744073709549568 {
		t.Errorf("a large integral float: %v, %v", u, err)
	}
	var i int
	if err := jsonData(`3.0`).Unmarshal(&i); err != nil || i != 3 {
		t.Errorf("an integral float is an integer: %v, %v", i, err)
	}
	var b []byte
	if err := jsonData(`"//79"`).Unmarshal(&b); err != nil || !bytes.Equal(b, []byte{255, 254, 253}) {
		t.Errorf("bytes from base64: %v, %v", b, err)
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

// The msgpack library reads what NewData writes.
func TestNewDataAgainstLibrary(t *testing.T) {
	d, err := NewData(map[string]any{"a": 1, "b": []byte{1}, "c": "x", "d": 1.5})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := msgpack.Unmarshal(d.Raw(), &got); err != nil || !reflect.DeepEqual(got, map[string]any{"a": int8(1), "b": []byte{1}, "c": "x", "d": 1.5}) {
		t.Errorf("%v, %v", got, err)
	}
}
