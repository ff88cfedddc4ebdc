package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
)

// promiser leaves the answer of every command for later, and never gives it.
type promiser struct{ began chan<- context.Context }

func (promiser) Publish(*room.Context, *room.Event) error { return nil }

func (f promiser) Command(_ *room.Context, c *room.Command) (any, error) {
	c.Later()
	f.began <- c.Context()
	return nil, nil
}

// A command with a dedup key outlives its client and its deadline, for those who may
// repeat it, but not for ever: its context ends, and its room may.
func TestCommandThatIsNeverAnsweredLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan context.Context, 1)
		e := start(t, func(c *Config) {
			c.Kinds = []room.Kind{{Name: "chat", Linger: time.Second, New: func() room.Handler { return promiser{began} }}}
		})
		c := join(t, e, "acme/alice")
		c.send(`{"t":"command","id":1,"room":"chat:1","name":"x","deadline_ms":5000,"dedup_key":"k"}`)
		ctx, started := <-began, time.Now()
		n, err := e.tenant("acme")
		if err != nil {
			t.Fatal(err)
		}
		if f := c.until("reply"); f.at("err.code") != "deadline_exceeded" {
			t.Errorf("at the deadline: %v", f)
		}
		c.cut()
		time.Sleep(59 * time.Second)
		if ctx.Err() != nil || n.Rooms() != 1 {
			t.Errorf("before it lapses: %v, %d rooms", ctx.Err(), n.Rooms())
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		if took := time.Since(started); took < 65*time.Second || took > 66*time.Second {
			t.Errorf("its context ends after %v", took)
		}
		time.Sleep(5 * time.Second)
		if n.Rooms() != 0 {
			t.Errorf("%d rooms are left", n.Rooms())
		}
	})
}
