package client_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
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

// Over TLS, with a server that would rather speak HTTP/2.
func TestTLSAgainstAnEngine(t *testing.T) {
	n := serve(t, nil)
	server := httptest.NewUnstartedServer(n.Handler())
	server.EnableHTTP2, server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c := start(t, server.URL, "alice", func(o *client.Options) { o.HTTPClient = server.Client() })
	defer c.Close()
	if s, err := c.Session(soon(t)); err != nil || s.Subject != "alice" {
		t.Fatalf("%+v, %v", s, err)
	}
	stranger := start(t, server.URL, "alice", nil)
	defer stranger.Close()
	for stranger.Status().Err == nil {
		time.Sleep(time.Millisecond)
	}
	var untrusted *tls.CertificateVerificationError
	if err := stranger.Status().Err; !errors.As(err, &untrusted) {
		t.Errorf("a certificate that nobody vouches for: %v", err)
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
			if s := c.Stats(); s.Connections < 100 || s.Resumed != s.Connections-1 {
				t.Errorf("%+v, %d were killed", s, killed)
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

func TestCommandsPresenceAndHistoryAgainstAnEngine(t *testing.T) {
	for _, in := range codecs {
		t.Run(in.String(), func(t *testing.T) {
			n := serve(t, nil)
			inCodec := func(o *client.Options) { o.Codec = in }
			alice, bob := start(t, n.url, "alice", inCodec), start(t, n.url, "bob", inCodec)
			room := join(t, alice, client.Join{Room: "lounge", Presence: true, Data: "at the bar"})
			next[*client.Reset](t, room)
			if p := next[*client.Presence](t, room); !p.Full || p.Count != 1 || p.Members[0].Subject != "alice" || string(p.Members[0].Data.In(codec.JSON)) != `"at the bar"` {
				t.Errorf("%+v", p)
			}
			bobs := join(t, bob, client.Join{Room: "lounge", NoEcho: true})
			next[*client.Reset](t, bobs)
			if p := next[*client.Presence](t, room); len(p.Join) != 1 || p.Join[0].Subject != "bob" {
				t.Errorf("%+v", p)
			}
			page, err := alice.Presence(soon(t), client.PresenceQuery{Room: "lounge", Limit: 1})
			if err != nil || page.Count != 2 || len(page.Members) != 1 || page.After != "alice" {
				t.Errorf("%+v, %v", page, err)
			}
			if page, err = alice.Presence(soon(t), client.PresenceQuery{Room: "lounge", After: page.After}); err != nil || len(page.Members) != 1 || page.Members[0].Subject != "bob" || page.After != "" {
				t.Errorf("%+v, %v", page, err)
			}

			for range 2 { // the repeat gets the first result
				if data, err := bob.Command(soon(t), client.Command{Room: "lounge", Name: "count", DedupKey: "k"}); err != nil || string(data.In(codec.JSON)) != "1" {
					t.Errorf("%s, %v", data.Raw(), err)
				}
			}
			var e *client.Error
			if _, err := bob.Command(soon(t), client.Command{Room: "lounge", Name: "other"}); !errors.As(err, &e) || e.Code != codec.CodeNotFound {
				t.Errorf("%v", err)
			}

			for i := range 3 {
				if _, err := bob.Publish(soon(t), client.Publish{Room: "lounge", Event: "said", Data: i}); err != nil {
					t.Fatal(err)
				}
			}
			first, err := alice.History(soon(t), client.HistoryQuery{Room: "lounge", Limit: 2})
			if err != nil || len(first.Events) != 2 || !first.More || first.Events[0].From != "bob" {
				t.Fatalf("%+v, %v", first, err)
			}
			rest, err := alice.History(soon(t), client.HistoryQuery{Room: "lounge", Position: first.Position})
			if err != nil || len(rest.Events) != 1 || rest.More || rest.Position != rest.Events[0].Position {
				t.Errorf("%+v, %v", rest, err)
			}
			last, err := alice.History(soon(t), client.HistoryQuery{Room: "lounge", Reverse: true, Limit: 1})
			if err != nil || len(last.Events) != 1 || last.Events[0].ID != rest.Events[0].ID {
				t.Errorf("%+v, %v", last, err)
			}

			bob.Close() // a clean close leaves at once
			for {
				item, err := room.Next(soon(t))
				if err != nil {
					t.Fatal(err)
				}
				if p, is := item.(*client.Presence); is {
					if len(p.Leave) != 1 || p.Leave[0] != "bob" {
						t.Errorf("%+v", p)
					}
					break
				}
			}
		})
	}
}

// A consumer that acknowledges is sent on; one that does not is sent a window.
func TestAcknowledgedEventsAgainstAnEngine(t *testing.T) {
	n := serve(t, func(c *engine.Config) { c.Limits.Unacked = 4 })
	c := start(t, n.url, "alice", nil)
	room := join(t, c, client.Join{Room: "orders"})
	next[*client.Reset](t, room)
	for i := range 10 {
		n.publish(t, "orders", "order", i)
	}
	for i := range 10 {
		if i == 6 {
			n.cut() // what is not acknowledged comes again, but not to the consumer
		}
		e := next[*client.Event](t, room)
		if string(e.Data.In(codec.JSON)) != fmt.Sprint(i) {
			t.Fatalf("%s, want %d", e.Data.In(codec.JSON), i)
		}
		for room.Ack(e.Position) == client.ErrOffline {
			if _, err := c.Session(soon(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A slow consumer of a short history is told where it has to begin anew; of one that
// is long enough it gets everything.
func TestSlowConsumersAgainstAnEngine(t *testing.T) {
	n := serve(t, nil)
	c := start(t, n.url, "alice", func(o *client.Options) { o.Events = client.Bound{Items: 5} })
	for _, name := range []string{"chat", "short"} {
		const events = 40
		room := join(t, c, client.Join{Room: name})
		next[*client.Reset](t, room)
		var last engine.Result
		for i := range events {
			last = n.publish(t, name, "said", i)
		}
		client.Behind(t, room)
		at, gaps, resets := uint64(0), 0, 0
		for at < last.Position.Offset {
			item, err := room.Next(soon(t))
			if err != nil {
				t.Fatal(err)
			}
			switch item := item.(type) {
			case *client.Event:
				if item.Position.Offset != at+1 {
					t.Fatalf("%s: %v after %d", name, item.Position, at)
				}
				at++
			case *client.Gap:
				gaps++
			case *client.Reset:
				if resets++; item.Position.Offset < at {
					t.Fatalf("%s: back to %v", name, item.Position)
				}
				at = item.Position.Offset
			}
		}
		if gaps == 0 || name == "chat" && resets > 0 || name == "short" && resets == 0 {
			t.Errorf("%s: %d gaps, %d resets", name, gaps, resets)
		}
	}
}
