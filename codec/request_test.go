package codec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// decodeOne decodes a message that holds one request.
func decodeOne(c Codec, message []byte) (Request, error) {
	list, err := Protocols()[c].Decode(nil, message)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// plainRequest is a request with its data as JSON, so that requests of both
// codecs compare equal.
func plainRequest(r Request) Request {
	plain := func(d Data) Data {
		if d.IsZero() {
			return d
		}
		return Data{JSON, d.In(JSON)}
	}
	switch r := r.(type) {
	case *Hello:
		for i := range r.Rooms {
			r.Rooms[i].Data = plain(r.Rooms[i].Data)
		}
	case *Join:
		r.Data = plain(r.Data)
	case *Publish:
		r.Data = plain(r.Data)
	case *Command:
		r.Data = plain(r.Data)
	}
	return r
}

func jsonData(s string) Data { return Data{JSON, []byte(s)} }

// requestCases are golden vectors: testdata/golden/client/NAME.
var requestCases = []struct {
	name    string
	message string
	want    Request
}{
	{"hello", `{"t":"hello"}`, &Hello{}},
	{"hello-full", `{"t":"hello","token":"eyJ","client":"web/1","accept":["a","b"],"resume":"r1","rooms":[{"room":"chat"},{"room":"chat:1","epoch":"ep1","offset":7,"presence":true,"echo":false,"data":{"nick":"Zoë"}},{"room":"no room"}]}`,
		&Hello{Token: "eyJ", Client: "web/1", Accept: []string{"a", "b"}, Resume: "r1", Rooms: []HelloRoom{
			{Join: Join{Room: "chat"}},
			{Join: Join{Room: "chat:1", Position: Position{"ep1", 7}, HasPosition: true, Presence: true, NoEcho: true, Data: jsonData(`{"nick":"Zoë"}`)}},
			{Join: Join{Room: "no room"}, Err: NewError(CodeBadRequest, "room is outside the grammar")},
		}}},
	{"join", `{"t":"join","id":1,"room":"chat:lobby"}`, &Join{ID: 1, Room: "chat:lobby"}},
	{"join-full", `{"t":"join","id":9007199254740991,"room":"chat:lobby","epoch":"ep1","offset":0,"presence":true,"echo":false,"data":null}`,
		&Join{ID: MaxOffset, Room: "chat:lobby", Position: Position{"ep1", 0}, HasPosition: true, Presence: true, NoEcho: true, Data: jsonData("null")}},
	{"leave", `{"t":"leave","id":2,"room":"chat:lobby"}`, &Leave{ID: 2, Room: "chat:lobby"}},
	{"publish", `{"t":"publish","room":"chat:lobby","event":"said","data":"hi"}`,
		&Publish{Room: "chat:lobby", Event: "said", Data: jsonData(`"hi"`)}},
	{"publish-full", `{"t":"publish","id":3,"room":"chat:lobby","event":"said","data":{"text":"hi","n":[1,-2,2.5,18446744073709551615]},"dedup_key":"k1","ttl_ms":1500}`,
		&Publish{ID: 3, Room: "chat:lobby", Event: "said", Data: jsonData(`{"text":"hi","n":[1,-2,2.5,18446744073709551615]}`), DedupKey: "k1", TTL: 1500 * time.Millisecond, HasTTL: true}},
	{"command", `{"t":"command","id":4,"name":"roll"}`, &Command{ID: 4, Name: "roll"}},
	{"command-full", `{"t":"command","id":4,"room":"game:1","name":"roll","data":{"dice":2},"deadline_ms":250,"dedup_key":"k2"}`,
		&Command{ID: 4, Room: "game:1", Name: "roll", Data: jsonData(`{"dice":2}`), Deadline: 250 * time.Millisecond, HasDeadline: true, DedupKey: "k2"}},
	{"ack", `{"t":"ack","room":"chat:lobby","epoch":"ep1","offset":12}`, &Ack{Room: "chat:lobby", Position: Position{"ep1", 12}}},
	{"history", `{"t":"history","id":5,"room":"chat:lobby"}`, &History{ID: 5, Room: "chat:lobby", Limit: 100}},
	{"history-full", `{"t":"history","id":5,"room":"chat:lobby","epoch":"ep1","offset":12,"limit":5000,"reverse":true}`,
		&History{ID: 5, Room: "chat:lobby", Position: Position{"ep1", 12}, HasPosition: true, Limit: 1000, Reverse: true}},
	{"presence", `{"t":"presence","id":6,"room":"chat:lobby"}`, &PresenceQuery{ID: 6, Room: "chat:lobby", Limit: 100}},
	{"presence-full", `{"t":"presence","id":6,"room":"chat:lobby","limit":10,"after":"bob"}`,
		&PresenceQuery{ID: 6, Room: "chat:lobby", Limit: 10, After: "bob"}},
	{"token", `{"t":"token","id":7,"token":"eyJ"}`, &Token{ID: 7, Token: "eyJ"}},
	{"ping", `{"t":"ping"}`, &Ping{}},
	{"ping-id", `{"t":"ping","id":8}`, &Ping{ID: 8}},
	{"pong", `{"t":"pong"}`, &Pong{}},
}

func TestDecodeRequests(t *testing.T) {
	for _, c := range requestCases {
		for _, codec := range []Codec{JSON, Msgpack} {
			t.Run(c.name+"/"+codec.String(), func(t *testing.T) {
				got, err := decodeOne(codec, inCodec(t, codec, c.message))
				if err != nil {
					t.Fatal(err)
				}
				if got := plainRequest(got); !reflect.DeepEqual(got, c.want) {
					t.Errorf("got  %+v\nwant %+v", got, c.want)
				}
			})
		}
	}
}

// Spelling does not matter: fields in any order, unknown ones, nulls for what is
// optional, integral floats, escapes in keys and values.
func TestDecodeSpellings(t *testing.T) {
	for _, c := range []struct{ rule, message, same string }{
		{"order", `{"offset":7,"room":"chat","epoch":"e","t":"ack"}`, `{"t":"ack","room":"chat","epoch":"e","offset":7}`},
		{"unknown fields", `{"t":"leave","id":1,"room":"chat","x":{"room":[1,2]},"y":null}`, `{"t":"leave","id":1,"room":"chat"}`},
		{"fields of other frames", `{"t":"leave","id":1,"room":"chat","data":1e999,"limit":"x"}`, `{"t":"leave","id":1,"room":"chat"}`},
		{"null is absent", `{"t":"publish","id":null,"room":"chat","event":"e","data":1,"dedup_key":null,"ttl_ms":null}`, `{"t":"publish","room":"chat","event":"e","data":1}`},
		{"null is absent in a join", `{"t":"join","id":1,"room":"chat","epoch":null,"offset":null,"presence":null,"echo":null}`, `{"t":"join","id":1,"room":"chat"}`},
		{"null is absent in a command", `{"t":"command","id":1,"room":null,"name":"n","deadline_ms":null}`, `{"t":"command","id":1,"name":"n"}`},
		{"null is absent in a hello", `{"t":"hello","token":null,"client":null,"accept":null,"resume":null,"rooms":null}`, `{"t":"hello"}`},
		{"integral floats", `{"t":"history","id":1.0,"room":"chat","epoch":"e","offset":1.2e1,"limit":5e0}`, `{"t":"history","id":1,"room":"chat","epoch":"e","offset":12,"limit":5}`},
		{"escapes", `{"\u0074":"le\u0061ve","id":1,"room":"\u0063hat"}`, `{"t":"leave","id":1,"room":"chat"}`},
		{"a huge ttl is the longest", `{"t":"publish","room":"chat","event":"e","data":1,"ttl_ms":1e300}`, `{"t":"publish","room":"chat","event":"e","data":1,"ttl_ms":9223372036854775807}`},
		{"an id means nothing to an ack", `{"t":"ack","id":"x","room":"chat","epoch":"e","offset":7}`, `{"t":"ack","room":"chat","epoch":"e","offset":7}`},
		{"case counts in names of fields", `{"t":"leave","T":"join","id":1,"ID":2,"room":"chat","Room":"x"}`, `{"t":"leave","id":1,"room":"chat"}`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for _, codec := range []Codec{JSON, Msgpack} {
				got, err := decodeOne(codec, inCodec(t, codec, c.message))
				if err != nil {
					t.Fatal(codec, err)
				}
				want, err := decodeOne(codec, inCodec(t, codec, c.same))
				if err != nil {
					t.Fatal(codec, err)
				}
				if !reflect.DeepEqual(plainRequest(got), plainRequest(want)) {
					t.Errorf("%s: got %+v, want %+v", codec, got, want)
				}
			}
		})
	}
}

