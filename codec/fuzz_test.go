package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// testdata/fuzz has what long runs of the fuzzers of this package have found besides
// their seeds: the smallest inputs that together go everywhere the others went. They
// are tests like others; a fuzzer begins with them.

// seedJSON and seedPack give a fuzzer the gate's cases and the golden vectors.
func seedJSON(f *testing.F) {
	for _, c := range jsonGateCases {
		f.Add([]byte(c.message))
	}
	for _, c := range requestCases {
		f.Add([]byte(c.message))
	}
	for _, c := range documentCases {
		f.Add(Protocols()[JSON].Append(nil, c.doc))
	}
}

func seedPack(f *testing.F) {
	for _, c := range packGateCases {
		f.Add(unhex(f, c.message))
	}
	files, err := filepath.Glob("testdata/golden/*/*.msgpack")
	if err != nil || len(files) == 0 {
		f.Fatal("no golden vectors", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		line, _, _ := strings.Cut(string(content), "\n")
		f.Add(unhex(f, line))
	}
}

// The gate and the naive gate agree on everything.
func FuzzGateJSON(f *testing.F) {
	seedJSON(f)
	f.Fuzz(func(t *testing.T, message []byte) {
		if got, want := gateVerdict(JSON, message), naiveJSON(message); got != want {
			t.Errorf("%q: %+v, want %+v", message, got, want)
		}
	})
}

func FuzzGateMsgpack(f *testing.F) {
	seedPack(f)
	f.Fuzz(func(t *testing.T, message []byte) {
		if got, want := gateVerdict(Msgpack, message), naivePack(message); got != want {
			t.Errorf("%x: %+v, want %+v", message, got, want)
		}
	})
}

// Whatever comes in: a request that keeps the grammar, or a fault, or malformed;
// never a panic, never a changed message.
func FuzzDecodeJSON(f *testing.F) {
	seedJSON(f)
	f.Fuzz(func(t *testing.T, message []byte) { fuzzDecode(t, JSON, message) })
}

func FuzzDecodeMsgpack(f *testing.F) {
	seedPack(f)
	f.Fuzz(func(t *testing.T, message []byte) { fuzzDecode(t, Msgpack, message) })
}

func fuzzDecode(t *testing.T, c Codec, message []byte) {
	before := bytes.Clone(message)
	if d, err := DecodeDocument(c, message); err == nil {
		fuzzDocument(t, d)
	} else if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknownType) {
		t.Errorf("%v", err)
	}
	list, err := Protocols()[c].Decode(nil, message)
	if !bytes.Equal(message, before) {
		t.Fatal("the message was changed")
	}
	if err != nil {
		if !errors.Is(err, ErrMalformed) || len(list) > 0 {
			t.Errorf("%v, %v", list, err)
		}
		return
	}
	if len(list) != 1 {
		t.Fatalf("%d requests", len(list))
	}
	checkRequest(t, list[0])
	fuzzRequest(t, list[0])
	if gateVerdict(c, message).malformed {
		t.Error("a malformed message was decoded")
	}
	if c == JSON && !gateVerdict(c, message).fault {
		crossed := Data{JSON, message}.In(Msgpack)
		again, err := decodeOne(Msgpack, crossed)
		if fault, ok := again.(*Fault); ok && fault.Err.Message == "data is nested too deep" {
			return
		}
		if err == nil && !sameRequest(list[0], again) {
			t.Errorf("%q: JSON says %+v, msgpack %+v", message, list[0], again)
		}
	}
}

// fuzzDocument: what was decoded is encoded and decoded again, to the same, in
// both codecs.
func fuzzDocument(t *testing.T, d Document) {
	if _, isEvent := d.(*Event); !isEvent && d == nil {
		t.Fatal("neither a document nor an error")
	}
	text := Protocols()[JSON].Append(nil, d)
	for _, p := range Protocols() {
		encoded := p.Append(nil, d)
		again, err := DecodeDocument(p.Codec(), encoded)
		if err != nil {
			t.Fatalf("%q does not come back: %v", encoded, err)
		}
		if p.Codec() == JSON && !bytes.Equal(p.Append(nil, again), text) {
			t.Errorf("%q became %q", text, p.Append(nil, again))
		}
	}
}

// fuzzRequest: what a client would write for it is read as the same, in both codecs.
func fuzzRequest(t *testing.T, r Request) {
	if _, isFault := r.(*Fault); isFault {
		return
	}
	for _, c := range []Codec{JSON, Msgpack} {
		encoded := AppendRequest(nil, c, r)
		again, err := decodeOne(c, encoded)
		if err != nil || !sameRequest(r, again) {
			t.Errorf("%+v became %+v by %q, %v", r, again, encoded, err)
		}
	}
}

