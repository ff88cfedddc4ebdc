package engine

import (
	"testing"
	"testing/synctest"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// door notes who leaves.
type door struct{ left chan string }

func (door) Publish(*room.Context, *room.Event) error { return nil }

func (d door) Leave(_ *room.Context, m *room.Member) { d.left <- m.Subject }

// Who is closed for good has left its rooms at once, however long its peer takes to
// answer the close, and so has the older connection of a takeover; a session that
// ended for what it sent is not resumed.
func TestACloseThatIsNotAnswered(t *testing.T) {
	for _, c := range []struct {
		name    string
		close   func(t *testing.T, e *Engine, c *client, from any)
		resumes bool
	}{
		{"malformed", func(_ *testing.T, _ *Engine, c *client, _ any) { _ = c.conn.Send([]byte("{")) }, false},
		{"disconnected", func(t *testing.T, e *Engine, _ *client, _ any) {
			if n, err := e.Disconnect(t.Context(), "acme", "alice"); n != 1 || err != nil {
				t.Errorf("disconnected %d, %v", n, err)
			}
		}, true}, // while the connection is there
		{"taken over", func(t *testing.T, e *Engine, _ *client, from any) {
			if _, w := resume(t, e, codec.JSON, "acme/alice", from); w["resumed"] != true {
				t.Errorf("the newer: %v", w)
			}
		}, false}, // with a token that has served
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				left := make(chan string, 2)
				kind := openKind
				kind.New = func() room.Handler { return door{left} }
				e := start(t, func(cfg *Config) { cfg.Kinds = []room.Kind{kind} })
				silent := dial(t, e, codec.JSON, memory.Options{})
				w := silent.hello("acme/alice", "chat:1")
				c.close(t, e, silent, w["resume"])
				synctest.Wait() // no time passes
				select {
				case <-left:
				default:
					t.Error("it has not left the room")
				}
				if _, again := resume(t, e, codec.JSON, "acme/alice", w["resume"]); again["resumed"] != c.resumes {
					t.Errorf("and comes back: %v", again)
				}
			})
		})
	}
}