// What a request is refused for before anyone looks at it.
func TestDecodeFaults(t *testing.T) {
	for _, c := range []struct {
		rule, message string
		id            uint64
		typ, room     string
		code          Code
	}{
		{"no id where one is needed", `{"t":"join","room":"chat"}`, 0, "join", "chat", CodeBadRequest},
		{"null id where one is needed", `{"t":"join","id":null,"room":"chat"}`, 0, "join", "chat", CodeBadRequest},
		{"id 0", `{"t":"leave","id":0,"room":"chat"}`, 0, "leave", "chat", CodeBadRequest},
		{"negative id", `{"t":"ping","id":-1}`, 0, "ping", "", CodeBadRequest},
		{"id of 2^53", `{"t":"ping","id":9007199254740992}`, 0, "ping", "", CodeBadRequest},
		{"id of 2^64", `{"t":"ping","id":18446744073709551616}`, 0, "ping", "", CodeBadRequest},
		{"id with a fraction", `{"t":"publish","id":1.5,"room":"chat","event":"e","data":1}`, 0, "publish", "chat", CodeBadRequest},
		{"id is text", `{"t":"publish","id":"1","room":"chat","event":"e","data":1}`, 0, "publish", "chat", CodeBadRequest},
		{"no room", `{"t":"leave","id":1}`, 1, "leave", "", CodeBadRequest},
		{"room is no text", `{"t":"leave","id":1,"room":5}`, 1, "leave", "", CodeBadRequest},
		{"room outside the grammar", `{"t":"leave","id":1,"room":"a b"}`, 1, "leave", "", CodeBadRequest},
		{"a command's room too", `{"t":"command","id":1,"room":"a b","name":"n"}`, 1, "command", "", CodeBadRequest},
		{"no event", `{"t":"publish","id":1,"room":"chat","data":1}`, 1, "publish", "chat", CodeBadRequest},
		{"event outside the grammar", `{"t":"publish","id":1,"room":"chat","event":"a:b","data":1}`, 1, "publish", "chat", CodeBadRequest},
		{"command outside the grammar", `{"t":"command","id":1,"name":".."}`, 1, "command", "", CodeBadRequest},
		{"no data in a publish", `{"t":"publish","id":1,"room":"chat","event":"e"}`, 1, "publish", "chat", CodeBadRequest},
		{"data too deep", `{"t":"publish","id":1,"room":"chat","event":"e","data":` + deep(49) + `}`, 1, "publish", "chat", CodeBadRequest},
		{"dedup_key empty", `{"t":"publish","id":1,"room":"chat","event":"e","data":1,"dedup_key":""}`, 1, "publish", "chat", CodeBadRequest},
		{"dedup_key of 257", `{"t":"publish","id":1,"room":"chat","event":"e","data":1,"dedup_key":"` + strings.Repeat("k", 257) + `"}`, 1, "publish", "chat", CodeBadRequest},
		{"ttl below 0", `{"t":"publish","id":1,"room":"chat","event":"e","data":1,"ttl_ms":-1}`, 1, "publish", "chat", CodeBadRequest},
		{"ttl with a fraction", `{"t":"publish","id":1,"room":"chat","event":"e","data":1,"ttl_ms":0.5}`, 1, "publish", "chat", CodeBadRequest},
		{"deadline is text", `{"t":"command","id":1,"name":"n","deadline_ms":"5"}`, 1, "command", "", CodeBadRequest},
		{"epoch without offset", `{"t":"join","id":1,"room":"chat","epoch":"e"}`, 1, "join", "chat", CodeBadRequest},
		{"offset without epoch", `{"t":"history","id":1,"room":"chat","offset":1}`, 1, "history", "chat", CodeBadRequest},
		{"ack without a position", `{"t":"ack","room":"chat"}`, 0, "ack", "chat", CodeBadRequest},
		{"ack without an offset", `{"t":"ack","room":"chat","epoch":"e"}`, 0, "ack", "chat", CodeBadRequest},
		{"epoch of 17", `{"t":"join","id":1,"room":"chat","epoch":"12345678901234567","offset":1}`, 1, "join", "chat", CodeBadRequest},
		{"epoch empty", `{"t":"join","id":1,"room":"chat","epoch":"","offset":1}`, 1, "join", "chat", CodeBadRequest},
		{"offset below 0", `{"t":"join","id":1,"room":"chat","epoch":"e","offset":-1}`, 1, "join", "chat", CodeBadRequest},
		{"offset of 2^53", `{"t":"join","id":1,"room":"chat","epoch":"e","offset":9007199254740992}`, 1, "join", "chat", CodeBadRequest},
		{"presence is no boolean", `{"t":"join","id":1,"room":"chat","presence":1}`, 1, "join", "chat", CodeBadRequest},
		{"echo is no boolean", `{"t":"join","id":1,"room":"chat","echo":"false"}`, 1, "join", "chat", CodeBadRequest},
		{"limit below 1", `{"t":"history","id":1,"room":"chat","limit":0}`, 1, "history", "chat", CodeBadRequest},
		{"limit of presence below 1", `{"t":"presence","id":1,"room":"chat","limit":-5}`, 1, "presence", "chat", CodeBadRequest},
		{"after is no subject", `{"t":"presence","id":1,"room":"chat","after":""}`, 1, "presence", "chat", CodeBadRequest},
		{"no token", `{"t":"token","id":1}`, 1, "token", "", CodeBadRequest},
		{"token is no text", `{"t":"token","id":1,"token":["x"]}`, 1, "token", "", CodeBadRequest},
		{"unknown type with id", `{"t":"dance","id":1}`, 1, "", "", CodeUnknownType},
		{"unknown type without id", `{"t":"dance"}`, 0, "", "", CodeUnknownType},
		{"unknown type with a bad id", `{"t":"dance","id":"x"}`, 0, "", "", CodeUnknownType},
		{"the server's own types are unknown from a client", `{"t":"event","id":1,"room":"chat"}`, 1, "", "", CodeUnknownType},
		{"an empty type is unknown", `{"t":""}`, 0, "", "", CodeUnknownType},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for _, codec := range []Codec{JSON, Msgpack} {
				message := inCodec(t, codec, c.message)
				r, err := decodeOne(codec, message)
				if err != nil {
					t.Fatal(codec, err)
				}
				f, ok := r.(*Fault)
				if !ok {
					t.Fatalf("%s: %+v is no fault", codec, r)
				}
				if f.ID != c.id || f.Type != c.typ || f.Room != c.room || f.Err.Code != c.code || f.RequestID() != c.id {
					t.Errorf("%s: got %d %q %q %s (%s)", codec, f.ID, f.Type, f.Room, f.Err.Code, f.Err.Message)
				}
			}
		})
	}
}

