package codec

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// Public fault reports of other projects, held against this package.

// TestB113_DeclaredLengths: a few bytes that declare 2^32-1 elements or bytes made
// decoders allocate gigabytes and die (vmihailenco/msgpack#401 and #376,
// shamaton/msgpack#109).
func TestB113_DeclaredLengths(t *testing.T) {
	for _, message := range []string{
		"ddffffffff", "dfffffffff", "c6ffffffff", "dbffffffff", "c9ffffffff", "92 dd02000000",
		"81 a464617461 ddffffffff", "81 a464617461 92 dd02000000", "81 a464617461 dfffffffff", "81 dbffffffff",
		"82 a174 a568656c6c6f a5726f6f6d73 ddffffffff", "dfffffffff a174 a470696e67",
	} {
		for path, decode := range decodePaths(Msgpack, unhex(t, message)) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := decode()
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%s through %s: %v", message, path, err)
			}
			if path == "data" && !strings.Contains(err.Error(), "declared length") {
				t.Errorf("%s is refused for something else: %v", message, err)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
				t.Errorf("%s through %s allocates %d bytes", message, path, grown)
			}
		}
	}
}

// decodePaths are all ways by which bytes become values.
func decodePaths(c Codec, in []byte) map[string]func() error {
	return map[string]func() error{
		"request": func() error {
			r, err := decodeOne(c, in)
			if f, ok := r.(*Fault); ok {
				return f.Err
			}
			return err
		},
		"document": func() error { _, err := DecodeDocument(c, in); return err },
		"data":     func() error { _, err := MakeData(c, in); return err },
	}
}

// TestB115_MapAsKey: a map used as a map's key panics where keys go into a Go map
// (vmihailenco/msgpack#260).
func TestB115_MapAsKey(t *testing.T) {
	for _, message := range []string{
		"8181a178c3c3",
		"81 a464617461 8181a178c3c3",
		"84 a174 a77075626c697368 a4726f6f6d a463686174 a56576656e74 a165 a464617461 8181a178c3c3",
		"83 a174 a56576656e74 a56576656e74 a165 a464617461 8181a178c3c3",
		"82 a174 a568656c6c6f a5726f6f6d73 91 8181a178c3c3",
	} {
		for path, decode := range decodePaths(Msgpack, unhex(t, message)) {
			if err := decode(); err == nil {
				t.Errorf("%s through %s: no error", message, path)
			}
		}
	}
	var v any
	d, err := MakeData(Msgpack, unhex(t, "8181a178c3c3"))
	if err == nil || d.Unmarshal(&v) == nil {
		t.Error("it became a value")
	}
}

