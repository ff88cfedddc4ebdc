package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// B082, coder/websocket#248: a write that waited for a close held the lock which
// the close needed. Whatever is being written when a peer closes, both end.
func TestB082_WritesThatMeetTheCloseOfTheirPeer(t *testing.T) {
	e := start(t, nil)
	e.publish(t, "acme", "chat:1", "message", 1)
	for range 1000 / scale {
		c := dial(t, e, codec.JSON, memory.Options{Window: 512})
		c.hello("acme/a", "chat:1")
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 8 {
				e.TryPublish(Event{Tenant: "acme", Room: "chat:1", Name: "typing", Data: "a frame of some size, so that they do not fit the window"})
			}
		})
		wg.Go(func() { c.conn.Close(1000) })
		wg.Wait()
		c.closed()
	}
	settled(t, "every session has been closed by its peer", func() bool {
		s := e.Stats()
		return s.Sessions == 0 && s.Closes[codec.CauseNormal] == uint64(1000/scale)
	})
}

// B083, centrifugal/centrifuge#639: two recoverable subscriptions made at connect,
// beside a live publish, deadlocked a node.
func TestB083_RoomsResumedInAHelloBesideALivePublisher(t *testing.T) {
	e := start(t, nil)
	p := e.publish(t, "acme", "chat:a", "message", 1).Position
	q := e.publish(t, "acme", "chat:b", "message", 1).Position
	ctx, stop := context.WithCancel(t.Context())
	var publisher sync.WaitGroup
	publisher.Go(func() {
		for ctx.Err() == nil {
			e.Publish(ctx, Event{Tenant: "acme", Room: "chat:a", Name: "message"})
		}
	})
	var clients sync.WaitGroup
	for i := range 10 {
		clients.Go(func() {
			for range 50 / scale {
				c := dial(t, e, codec.JSON, memory.Options{})
				w := c.hello(fmt.Sprint("acme/m", i),
					fmt.Sprintf(`{"room":"chat:a","epoch":%q,"offset":%d}`, p.Epoch, p.Offset),
					fmt.Sprintf(`{"room":"chat:b","epoch":%q,"offset":%d}`, q.Epoch, q.Offset))
				if w.at("rooms.0.ok") == nil || w.at("rooms.1.ok.recovered") != true {
					t.Errorf("welcome: %v", w)
				}
				c.conn.Cut()
				<-c.conn.Done()
			}
		})
	}
	clients.Wait()
	stop()
	publisher.Wait()
}

// B084, libp2p/go-libp2p-pubsub#69: a subscriber within the process that was slow
// blocked the router. A room whose code takes its time refuses what its mailbox
// cannot hold, and holds nobody else up.
func TestB084_ARoomWhoseCodeIsSlowHoldsUpItselfAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which nobody is slow for long enough to be given up
		const mailbox = 64
		release := make(chan struct{})
		var handled atomic.Int64
		slow := kind("slow", one(&puppet{publish: func(*room.Context, *room.Event) error {
			<-release
			handled.Add(1)
			return nil
		}}))
		slow.MailboxItems = mailbox
		e := start(t, func(c *Config) { c.Kinds = []room.Kind{slow, openKind}; c.Limits.Workers = 2 })
		outcomes := map[Outcome]int{}
		for range 1000 {
			o, err := e.TryPublish(Event{Tenant: "acme", Room: "slow:1", Name: "message", Data: 1})
			if err != nil {
				t.Fatal(err)
			}
			outcomes[o]++
		}
		beside := join(t, e, "acme/a", "chat:1")
		for range 100 {
			e.publish(t, "acme", "chat:1", "message", 1) // while the other does not return
			beside.until("event")
		}
		if handled.Load() > 0 {
			t.Error("the slow room was not slow")
		}
		close(release)
		took := outcomes[backpressure.Accepted]
		settled(t, "what was accepted is handled", func() bool { return handled.Load() == int64(took) })
		if full := outcomes[backpressure.Backpressured]; took+full != 1000 || took < mailbox || took > 3*mailbox {
			t.Errorf("outcomes %v", outcomes)
		}
	})
}