// Frames that end the connection although their syntax is right.
func TestDecodeMalformed(t *testing.T) {
	for _, c := range []struct{ rule, message string }{
		{"no t", `{"id":1}`},
		{"t is null", `{"t":null}`},
		{"t is a number", `{"t":1}`},
		{"t is an array", `{"t":["ping"]}`},
		{"hello: token is no text", `{"t":"hello","token":1}`},
		{"hello: resume is no text", `{"t":"hello","resume":{}}`},
		{"hello: client is no text", `{"t":"hello","client":false}`},
		{"hello: client of 129", `{"t":"hello","client":"` + strings.Repeat("c", 129) + `"}`},
		{"hello: accept is no list", `{"t":"hello","accept":"a"}`},
		{"hello: accept holds a number", `{"t":"hello","accept":["a",1]}`},
		{"hello: rooms is no list", `{"t":"hello","rooms":{"room":"chat"}}`},
		{"hello: a room that is text", `{"t":"hello","rooms":["chat"]}`},
		{"hello: a room that is null", `{"t":"hello","rooms":[null]}`},
		{"hello: an entry without room", `{"t":"hello","rooms":[{"room":"chat"},{"epoch":"e","offset":1}]}`},
		{"hello: an entry with room null", `{"t":"hello","rooms":[{"room":null}]}`},
		{"hello: an entry whose room is a number", `{"t":"hello","rooms":[{"room":1}]}`},
		{"hello: an entry whose offset is text", `{"t":"hello","rooms":[{"room":"chat","epoch":"e","offset":"1"}]}`},
		{"hello: an entry whose presence is a number", `{"t":"hello","rooms":[{"room":"chat","presence":1}]}`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for _, codec := range []Codec{JSON, Msgpack} {
				list, err := Protocols()[codec].Decode(nil, inCodec(t, codec, c.message))
				if !errors.Is(err, ErrMalformed) || len(list) != 0 {
					t.Errorf("%s: %v, %v", codec, list, err)
				}
			}
		})
	}
}

