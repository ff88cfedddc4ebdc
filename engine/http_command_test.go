package engine

import (
	"errors"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
)

// dice is a handler of commands.
type dice struct{ rolls int }

func (*dice) Publish(*room.Context, *room.Event) error { return nil }

func (d *dice) Command(_ *room.Context, c *room.Command) (any, error) {
	d.rolls++
	switch c.Name {
	case "roll":
		return map[string]any{"from": c.From, "session": c.Session, "rolls": d.rolls}, nil
	case "cheat":
		return nil, room.Refuse(codec.CodeConflict, "no cheating")
	case "secret":
		return nil, errors.New("a secret")
	case "later":
		c.Later() // and never
		return nil, nil
	}
	panic("no such command")
}

func TestCommandsOverHTTP(t *testing.T) {
	w := startWeb(t, func(c *Config) {
		c.Kinds = append(c.Kinds, room.Kind{Name: "dice", New: func() room.Handler { return &dice{} }})
	})
	for _, test := range []struct {
		name, path, body string
		status           int
		code             any
	}{
		{"a result", "/v1/rooms/dice:1/commands/roll", `{"data":null}`, 200, nil},
		{"the handler's refusal", "/v1/rooms/dice:1/commands/cheat", `{}`, 409, "conflict"},
		{"another error of the handler", "/v1/rooms/dice:1/commands/secret", `{}`, 500, "internal"},
		{"a panic", "/v1/rooms/dice:1/commands/panic", `{}`, 500, "internal"},
		{"no time", "/v1/rooms/dice:1/commands/roll", `{"deadline_ms":0}`, 504, "deadline_exceeded"},
		{"not in time", "/v1/rooms/dice:1/commands/later", `{"deadline_ms":20}`, 504, "deadline_exceeded"},
		{"nobody handles commands", "/v1/rooms/chat:1/commands/roll", `{}`, 404, "not_found"},
		{"no such kind", "/v1/rooms/none:1/commands/roll", `{}`, 404, "not_found"},
		{"a name outside the grammar", "/v1/rooms/dice:1/commands/a%20b", `{}`, 400, "bad_request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, f := w.do("POST", test.path, test.body, asAlice)
			if resp.StatusCode != test.status || f.at("err.code") != test.code {
				t.Errorf("%d %v, want %d %v", resp.StatusCode, f, test.status, test.code)
			}
		})
	}
	resp, f := w.do("POST", "/v1/rooms/dice:1/commands/roll", `{}`, `Authorization: Bearer acme/alice/[{"rooms":"dice:1","allow":["publish"]}]`)
	if resp.StatusCode != 403 {
		t.Errorf("without the right: %d %v", resp.StatusCode, f)
	}
	_, f = w.do("POST", "/v1/rooms/dice:2/commands/roll", `{"dedup_key":"k"}`, asAlice)
	_, again := w.do("POST", "/v1/rooms/dice:2/commands/roll", `{"dedup_key":"k"}`, asAlice)
	if f.at("ok.data.from") != "alice" || f.at("ok.data.session") != "" || whole(again.at("ok.data.rolls")) != 1 || again.at("ok.duplicate") != true {
		t.Errorf("%v, again %v", f, again)
	}
}
