package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// adder sums up what is published: the n-th event is the number n, so that its
// state at a position is known without it.
type adder struct{ sum int }

func (a *adder) Publish(*room.Context, *room.Event) error { return nil }

func (a *adder) Apply(_ *room.Context, e *room.Applied) {
	var n int
	if e.Data.Unmarshal(&n) == nil {
		a.sum += n
	}
}

func (a *adder) Snapshot() (any, error) { return a.sum, nil }

func (a *adder) Restore(state codec.Data, _ codec.Position) error { return state.Unmarshal(&a.sum) }

// Whoever is given the handler's state, in a join or by a reset, while others
// publish: it is that of the position it comes with, and the next event is the one
// after it.
func TestDataIsTheStateAtItsPosition(t *testing.T) {
	e := start(t, func(c *Config) {
		c.Limits.SessionQueueItems = 16
		c.Kinds = []room.Kind{{
			Name: "sum", New: func() room.Handler { return new(adder) }, SnapshotEvery: 7,
			History: room.History{Events: 8, Bytes: 1 << 20},
		}}
	})
	const last = 3000
	e.publish(t, "acme", "sum:1", "add", 1)
	step, published := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(step)
		for n := 2; n <= last; n++ {
			if _, err := e.Publish(context.Background(), Event{Tenant: "acme", Room: "sum:1", Name: "add", Data: n}); err != nil {
				published <- err
				return
			}
			select {
			case step <- struct{}{}: // somebody waits for it
			default:
			}
		}
		published <- nil
	}()

	check := func(what string, at frame) uint64 {
		offset := at.offset()
		if got, want := fmt.Sprint(at["data"]), fmt.Sprint(offset*(offset+1)/2); got != want {
			t.Errorf("%s at %d: %s, want %s", what, offset, got, want)
		}
		return offset
	}
	resets := 0
	for i := 0; ; i++ {
		in := []codec.Codec{codec.JSON, codec.Msgpack}[i%2]
		c := dial(t, e, in, memory.Options{Window: 4 << 10})
		asked := `{"room":"sum:1"}`
		if i%3 == 0 {
			asked = `{"room":"sum:1","epoch":"another","offset":1}` // which is reset at once
		}
		joined := frame(c.hello("acme/ann", asked).at("rooms.0.ok").(map[string]any))
		offset := check(fmt.Sprint("join, reset ", joined["reset"]), joined)
		if offset == last {
			break
		}
		if i%5 == 0 { // falls behind, further than the history reaches
			for range 100 {
				<-step
			}
		}
		for range min(60, last-offset) {
			switch f := c.next(); f.t() {
			case "event":
				if offset++; f.offset() != offset {
					t.Fatalf("event %d, want %d", f.offset(), offset)
				}
			case "reset":
				resets++
				offset = check("reset", f)
			}
			if offset == last {
				break
			}
		}
		c.conn.Close(1000)
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	if resets == 0 {
		t.Error("nobody fell so far behind that it was reset")
	}
}
