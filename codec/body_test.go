package codec

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

// A body is the frame without t, id, room and name, which stand in the path.
func TestDecodeBody(t *testing.T) {
	for _, test := range []struct {
		name, t, room, command, body string
		want                         Request
	}{
		{"publish", "publish", "chat:1", "", `{"event":"message","data":{"a":1},"dedup_key":"k","ttl_ms":5}`,
			&Publish{Room: "chat:1", Event: "message", Data: Data{JSON, []byte(`{"a":1}`)}, DedupKey: "k", TTL: 5 * time.Millisecond, HasTTL: true}},
		{"the path wins", "publish", "chat:1", "", `{"t":"join","id":7,"room":"other:2","event":"message","data":null}`,
			&Publish{Room: "chat:1", Event: "message", Data: Data{JSON, []byte(`null`)}}},
		{"command", "command", "chat:1", "roll", `{"data":6,"deadline_ms":9,"name":"other"}`,
			&Command{Room: "chat:1", Name: "roll", Data: Data{JSON, []byte(`6`)}, Deadline: 9 * time.Millisecond, HasDeadline: true}},
		{"history", "history", "chat:1", "", `{"epoch":"e","offset":3,"limit":2000,"reverse":true}`,
			&History{Room: "chat:1", Position: Position{"e", 3}, HasPosition: true, Limit: 1000, Reverse: true}},
		{"presence", "presence", "chat:1", "", `{"after":"bob"}`, &PresenceQuery{Room: "chat:1", Limit: 100, After: "bob"}},
		{"a room outside the grammar", "history", `chat:"`, "", `{}`,
			&Fault{Type: "history", Err: NewError(CodeBadRequest, "room is outside the grammar")}},
		{"a name outside the grammar", "command", "chat:1", "a b", `{}`,
			&Fault{Type: "command", Room: "chat:1", Err: NewError(CodeBadRequest, "the name of the event or command is outside the grammar")}},
		{"a field of the wrong type", "publish", "chat:1", "", `{"event":1,"data":1}`,
			&Fault{Type: "publish", Room: "chat:1", Err: NewError(CodeBadRequest, "a field that must be text is none")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, c := range []Codec{JSON, Msgpack} {
				body := []byte(test.body)
				if c == Msgpack {
					body = mustData(t, JSON, []byte(test.body)).In(Msgpack)
				}
				got, err := DecodeBody(c, test.t, test.room, test.command, body)
				if err != nil {
					t.Fatal(c, err)
				}
				inJSON(got)
				if !reflect.DeepEqual(got, test.want) {
					t.Errorf("%v: %#v, want %#v", c, got, test.want)
				}
			}
		})
	}
	for _, body := range []string{``, `[]`, `{"data":1,"data":2}`, `{}x`, "{\"event\":\"\xff\"}"} {
		if r, err := DecodeBody(JSON, "publish", "chat:1", "", []byte(body)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q is read as %#v, %v", body, r, err)
		}
	}
}

// inJSON puts a request's data in JSON, for comparing.
func inJSON(r Request) {
	switch r := r.(type) {
	case *Publish:
		r.Data = Data{JSON, r.Data.In(JSON)}
	case *Command:
		r.Data = Data{JSON, r.Data.In(JSON)}
	}
}
