package client_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

func TestJoinPublishLeaveAgainstAnEngine(t *testing.T) {
	for _, in := range codecs {
		t.Run(in.String(), func(t *testing.T) {
			n := serve(t, nil)
			c := start(t, n.url, "alice", func(o *client.Options) { o.Codec = in })
			session, err := c.Session(soon(t))
			if err != nil || session.Tenant != "acme" || session.Subject != "alice" || session.Resumed {
				t.Fatalf("%+v, %v", session, err)
			}
			room := join(t, c, client.Join{Room: "chat:lobby"})
			if begin := next[*client.Reset](t, room); begin.Reason != codec.ResetNone || begin.Position.IsZero() {
				t.Errorf("%+v", begin)
			}
			if _, err := c.Join(soon(t), client.Join{Room: "chat:lobby"}); !errors.Is(err, client.ErrJoined) {
				t.Errorf("joined twice: %v", err)
			}
			ok, err := c.Publish(soon(t), client.Publish{Room: "chat:lobby", Event: "said", Data: map[string]any{"n": uint64(1<<64 - 1)}})
			if err != nil || ok.Outcome != codec.Accepted {
				t.Fatalf("%+v, %v", ok, err)
			}
			e := next[*client.Event](t, room)
			var data struct{ N uint64 }
			if err := e.Data.Unmarshal(&data); err != nil || data.N != 1<<64-1 {
				t.Errorf("%+v, %v", data, err)
			}
			if e.Room != "chat:lobby" || e.Name != "said" || e.From != "alice" || e.Session != session.ID ||
				e.ID != ok.EID || e.Position != ok.Position || time.Since(e.Time).Abs() > time.Minute {
				t.Errorf("%+v of %+v", e, ok)
			}
			if room.Position() != e.Position {
				t.Errorf("position %v", room.Position())
			}
			if err := c.TryPublish(client.Publish{Room: "chat:lobby", Event: "typing"}); err != nil {
				t.Error(err)
			}
			if e := next[*client.Event](t, room); e.Name != "typing" || !e.Position.IsZero() || e.Data.Raw() == nil {
				t.Errorf("%+v", e)
			}
			if err := room.Leave(soon(t)); err != nil {
				t.Error(err)
			}
			var left *client.LeftError
			if _, err := room.Next(soon(t)); !errors.As(err, &left) || left.Reason != 0 {
				t.Errorf("after leaving: %v", err)
			}
			again := join(t, c, client.Join{Room: "chat:lobby", Position: ok.Position})
			if _, err := c.Publish(soon(t), client.Publish{Room: "chat:lobby", Event: "said", Data: 2}); err != nil {
				t.Error(err)
			}
			if e := next[*client.Event](t, again); e.Position.Offset != ok.Position.Offset+1 {
				t.Errorf("joined from a position: %+v", e)
			}
		})
	}
}

// A connection is killed a hundred times, before, amid and after what is published:
// its subscription gets each event once, in order, by a resumed session.
func TestKilledConnectionsLoseNothing(t *testing.T) {
	for _, in := range codecs {
		t.Run(in.String(), func(t *testing.T) {
			n := serve(t, nil)
			c := start(t, n.url, "reader", func(o *client.Options) { o.Codec = in })
			room := join(t, c, client.Join{Room: "chat:lobby"})
			position := next[*client.Reset](t, room).Position
			killed, published := 0, 0
			publish := func(count int) {
				for range count {
					published++
					n.publish(t, "chat:lobby", "said", published)
				}
			}
			for seen := 0; killed < 100; {
				publish(rand.IntN(4))
				killed += n.cut()
				publish(1 + rand.IntN(3))
				for seen < published {
					e := next[*client.Event](t, room)
					if e.Position.Epoch != position.Epoch || e.Position.Offset != position.Offset+1 {
						t.Fatalf("%v after %v", e.Position, position)
					}
					position = e.Position
					var data int
					if err := e.Data.Unmarshal(&data); err != nil || data != seen+1 {
						t.Fatalf("%v after %d, %v", data, seen, err)
					}
					seen++
				}
			}
			if s := c.Stats(); s.Connections < 100 {
				t.Errorf("%d connections, %d were killed", s.Connections, killed)
			}
		})
	}
}

// The connections of those who publish are killed too: each event is there once,
// in its publisher's order.
func TestKilledPublishersPublishOnce(t *testing.T) {
	const publishers, each = 3, 60
	n := serve(t, nil)
	reader := start(t, n.url, "reader", nil)
	room := join(t, reader, client.Join{Room: "chat:lobby"})
	next[*client.Reset](t, room)
	var wg sync.WaitGroup
	defer wg.Wait()
	for p := range publishers {
		c := start(t, n.url, fmt.Sprint("p", p), nil)
		join(t, c, client.Join{Room: "chat:lobby"})
		wg.Go(func() {
			for i := range each {
				if _, err := c.Publish(soon(t), client.Publish{Room: "chat:lobby", Event: "said", Data: []int{p, i}}); err != nil {
					t.Errorf("%d of %d: %v", i, p, err)
					return
				}
			}
		})
	}
	var seen [publishers]int
	killed := 0
	for i := range publishers * each {
		var data [2]int
		e := next[*client.Event](t, room)
		if err := e.Data.Unmarshal(&data); err != nil || data[1] != seen[data[0]] {
			t.Fatalf("%v after %d, %v", data, seen[data[0]], err)
		}
		seen[data[0]]++
		if i%8 == 0 {
			killed += n.cut()
		}
	}
	if killed < 3*publishers {
		t.Errorf("only %d connections were killed", killed)
	}
}
