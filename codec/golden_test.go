package codec

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

var update = flag.Bool("update", false, "rewrite testdata/golden from what the code does")

func goldenEvent(name string, data Data, p Position) *Event {
	return NewEvent(Topic{"", "chat:lobby"}, name, data, Origin{EID: "e" + name, From: "alice", Session: "s1", TS: 1764500000000}).At(p)
}

// documentCases are golden vectors: testdata/golden/server/NAME. Their data is
// JSON in its shortest form, so that it comes back from msgpack as it was.
var documentCases = []struct {
	name string
	doc  Document
}{
	{"welcome", &Welcome{Session: "s1", Resume: "sealed", ResumeTTL: time.Minute, Resumed: true, Node: "n1", Tenant: "acme", Subject: "alice",
		Transport: "websocket", Codec: Msgpack, Compression: true, Accept: []string{"a"}, Ping: 25 * time.Second, Pong: 10 * time.Second,
		MaxMessageBytes: 65536, MaxFrameBytes: 524288, Now: 1764500000000, Exp: 1764503600000, Live: true, Rooms: []WelcomeRoom{
			{Room: "chat:lobby", OK: &JoinResult{Room: "chat:lobby", Position: Position{"ep1", 7}, Recovered: true}},
			{Room: "no \"room\"", Err: NewError(CodeBadRequest, "room is outside the grammar")},
		}}},
	{"welcome-stream", &Welcome{Session: "s1", Node: "n1", Tenant: "acme", Subject: "alice", Transport: "sse"}},
	{"reply-err", &Reply{ID: 9, Err: NewError(CodeForbidden, "not allowed")}},
	{"reply-err-retry", &Reply{ID: 9, Err: &Error{Code: CodeRateLimited, Message: "too many", RetryAfter: 1500 * time.Microsecond, Scope: ScopeTenant, Data: jsonData(`{"left":0}`)}}},
	{"reply-join", &Reply{ID: MaxOffset, OK: &JoinResult{Room: "chat:lobby", Position: Position{"ep1", 7}}}},
	{"reply-join-full", &Reply{ID: 9, OK: &JoinResult{Room: "chat:lobby", Position: Position{"ep2", 70}, Reset: ResetEpoch, After: 250 * time.Millisecond,
		PE: "p1", Seq: 3, Count: 2, Members: []Member{{Subject: "alice", Sessions: 2, Data: jsonData(`{"nick":"A"}`)}, {Subject: "bob", Sessions: 1}}, Data: jsonData(`[1,2]`)}}},
	{"reply-join-count", &Reply{ID: 9, OK: &JoinResult{Room: "chat:lobby", Position: Position{"ep1", 7}, PE: "p1", Seq: 3, Count: 90000}}},
	{"reply-leave", &Reply{ID: 9, OK: &LeaveResult{Room: "chat:lobby"}}},
	{"reply-publish", &Reply{ID: 9, OK: &PublishResult{Outcome: Accepted, EID: "e1", Position: Position{"ep1", 8}, Duplicate: true}}},
	{"reply-publish-transient", &Reply{ID: 9, OK: &PublishResult{Outcome: Coalesced, EID: "e1"}}},
	{"reply-command", &Reply{ID: 9, OK: &CommandResult{Data: jsonData(`{"dice":[3,4]}`)}}},
	{"reply-command-duplicate", &Reply{ID: 9, OK: &CommandResult{Data: jsonData(`1`), Duplicate: true}}},
	{"reply-command-null", &Reply{ID: 9, OK: &CommandResult{Data: jsonData(`null`)}}},
	{"reply-history", &Reply{ID: 9, OK: &HistoryResult{Room: "chat:lobby", Position: Position{"ep1", 8}, More: true, Events: []*Event{
		goldenEvent("said", jsonData(`"a"`), Position{"ep1", 7}), goldenEvent("said", jsonData(`"b"`), Position{"ep1", 8})}}}},
	{"reply-history-reset", &Reply{ID: 9, OK: &HistoryResult{Room: "chat:lobby", Position: Position{"ep1", 8}, Reset: ResetExpired}}},
	{"reply-presence", &Reply{ID: 9, OK: &PresenceResult{Room: "chat:lobby", PE: "p1", Seq: 3, Count: 2, Members: []Member{{Subject: "alice", Sessions: 2}}, After: "alice"}}},
	{"reply-token", &Reply{ID: 9, OK: &TokenResult{Exp: 1764503600000, Resume: "sealed"}}},
	{"event", goldenEvent("said", jsonData(`{"text":"hi \"there\"\n","n":[0,-1,127,128,255,256,65535,65536,4294967295,4294967296,-33,-129,-32769,-2147483649],"f":[0.5,-2.5e-09,1e+300],"b":[true,false,null],"u":18446744073709551615,"i":-9223372036854775808}`), Position{"ep1", 812})},
	{"event-transient", NewEvent(Topic{"", "chat"}, "moved", jsonData(`[]`), Origin{EID: "e2", TS: 1764500000001})},
	{"presence-changes", &PresenceFrame{Room: "chat:lobby", PE: "p1", Seq: 5, Prev: 4, Join: []Member{{Subject: "alice", Sessions: 1}}, Update: []Member{{Subject: "bob", Sessions: 2, Data: jsonData(`{"away":true}`)}}, Leave: []string{"carol"}}},
	{"presence-full", &PresenceFrame{Room: "chat:lobby", PE: "p2", Seq: 1, Full: true, Members: []Member{{Subject: "alice", Sessions: 1}}, Count: 1}},
	{"presence-count", &PresenceFrame{Room: "chat:lobby", PE: "p1", Seq: 6, Prev: 5, Count: 0}},
	{"position", &PositionFrame{Room: "chat:lobby", Position: Position{"ep1", 9}}},
	{"reset", &Reset{Room: "chat:lobby", Reason: ResetOverflow, Position: Position{"ep1", 900}, Data: jsonData(`{"score":1}`), After: 2 * time.Second}},
	{"reset-plain", &Reset{Room: "chat:lobby", Reason: ResetExpired, Position: Position{"ep1", 0}}},
	{"left", &Left{Room: "chat:lobby", Reason: LeftKicked}},
	{"status", &Status{Live: true}},
	{"status-reason", &Status{Reason: "bridge"}},
	{"expiring", &Expiring{In: 30 * time.Second}},
	{"drain", &Drain{ReconnectMin: time.Second, ReconnectMax: 20 * time.Second, Deadline: 30 * time.Second, Reason: "restart"}},
	{"ping", &Ping{}},
	{"pong", &Pong{}},
	{"pong-id", &Pong{ID: 8}},
	{"error", &ErrorFrame{Err: NewError(CodeBadRequest, "data is missing"), Re: "publish", Room: "chat:lobby"}},
	{"error-retry", &ErrorFrame{Err: Retry(CodeBackpressured, ScopeRoom, 0, "full")}},
}

