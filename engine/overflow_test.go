package engine

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// doorman is a handler that lets nothing by until its door is opened.
type doorman struct {
	knock chan struct{} // told of the event that waits at the door
	door  chan struct{} // closed when it opens
	once  *sync.Once
}

func (d doorman) Publish(*room.Context, *room.Event) error {
	d.once.Do(func() { close(d.knock) })
	<-d.door
	return nil
}

// Events wait in a room's mailbox, two of them at most in each lane. What their
// publishers hear is by the event's policy: the one that does not fit is turned
// away, or the oldest is, or it replaces the one that waits, which counts as published.
func TestPublishersOfARoomThatIsFull(t *testing.T) {
	policy := func(o backpressure.Policy, by string) room.EventPolicy {
		return room.EventPolicy{Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: o, CoalesceBy: by}
	}
	for _, tt := range []struct {
		event string
		want  [4]string // what is heard of the four events behind the one at the door
		got   string    // data of those that come, besides that one
	}{
		{"rejected", [4]string{"accepted", "accepted", "backpressured", "backpressured"}, "1 2"},
		{"dropped", [4]string{"backpressured", "backpressured", "accepted", "accepted"}, "3 4"},
		{"coalesced", [4]string{"accepted", "coalesced", "coalesced", "coalesced"}, "4"},
	} {
		for _, in := range []codec.Codec{codec.JSON, codec.Msgpack} {
			t.Run(fmt.Sprint(tt.event, " ", in), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // in which the handler is not given up
					d := doorman{make(chan struct{}), make(chan struct{}), new(sync.Once)}
					e := start(t, func(c *Config) {
						c.Kinds = []room.Kind{{
							Name: "chat", New: func() room.Handler { return d }, MailboxItems: 2,
							Events: map[string]room.EventPolicy{
								"rejected": policy(backpressure.Reject, ""), "dropped": policy(backpressure.DropOldest, ""),
								"coalesced": policy(backpressure.CoalesceLatest, "session"), "last": policy(backpressure.Reject, ""),
							},
						}}
					})
					c := dial(t, e, in, memory.Options{})
					c.hello("acme/ann", "chat:1")
					publish := func(id int, event string) {
						c.send(fmt.Sprintf(`{"t":"publish","id":%d,"room":"chat:1","event":%q,"data":%d}`, id, event, id))
					}
					publish(100, tt.event)
					<-d.knock
					for id := 1; id <= 4; id++ {
						publish(id, tt.event)
					}
					c.send(`{"t":"leave","id":5,"room":"chat:2"}`)

					heard := map[string]string{}
					var got []any
					for len(heard) < 5 || len(got) == 0 || fmt.Sprint(got[len(got)-1]) != tt.got[len(tt.got)-1:] {
						switch f := c.next(); f.t() {
						case "event":
							if fmt.Sprint(f["data"]) != "100" {
								got = append(got, f["data"])
							}
						case "reply":
							if fmt.Sprint(f["id"]) == "5" { // all before it are in the room's mailbox, or turned away
								close(d.door)
								continue
							}
							answer := f.at("ok.outcome")
							if answer == nil {
								answer = f.at("err.code")
								if f.at("err.retry_after_ms") == nil || f.at("err.scope") != "room" {
									t.Errorf("%v", f)
								}
							}
							heard[fmt.Sprint(f["id"])] = fmt.Sprint(answer)
						}
					}
					for i, want := range tt.want {
						if answer := heard[fmt.Sprint(i+1)]; answer != want {
							t.Errorf("%d: %s, want %s", i+1, answer, want)
						}
					}
					if all := fmt.Sprint(got); all != "["+tt.got+"]" {
						t.Errorf("events %s, want %s", all, tt.got)
					}
				})
			})
		}
	}
}
