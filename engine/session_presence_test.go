package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// Who asked to see the others and may not any more is not in the room any more; who
// did not ask stays.
func TestRefreshThatLosesTheRightToPresence(t *testing.T) {
	for _, in := range bothCodecs {
		synctest.Test(t, func(t *testing.T) {
			e := withPresence(t, nil)
			other := watch(t, e, in, "acme/other", sees)
			c := dial(t, e, in, memory.Options{})
			c.hello("acme/a", `{"room":"seen:1"`+sees+`}`, `{"room":"seen:2"}`)
			other.expect("a joins", "+a")
			r, before := c.ask(`{"t":"token","token":"acme/a/[{\"rooms\":\"*\",\"allow\":[\"join\"]}]"}`)
			if r.at("ok") == nil || len(before) > 0 {
				t.Fatalf("%v: reply: %v, before it %v", in, r, before)
			}
			if f := c.next(); f.t() != "left" || f["room"] != "seen:1" || f["reason"] != "forbidden" {
				t.Errorf("%v: after it: %v", in, f)
			}
			other.expect("a has left", "-a")
			if r, before := c.ask(`{"t":"leave","room":"seen:2"}`); r.at("ok") == nil || len(before) > 0 {
				t.Errorf("%v: the room in which it did not ask: %v, before it %v", in, r, before)
			}
			if r, _ := c.ask(`{"t":"presence","room":"seen:1"}`); r.at("err.code") != "forbidden" {
				t.Errorf("%v: asked: %v", in, r)
			}
		})
	}
}

// The end of a session is the end of its presence, at once; the end of its
// connection alone is not, whoever ended it.
func TestPresenceEndsWithTheSession(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, e *Engine, c *client)
		told string
	}{
		{"disconnected", func(t *testing.T, e *Engine, c *client) {
			if _, err := e.Disconnect(t.Context(), "acme", "a"); err != nil {
				t.Error(err)
			}
		}, "-a"},
		{"malformed", func(_ *testing.T, _ *Engine, c *client) { c.conn.SendKind([]byte{0xc1}, c.in == codec.Msgpack) }, "-a"},
		{"closed by its client", func(_ *testing.T, _ *Engine, c *client) { c.conn.Close(1000) }, "-a"},
		{"closed without a code", func(_ *testing.T, _ *Engine, c *client) { c.conn.Close(1005) }, ""},
		{"credentials that ended", func(_ *testing.T, _ *Engine, c *client) {
			c.ask(`{"t":"token","token":"acme/a/ends"}`)
		}, ""},
	} {
		for _, in := range bothCodecs {
			t.Run(fmt.Sprint(c.name, " ", in), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := withPresence(t, func(cfg *Config) {
						cfg.Authenticator = ending{}
						cfg.Limits.PresenceGrace = 30 * time.Second
						cfg.Limits.Ping = time.Hour
					})
					other := watch(t, e, in, "acme/other", sees)
					a := dial(t, e, in, memory.Options{})
					a.hello("acme/a", `{"room":"seen:1"}`)
					other.expect("a joins", "+a")
					c.end(t, e, a)
					time.Sleep(10 * time.Second)
					go a.swallow()
					<-a.conn.Done()
					other.expect("its connection has ended", c.told)
					time.Sleep(45 * time.Second)
					if c.told == "" {
						other.expect("the grace is over", "-a")
					}
				})
			})
		}
	}
}
