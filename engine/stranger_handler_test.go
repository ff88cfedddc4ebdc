package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// What a handler makes is bounded as what clients send is: nothing larger than a
// frame goes out, and every request has its one reply, whatever the handler says.
func TestWhatAHandlerMakesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no handler is given up, however slow the machine is
		huge := strings.Repeat("\x00", 700<<10) // six times as long in JSON
		large := strings.Repeat("x", 60<<10)
		why, err := codec.NewData(huge)
		if err != nil {
			t.Fatal(err)
		}
		refuse := map[string]error{
			"no_code":       &codec.Error{Message: "?"},
			"no_such_code":  &codec.Error{Code: 200, Message: "?"},
			"no_such_scope": &codec.Error{Code: codec.CodeConflict, Scope: 200},
			"no_text":       &codec.Error{Code: codec.CodeConflict, Message: "\xff"},
			"long_text":     &codec.Error{Code: codec.CodeConflict, Message: huge},
			"long_data":     &codec.Error{Code: codec.CodeConflict, Data: why},
		}
		told := func(err error, want error) error {
			if errors.Is(err, want) {
				return nil
			}
			return fmt.Errorf("%v instead of %v", err, want)
		}
		act := func(ctx *room.Context, what string, e *room.Event) error {
			switch what {
			case "made_huge":
				return e.SetData(huge)
			case "made_large":
				return e.SetData(large)
			case "broadcast":
				return told(ctx.Broadcast("e", huge), room.ErrTooLarge)
			case "send":
				return told(ctx.Send(e.Session, "typing", huge), room.ErrTooLarge)
			}
			return refuse[what]
		}
		k := kind("maker", func() room.Handler {
			return &servant{
				puppet: puppet{publish: func(ctx *room.Context, e *room.Event) error {
					var what string
					if err := e.Data.Unmarshal(&what); err != nil {
						return err
					}
					return act(ctx, what, e)
				}},
				command: func(_ *room.Context, c *room.Command) (any, error) { return nil, refuse[c.Name] },
			}
		})
		for _, in := range bothCodecs {
			e := start(t, func(c *Config) { c.Kinds = []room.Kind{k} })
			ann := dial(t, e, in, memory.Options{})
			ann.hello("acme/ann", "maker:1")
			for what, want := range map[string]string{
				"made_huge": "too_large", "made_large": "<nil>", "broadcast": "<nil>", "send": "<nil>",
				"no_code": "internal", "no_such_code": "internal", "no_such_scope": "internal",
				"no_text": "internal", "long_text": "internal", "long_data": "internal",
			} {
				r, _ := ann.ask(fmt.Sprintf(`{"t":"publish","room":"maker:1","event":"e","data":%q}`, what))
				if got := fmt.Sprint(r.at("err.code")); got != want {
					t.Errorf("%v: publish, %s: %s instead of %s", in, what, got, want)
				}
				if refuse[what] == nil {
					continue
				}
				r, _ = ann.ask(fmt.Sprintf(`{"t":"command","room":"maker:1","name":%q}`, what))
				if got := fmt.Sprint(r.at("err.code")); got != want {
					t.Errorf("%v: command, %s: %s instead of %s", in, what, got, want)
				}
			}
		}
	})
}
