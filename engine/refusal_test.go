package engine

import (
	"fmt"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// strict refuses everything, with data of its own where that is asked for.
type strict struct{}

func (strict) refuse(data codec.Data) error {
	var asked string
	if data.Unmarshal(&asked) != nil || asked != "why" {
		return room.Refuse(codec.CodeConflict, "no")
	}
	why, err := codec.NewData(map[string]int{"left": 3})
	if err != nil {
		return err
	}
	return fmt.Errorf("wrapped: %w", &codec.Error{Code: codec.CodeConflict, Message: "no", Data: why})
}

func (s strict) Publish(_ *room.Context, e *room.Event) error { return s.refuse(e.Data) }
func (s strict) Command(_ *room.Context, c *room.Command) (any, error) {
	return nil, s.refuse(c.Data)
}
func (s strict) Join(_ *room.Context, m *room.Member) error {
	if m.Subject == "ann" {
		return nil
	}
	return s.refuse(m.Data)
}

// What a handler refuses with reaches the client as it is, its own data included,
// and is nobody's limit.
func TestRefusalsOfAHandler(t *testing.T) {
	for _, in := range []codec.Codec{codec.JSON, codec.Msgpack} {
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{{Name: "strict", New: func() room.Handler { return strict{} }}}
		})
		ann, bob := dial(t, e, in, memory.Options{}), dial(t, e, in, memory.Options{})
		ann.hello("acme/ann", "strict:1")
		bob.hello("acme/bob")
		for request, c := range map[string]*client{
			`{"t":"publish","room":"strict:1","event":"e","data":%s}`:  ann,
			`{"t":"command","room":"strict:1","name":"c","data":%s}`:   ann,
			`{"t":"join","room":"strict:1","data":%s}`:                 bob,
			`{"t":"command","room":"strict:2","name":"c","data":%s  }`: bob,
		} {
			for data, want := range map[string]string{`"why"`: "conflict no map[left:3]", `"no"`: "conflict no <nil>"} {
				r, _ := c.ask(fmt.Sprintf(request, data))
				if got := fmt.Sprint(r.at("err.code"), " ", r.at("err.message"), " ", r.at("err.data")); got != want || r.at("err.scope") != nil || r.at("err.retry_after_ms") != nil {
					t.Errorf(request+" in %v: %v", data, in, r)
				}
			}
		}
	}
}
