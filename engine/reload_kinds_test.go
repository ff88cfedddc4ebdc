package engine

import (
	"testing"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
)

// A room is made of the declaration that its request was judged by, also when the
// kinds were declared anew in between, and its handler's no holds.
func TestRoomIsMadeOfTheKindThatItsRequestSaw(t *testing.T) {
	strict := room.Kind{Name: "chat", New: func() room.Handler { return refusing{} }}
	for what, later := range map[string][]room.Kind{
		"the kind is no more":         {{Name: "other"}},
		"the kind has other code":     {{Name: "chat"}},
		"the kind is what it was":     {strict},
		"another takes all its names": {{Name: room.Any}},
	} {
		t.Run(what, func(t *testing.T) {
			e := start(t, func(c *Config) { c.Kinds = []room.Kind{strict} })
			seen := e.kinds.Of("chat")
			e.reload(t, func(c *Config) { c.Kinds = later })
			n, err := e.tenant("acme")
			if err != nil {
				t.Fatal(err)
			}
			mb, refusal := n.Room("chat:1", seen)
			if refusal != nil {
				t.Fatal(refusal)
			}
			w := make(waiter, 1)
			p := &message.Publish{By: w, Topic: codec.Topic{Tenant: "acme", Room: "chat:1"}, Event: "message", Policy: seen.Event("message")}
			mb.Post(p.Policy.Lane, p.Item(e.coalesce, e.pool.Now()))
			if a := <-w; a.err == nil || a.err.Code != codec.CodeForbidden {
				t.Errorf("its publisher is told %+v", a)
			}
		})
	}
}

// refusing is a handler that refuses everything.
type refusing struct{}

func (refusing) Publish(*room.Context, *room.Event) error {
	return room.Refuse(codec.CodeForbidden, "no")
}