// golden compares both codings of a frame with its files: NAME.json is the text,
// NAME.msgpack the bytes in hex with the JSON beside them.
func golden(t *testing.T, name string, text, packed []byte) {
	t.Helper()
	base := filepath.Join("testdata", "golden", name)
	files := map[string]string{
		base + ".json":    string(text) + "\n",
		base + ".msgpack": hex.EncodeToString(packed) + "\n" + string(text) + "\n",
	}
	for file, content := range files {
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != content {
			t.Errorf("%s\ngot  %s\nwant %s", file, content, want)
		}
	}
}

func TestGoldenDocuments(t *testing.T) {
	for _, c := range documentCases {
		t.Run(c.name, func(t *testing.T) {
			text := Protocols()[JSON].Append(nil, c.doc)
			packed := Protocols()[Msgpack].Append(nil, c.doc)
			golden(t, "server/"+c.name, text, packed)
			sameByLibraries(t, text, packed)
			decoded, err := DecodeDocument(JSON, text)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(decoded, wireForm(c.doc)) {
				t.Errorf("decoded from JSON: %+v, want %+v", decoded, c.doc)
			}
			crossed, err := DecodeDocument(Msgpack, packed)
			if err != nil {
				t.Fatal(err)
			}
			if got := Protocols()[JSON].Append(nil, crossed); !bytes.Equal(got, text) {
				t.Errorf("from msgpack back to JSON\n%s\nwant %s", got, text)
			}
			if got := Protocols()[Msgpack].Append(nil, decoded); !bytes.Equal(got, packed) {
				t.Errorf("from JSON back to msgpack\n%x\nwant %x", got, packed)
			}
		})
	}
}