// Each room of a hello is refused by itself.
func TestDecodeHelloRoomFaults(t *testing.T) {
	for _, c := range []struct{ rule, entry string }{
		{"room outside the grammar", `{"room":"a b"}`},
		{"room empty", `{"room":""}`},
		{"epoch without offset", `{"room":"chat","epoch":"e"}`},
		{"offset without epoch", `{"room":"chat","offset":1}`},
		{"offset below 0", `{"room":"chat","epoch":"e","offset":-1}`},
		{"data too deep", `{"room":"chat","data":` + deep(49) + `}`},
		{"data that msgpack cannot say", `{"room":"chat","data":1e999}`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			message := `{"t":"hello","rooms":[{"room":"first"},` + c.entry + `,{"room":"last"}]}`
			r, err := decodeOne(JSON, []byte(message))
			if err != nil {
				t.Fatal(err)
			}
			rooms := r.(*Hello).Rooms
			if len(rooms) != 3 || rooms[0].Err != nil || rooms[1].Err == nil || rooms[2].Err != nil {
				t.Fatalf("%+v", rooms)
			}
			if rooms[1].Err.Code != CodeBadRequest || !strings.Contains(c.entry, fmt.Sprintf(`"room":%q`, rooms[1].Room)) {
				t.Errorf("%+v", rooms[1])
			}
		})
	}
	r, err := decodeOne(Msgpack, unhex(t, "82 a174 a568656c6c6f a5726f6f6d73 91 82 a4726f6f6d a463686174 a464617461 81 01 02"))
	if err != nil || r.(*Hello).Rooms[0].Err == nil {
		t.Errorf("a key that is no text in the data of a room: %+v, %v", r, err)
	}
}