func checkRequest(t *testing.T, r Request) {
	if r.RequestID() > MaxOffset {
		t.Errorf("id %d", r.RequestID())
	}
	rooms := []string{}
	switch r := r.(type) {
	case *Fault:
		if r.Err == nil || r.Err.Code == 0 {
			t.Error("a fault without an error")
		}
	case *Hello:
		for _, room := range r.Rooms {
			if room.Err == nil {
				rooms = append(rooms, room.Room)
			}
			checkData(t, room.Data)
		}
	case *Publish:
		rooms = append(rooms, r.Room)
		if r.Data.IsZero() || !ValidEvent(r.Event) || r.TTL < 0 {
			t.Errorf("%+v", r)
		}
		checkData(t, r.Data)
	case *Command:
		if r.Room != "" {
			rooms = append(rooms, r.Room)
		}
		checkData(t, r.Data)
	case *Join:
		rooms = append(rooms, r.Room)
		checkData(t, r.Data)
		checkPosition(t, r.Position)
	case *Leave:
		rooms = append(rooms, r.Room)
	case *Ack:
		rooms = append(rooms, r.Room)
		checkPosition(t, r.Position)
	case *History:
		rooms = append(rooms, r.Room)
		checkPosition(t, r.Position)
		if r.Limit < 1 || r.Limit > maxLimit {
			t.Errorf("limit %d", r.Limit)
		}
	case *PresenceQuery:
		rooms = append(rooms, r.Room)
		if r.Limit < 1 || r.Limit > maxLimit {
			t.Errorf("limit %d", r.Limit)
		}
	}
	for _, room := range rooms {
		if !ValidRoom(room) {
			t.Errorf("room %q", room)
		}
	}
}

func checkPosition(t *testing.T, p Position) {
	if p.Offset > MaxOffset || len(p.Epoch) > maxEpoch || p.Offset > 0 && p.Epoch == "" {
		t.Errorf("position %+v", p)
	}
}

// checkData: data that passed is data by itself, in both codecs.
func checkData(t *testing.T, d Data) {
	if d.IsZero() {
		return
	}
	for _, c := range []Codec{JSON, Msgpack} {
		if _, err := MakeData(c, d.In(c)); err != nil {
			t.Errorf("%q is no data in %s: %v", d.In(c), c, err)
		}
	}
}

// sameRequest compares requests of the same frame in two codecs; data by what
// JSON clients see, faults by what they refuse.
func sameRequest(a, b Request) bool {
	if _, isHello := a.(*Hello); isHello {
		return true // data that only one codec can say is refused in rooms too
	}
	return reflect.DeepEqual(normalRequest(a), normalRequest(b))
}

func normalRequest(r Request) Request {
	switch r := plainRequest(r).(type) {
	case *Publish:
		r.Data = normalData(r.Data)
		return r
	case *Command:
		r.Data = normalData(r.Data)
		return r
	case *Join:
		r.Data = normalData(r.Data)
		return r
	default:
		return r
	}
}

// normalData is data in its one spelling.
func normalData(d Data) Data {
	if d.IsZero() {
		return d
	}
	return Data{JSON, Data{Msgpack, d.In(Msgpack)}.In(JSON)}
}

// From any JSON data to msgpack and back the meaning is the same, to encoding/json
// too, and nothing grows more than sixfold.
func FuzzTranscode(f *testing.F) {
	for _, c := range jsonGateCases {
		f.Add([]byte(c.message))
	}
	f.Add([]byte(`[1,-0.0,1e20,"\u0000","😀",{"a":null}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if d, err := MakeData(Msgpack, raw); err == nil {
			if text := d.In(JSON); len(text) > 6*len(raw) {
				t.Errorf("%d bytes became %d", len(raw), len(text))
			}
			checkData(t, d)
		}
		d, err := MakeData(JSON, raw)
		if err != nil {
			return
		}
		packed, err := MakeData(Msgpack, d.In(Msgpack))
		if err != nil {
			t.Fatalf("%q in msgpack is no data: %v", raw, err)
		}
		text, err := MakeData(JSON, packed.In(JSON))
		if err != nil {
			t.Fatalf("%q came back as %q: %v", raw, packed.In(JSON), err)
		}
		if packed.Len() > 6*d.Len() || text.Len() > 6*packed.Len() {
			t.Errorf("grows: %d, %d, %d bytes", d.Len(), packed.Len(), text.Len())
		}
		if !bytes.Equal(text.In(Msgpack), packed.Raw()) && !bytes.Equal(Data{Msgpack, text.In(Msgpack)}.In(JSON), text.Raw()) {
			t.Errorf("%q does not settle", raw)
		}
		if a, b := meaning(t, d.Raw()), meaning(t, text.Raw()); !reflect.DeepEqual(a, b) {
			t.Errorf("%q came back as %q", raw, text.Raw())
		}
		var v any
		if err := d.Unmarshal(&v); err != nil {
			t.Fatal(err)
		}
		if again, err := NewData(v); err != nil || !bytes.Equal(normalData(again).Raw(), normalData(text).Raw()) && !bytes.Contains(raw, []byte("{")) {
			t.Errorf("%q is %v in Go: %v", raw, v, err)
		}
	})
}

// meaning is what encoding/json reads, numbers as floats: integers are compared
// exactly by other tests.
func meaning(t *testing.T, text []byte) (v any) {
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}