// wireForm is what is left of a document on the wire: durations in whole
// milliseconds, rounded up.
func wireForm(d Document) Document {
	if r, ok := d.(*Reply); ok && r.Err != nil && r.Err.Code.Retryable() {
		e := *r.Err
		e.RetryAfter = time.Duration(e.RetryAfterMS()) * time.Millisecond
		return &Reply{ID: r.ID, Err: &e}
	}
	if f, ok := d.(*ErrorFrame); ok && f.Err.Code.Retryable() {
		e := *f.Err
		e.RetryAfter = time.Duration(e.RetryAfterMS()) * time.Millisecond
		return &ErrorFrame{Err: &e, Re: f.Re, Room: f.Room}
	}
	return d
}

func TestGoldenRequests(t *testing.T) {
	for _, c := range requestCases {
		t.Run(c.name, func(t *testing.T) {
			packed := inCodec(t, Msgpack, c.message)
			golden(t, "client/"+c.name, []byte(c.message), packed)
			sameByLibraries(t, []byte(c.message), packed)
		})
	}
}

// Every file belongs to a case, so that a renamed one leaves nothing behind.
func TestGoldenFilesHaveCases(t *testing.T) {
	cases := map[string]bool{}
	for _, c := range requestCases {
		cases["client/"+c.name+".json"], cases["client/"+c.name+".msgpack"] = true, true
	}
	for _, c := range documentCases {
		cases["server/"+c.name+".json"], cases["server/"+c.name+".msgpack"] = true, true
	}
	for _, c := range envelopeCases {
		cases["envelope/"+c.name+".hex"] = true
	}
	files, err := filepath.Glob("testdata/golden/*/*")
	if err != nil || len(files) != len(cases) {
		t.Errorf("%d files for %d cases, %v", len(files), len(cases), err)
	}
	for _, file := range files {
		if !cases[strings.TrimPrefix(file, "testdata/golden/")] {
			t.Errorf("%s belongs to no case", file)
		}
	}
}

// sameByLibraries checks that encoding/json and the msgpack library read the same
// from two codings. Bin has its place in other tests.
func sameByLibraries(t *testing.T, text, packed []byte) {
	t.Helper()
	var fromJSON any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&fromJSON); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var fromPack any
	if err := msgpack.Unmarshal(packed, &fromPack); err != nil {
		t.Fatalf("%v: %x", err, packed)
	}
	if a, b := plainValue(fromJSON), plainValue(fromPack); !reflect.DeepEqual(a, b) {
		t.Errorf("the libraries read different things\n%v\n%v", a, b)
	}
}

// plainValue brings what a library decodes to float64 and integer texts.
func plainValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[k] = plainValue(e)
		}
		return m
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, plainValue(e))
		}
		return list
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			f, _ := v.Float64()
			return f
		}
		return string(v)
	case int8, int16, int32, int64, uint8, uint16, uint32, uint64:
		text, _ := json.Marshal(v)
		return string(text)
	}
	return v
}