// Messages of refusals are fixed text: nothing of the input comes back.
func TestFaultsRepeatNoInput(t *testing.T) {
	r, err := decodeOne(JSON, []byte(`{"t":"publish","id":1,"room":"ZZZ ZZZ","event":"ZZZ:","data":1,"dedup_key":5}`))
	if f, ok := r.(*Fault); err != nil || !ok || strings.Contains(f.Err.Message, "ZZZ") || f.Room != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A request shares a message that is little more than its data, and copies what
// it needs out of any other: a stored event pins no more than its own size and
// aliasSlack.
func TestDecodePinsLittle(t *testing.T) {
	big := strings.Repeat("x", 4<<10)
	for _, c := range []struct {
		rule, message string
		shares        bool
	}{
		{"a small frame is shared", `{"t":"publish","room":"chat","event":"e","data":"small"}`, true},
		{"large data is shared", `{"t":"publish","room":"chat","event":"e","data":"` + big + `"}`, true},
		{"a frame full of something else is copied", `{"t":"publish","room":"chat","event":"e","data":"small","junk":"` + big + `"}`, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for _, codec := range []Codec{JSON, Msgpack} {
				message := inCodec(t, codec, c.message)
				r, err := decodeOne(codec, message)
				if err != nil {
					t.Fatal(err)
				}
				p := r.(*Publish)
				before := string(p.Data.Raw())
				clear(message)
				if shares := string(p.Data.Raw()) != before; shares != c.shares {
					t.Errorf("%s: data shares the message: %v", codec, shares)
				}
				if shares := p.Room != "chat"; shares != c.shares {
					t.Errorf("%s: room shares the message: %v", codec, shares)
				}
			}
		})
	}
}

// A publish costs the request itself. The decoder is the test's own: what a pool
// keeps is not to be relied on.
func TestDecodeAllocates(t *testing.T) {
	d := newDecoder()
	for _, c := range []Codec{JSON, Msgpack} {
		message := publishFrame(t, c)
		n := testing.AllocsPerRun(100, func() {
			if _, err := d.request(c, message); err != nil {
				t.Fatal(err)
			}
			d.forget()
		})
		if n != 1 {
			t.Errorf("%s: %v allocations", c, n)
		}
	}
}

// A duration that Go cannot say is the longest that it can.
func TestDecodeLongestDuration(t *testing.T) {
	for _, ms := range []string{"9223372036854775807", "18446744073709551615", "99999999999999999999999", "1e300", "9223372036855"} {
		r, err := decodeOne(JSON, []byte(`{"t":"publish","room":"chat","event":"e","data":1,"ttl_ms":`+ms+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := r.(*Publish); !ok || p.TTL < math.MaxInt64-time.Millisecond {
			t.Errorf("%s ms became %+v", ms, r)
		}
	}
}