// TestB116_KeysThatAreNoText: maps with other keys encode but cannot be decoded
// everywhere (vmihailenco/msgpack#289, #327, #372). The rule here: refused where
// they come in, whole; of Go maps whose keys encoding/json can say, they are text.
func TestB116_KeysThatAreNoText(t *testing.T) {
	var e *Error
	for _, v := range []any{
		map[bool]int{}, map[any]any{"a": 1}, map[[2]int]int{},
		map[string]any{"below": []any{map[float64]string{1: "a"}}},
		struct{ M map[bool]int }{},
	} {
		if d, err := NewData(v); !errors.As(err, &e) || e.Code != CodeBadRequest || !d.IsZero() {
			t.Errorf("%v: %v", v, err)
		}
	}
	if d, err := NewData(map[int]string{1: "a"}); err != nil || string(d.In(Msgpack)) != "\x81\xa11\xa1a" {
		t.Errorf("%x, %v", d.In(Msgpack), err)
	}
	r, err := decodeOne(Msgpack, unhex(t, "85 a174 a77075626c697368 a26964 01 a4726f6f6d a463686174 a56576656e74 a165 a464617461 8101a161"))
	if f, ok := r.(*Fault); err != nil || !ok || f.Err.Code != CodeBadRequest || f.ID != 1 || f.Type != "publish" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestB118_WrongShapes: a packet of the wrong type or shape crashed servers
// (socketio/socket.io#3036, #1980, #2047).
func TestB118_WrongShapes(t *testing.T) {
	const refused, closed = CodeBadRequest, Code(0)
	for _, c := range []struct {
		rule    string
		codec   Codec
		message string
		want    Code // closed: malformed
	}{
		{"unknown type", JSON, `{"t":"42","id":1}`, CodeUnknownType},
		{"a type of the server only", JSON, `{"t":"welcome","id":1,"session":"s"}`, CodeUnknownType},
		{"negative id", JSON, `{"t":"join","id":-1,"room":"chat"}`, refused},
		{"huge id", JSON, `{"t":"join","id":1e300,"room":"chat"}`, refused},
		{"id of 2^53+1", JSON, `{"t":"join","id":9007199254740993,"room":"chat"}`, refused},
		{"offset of 2^53+1", JSON, `{"t":"ack","room":"chat","epoch":"e","offset":9007199254740993}`, refused},
		{"NaN in JSON", JSON, `{"t":"join","id":NaN,"room":"chat"}`, closed},
		{"NaN as id", Msgpack, "83 a174 a46a6f696e a26964 cb7ff8000000000000 a4726f6f6d a463686174", refused},
		{"infinity as id", Msgpack, "83 a174 a46a6f696e a26964 ca7f800000 a4726f6f6d a463686174", refused},
		{"every field an array", JSON, `{"t":"publish","id":[],"room":[],"event":[],"data":[],"dedup_key":[],"ttl_ms":[]}`, refused},
		{"every field an object", JSON, `{"t":"history","id":{},"room":{},"epoch":{},"offset":{},"limit":{},"reverse":{}}`, refused},
		{"type repeated", JSON, `{"t":"join","id":1,"room":"chat","t":"leave"}`, closed},
		{"bytes left over", Msgpack, "81 a174 a470696e67 c0", closed},
		{"text left over", JSON, `{"t":"ping"} 1`, closed},
		{"an array of frames", JSON, `[{"t":"ping"}]`, closed},
	} {
		t.Run(c.rule, func(t *testing.T) {
			in := []byte(c.message)
			if c.codec == Msgpack {
				in = unhex(t, c.message)
			}
			r, err := decodeOne(c.codec, in)
			if c.want == closed {
				if !errors.Is(err, ErrMalformed) || r != nil {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			if f, ok := r.(*Fault); err != nil || !ok || f.Err.Code != c.want {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	// Names that differ by case are different fields: encoding/json would take the
	// last of them.
	r, err := decodeOne(JSON, []byte(`{"t":"token","id":1,"token":"mine","Token":"theirs","TOKEN":"theirs"}`))
	if k, ok := r.(*Token); err != nil || !ok || k.Token != "mine" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestB120_IntegersBeyond2To53: ids lose digits in readers that know only doubles
// (redis/redis#15824). On this side of the wire no digit is lost in any codec.
func TestB120_IntegersBeyond2To53(t *testing.T) {
	for _, digits := range []string{"9007199254740993", "-9007199254740993", "9223372036854775807", "18446744073709551615"} {
		r, err := decodeOne(JSON, []byte(`{"t":"publish","room":"chat","event":"e","data":{"id":`+digits+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		e := NewEvent(Topic{"acme", "chat"}, "e", r.(*Publish).Data, Origin{})
		for _, p := range Protocols() {
			got, err := DecodeDocument(p.Codec(), p.Append(nil, e))
			if err != nil {
				t.Fatal(err)
			}
			data := got.(*Event).Data
			if s := string(data.In(JSON)); s != `{"id":`+digits+`}` {
				t.Errorf("%s over %s is %s", digits, p.Name(), s)
			}
			var v map[string]any
			if err := data.Unmarshal(&v); err != nil {
				t.Fatal(err)
			}
			if again, err := NewData(v); err != nil || string(again.In(JSON)) != `{"id":`+digits+`}` {
				t.Errorf("%s over %s is %v in Go", digits, p.Name(), v)
			}
		}
	}
}