func TestDecodeDocumentRefuses(t *testing.T) {
	for _, c := range []struct {
		rule, message string
		want          error
	}{
		{"unknown type", `{"t":"dance"}`, ErrUnknownType},
		{"a client's type", `{"t":"publish"}`, ErrUnknownType},
		{"no t", `{}`, ErrMalformed},
		{"no object", `[]`, ErrMalformed},
		{"repeated key", `{"t":"ping","t":"ping"}`, ErrMalformed},
		{"a field of the wrong type", `{"t":"left","room":1}`, ErrMalformed},
		{"a negative offset", `{"t":"position","room":"a","epoch":"e","offset":-1}`, ErrMalformed},
		{"ok and err", `{"t":"reply","id":1,"ok":{"data":1},"err":{"code":"internal","message":""}}`, ErrMalformed},
		{"neither ok nor err", `{"t":"reply","id":1}`, ErrMalformed},
		{"a welcome whose room has neither ok nor err", `{"t":"welcome","rooms":[{"room":"chat"}]}`, ErrMalformed},
		{"half a range", `{"t":"drain","reconnect_ms":[1],"deadline_ms":1,"reason":""}`, ErrMalformed},
		{"data that cannot be", `{"t":"event","room":"a","event":"e","data":1e999,"eid":"x","ts":1}`, ErrMalformed},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for _, codec := range []Codec{JSON, Msgpack} {
				message := inCodec(t, codec, c.message)
				if d, err := DecodeDocument(codec, message); !errors.Is(err, c.want) {
					t.Errorf("%s: %+v, %v", codec, d, err)
				}
			}
		})
	}
}

// B121: elevenlabs/packages#821. An older client passes over what later servers may
// add: fields, words of a list, codes. A field that may be absent may as well be null,
// and both read alike.
func TestB121_DocumentsOfLaterServers(t *testing.T) {
	d, err := DecodeDocument(JSON, []byte(`{"t":"error","code":"brand_new","message":"m","scope":"planet","later":[{"x":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if e := d.(*ErrorFrame).Err; e.Code != 0 || e.Code.Retryable() || e.Scope != ScopeNone || e.Message != "m" {
		t.Errorf("%+v", e)
	}
	d, err = DecodeDocument(JSON, []byte(`{"t":"left","room":"chat","reason":"brand_new"}`))
	if err != nil || d.(*Left).Reason != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	const null = `{"t":"reset","room":"chat","reason":"epoch","epoch":"e","offset":1,"after_ms":null,"later":null}`
	for _, text := range []string{null, strings.NewReplacer(`"after_ms":null,`, "", `,"later":null`, "").Replace(null)} {
		for _, c := range []Codec{JSON, Msgpack} {
			d, err := DecodeDocument(c, inCodec(t, c, text))
			want := &Reset{Room: "chat", Reason: ResetEpoch, Position: Position{"e", 1}}
			if err != nil || !reflect.DeepEqual(d, want) {
				t.Errorf("%s in %s: %+v, %v", text, c, d, err)
			}
		}
	}
	d, err = DecodeDocument(JSON, []byte(`{"t":"event","room":"chat","event":"e","data":null,"eid":"x","from":null,"session":null,"epoch":null,"offset":null,"ts":1}`))
	if e, ok := d.(*Event); err != nil || !ok || e.Data.IsZero() || e.From != "" || !e.Position.IsZero() {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := DecodeDocument(JSON, []byte(`{"t":"brand_new","id":null}`)); !errors.Is(err, ErrUnknownType) {
		t.Errorf("%v", err)
	}
}

func TestAppendAnswer(t *testing.T) {
	if got := string(AppendAnswer(nil, JSON, &LeaveResult{Room: "chat"}, nil)); got != `{"ok":{"room":"chat"}}` {
		t.Error(got)
	}
	if got := string(AppendAnswer([]byte("x"), JSON, nil, Retry(CodeDraining, ScopeNode, time.Second, "leaving"))); got != `x{"err":{"code":"draining","message":"leaving","retry_after_ms":1000,"scope":"node"}}` {
		t.Error(got)
	}
}

func TestAbsentDataIsSentAsNull(t *testing.T) {
	for _, p := range Protocols() {
		for _, d := range []Document{NewEvent(Topic{"acme", "chat"}, "e", Data{}, Origin{}), &Reply{ID: 1, OK: &CommandResult{}}} {
			got, err := DecodeDocument(p.Codec(), p.Append(nil, d))
			if err != nil {
				t.Fatal(err)
			}
			var data Data
			switch got := got.(type) {
			case *Event:
				data = got.Data
			case *Reply:
				data = got.OK.(*CommandResult).Data
			}
			if string(data.In(JSON)) != "null" {
				t.Errorf("%T over %s has the data %q", got, p.Name(), data.Raw())
			}
		}
	}
}
