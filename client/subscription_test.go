package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// joined joins a room with a server that agrees.
func joined(t testing.TB, c *client.Client, a *act, j client.Join) *client.Subscription {
	t.Helper()
	ctx := soon(t)
	sub := answered(func() (*client.Subscription, error) { return c.Join(ctx, j) })
	r := expect[*codec.Join](a)
	a.ok(r.ID, joinedAt(r))
	got := <-sub
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.r
}

func TestRoomsAreJoinedAgainFromWhereTheyStood(t *testing.T) {
	s := play(t, codec.Msgpack)
	c := start(t, s.url, "alice", func(o *client.Options) { o.Codec = codec.Msgpack })
	a, _ := s.greet(nil)
	room := joined(t, c, a, client.Join{Room: "chat:1", NoEcho: true, Data: map[string]string{"nick": "A"}})
	next[*client.Reset](t, room)
	a.event("chat:1", 1)
	a.event("chat:1", 2)
	a.event("chat:1", 0)
	next[*client.Event](t, room)
	a.say(&codec.Ping{})
	expect[*codec.Pong](a) // all is taken
	a.close(0, "")
	// The client goes on from what it took, its consumer from what it was given.
	if p := room.Position(); p.Offset != 1 {
		t.Errorf("%v", p)
	}
	b := s.next()
	hello := expect[*codec.Hello](b)
	if r := hello.Rooms[0]; r.Room != "chat:1" || r.Position.Offset != 2 || !r.NoEcho || string(r.Data.In(codec.JSON)) != `{"nick":"A"}` {
		t.Errorf("%+v", r)
	}
	b.welcome(hello, nil)
	b.event("chat:1", 3)
	for _, want := range []uint64{2, 0, 3} {
		if e := next[*client.Event](t, room); e.Position.Offset != want {
			t.Errorf("%v, want %d", e.Position, want)
		}
	}
	b.say(&codec.PositionFrame{Room: "chat:1", Position: codec.Position{Epoch: "ep", Offset: 7}})
	b.close(0, "")
	d := s.next()
	hello = expect[*codec.Hello](d)
	if r := hello.Rooms[0]; r.Position.Offset != 7 {
		t.Errorf("%+v", r)
	}
	data, err := codec.NewData("state")
	if err != nil {
		t.Fatal(err)
	}
	d.welcome(hello, func(w *codec.Welcome) {
		w.Resumed = false
		w.Rooms[0].OK = &codec.JoinResult{Room: "chat:1", Position: codec.Position{Epoch: "other", Offset: 4}, Reset: codec.ResetEpoch, Data: data, After: time.Second}
	})
	if r := next[*client.Reset](t, room); r.Reason != codec.ResetEpoch || r.Position.Epoch != "other" || string(r.Data.In(codec.JSON)) != `"state"` || r.After != time.Second {
		t.Errorf("%+v", r)
	}
	if room.Position().Epoch != "other" {
		t.Errorf("%v", room.Position())
	}
}

// A consumer that takes nothing: its queue holds what fits, a gap says the rest, and
// what is buffered comes again when there is place.
func TestOverflowIsAVisibleGap(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", func(o *client.Options) { o.Events = client.Bound{Items: 3} })
	a, _ := s.greet(nil)
	room := joined(t, c, a, client.Join{Room: "chat"})
	for offset := range uint64(5) {
		a.event("chat", offset+1)
	}
	a.event("chat", 0)
	a.say(&codec.Ping{})
	expect[*codec.Pong](a)
	next[*client.Reset](t, room)
	next[*client.Event](t, room)
	a.event("chat", 6) // there is place, but it does not follow
	next[*client.Event](t, room)
	a.say(&codec.Ping{})
	expect[*codec.Pong](a)
	if g := next[*client.Gap](t, room); g.Position.Offset != 2 || g.Missed != 1 {
		t.Errorf("%+v", g)
	}
	r := expect[*codec.Join](a)
	if !r.HasPosition || r.Position.Offset != 2 {
		t.Errorf("%+v", r)
	}
	a.event("chat", 7) // still of the older membership
	a.ok(r.ID, joinedAt(r))
	for offset := range uint64(5) {
		a.event("chat", offset+3)
		if e := next[*client.Event](t, room); e.Position.Offset != offset+3 {
			t.Errorf("%v, want %d", e.Position, offset+3)
		}
	}
	if got := c.Stats().Missed; got != 1 {
		t.Errorf("missed %d", got)
	}
}

func TestRefusedJoins(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	ctx := soon(t)
	refusal := func(code codec.Code) *codec.Error {
		return &codec.Error{Code: code, Message: "no", RetryAfter: time.Millisecond}
	}
	for _, code := range []codec.Code{codec.CodeForbidden, codec.CodeUnavailable} {
		sub := answered(func() (*client.Subscription, error) { return c.Join(ctx, client.Join{Room: "chat"}) })
		a.say(&codec.Reply{ID: expect[*codec.Join](a).ID, Err: refusal(code)})
		var e *client.Error
		if got := <-sub; !errors.As(got.err, &e) || e.Code != code {
			t.Errorf("the first join: %v", got.err)
		}
	}
	room := joined(t, c, a, client.Join{Room: "chat"})
	next[*client.Reset](t, room)
	a.close(0, "")
	b, _ := s.greet(func(w *codec.Welcome) {
		w.Rooms[0] = codec.WelcomeRoom{Room: "chat", Err: refusal(codec.CodeUnavailable)}
	})
	r := expect[*codec.Join](b)
	b.say(&codec.Reply{ID: r.ID, Err: refusal(codec.CodeUnavailable)})
	r = expect[*codec.Join](b)
	b.ok(r.ID, joinedAt(r))
	b.event("chat", 1)
	b.say(&codec.Ping{})
	expect[*codec.Pong](b)
	b.close(0, "")
	d, _ := s.greet(func(w *codec.Welcome) {
		w.Rooms[0] = codec.WelcomeRoom{Room: "chat", Err: codec.Retry(codec.CodeUnavailable, codec.ScopeRoom, time.Hour, "no")}
	})
	next[*client.Event](t, room)
	d.say(&codec.Ping{})
	expect[*codec.Pong](d) // and no join before the hour is over
	d.close(0, "")
	s.greet(func(w *codec.Welcome) {
		w.Rooms[0] = codec.WelcomeRoom{Room: "chat", Err: refusal(codec.CodeForbidden)}
	})
	var e *client.Error
	if _, err := room.Next(ctx); !errors.As(err, &e) || e.Code != codec.CodeForbidden {
		t.Errorf("a right lost: %v", err)
	}
}

func TestMembershipsThatTheServerEnds(t *testing.T) {
	for _, reason := range []codec.LeftReason{codec.LeftKicked, codec.LeftForbidden} {
		s := play(t, codec.JSON)
		c := start(t, s.url, "alice", nil)
		a, _ := s.greet(nil)
		room := joined(t, c, a, client.Join{Room: "chat"})
		a.event("chat", 1)
		a.say(&codec.Left{Room: "chat", Reason: reason})
		next[*client.Reset](t, room)
		next[*client.Event](t, room) // what came before is still given
		var left *client.LeftError
		for range 2 {
			if _, err := room.Next(soon(t)); !errors.As(err, &left) || left.Reason != reason || left.Room != "chat" {
				t.Errorf("%v", err)
			}
		}
		if err := room.Leave(soon(t)); err != nil {
			t.Error(err)
		}
		joined(t, c, a, client.Join{Room: "chat"})
	}
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	room := joined(t, c, a, client.Join{Room: "chat"})
	next[*client.Reset](t, room)
	a.event("chat", 1)
	a.say(&codec.Left{Room: "chat", Reason: codec.LeftStopped})
	r := expect[*codec.Join](a)
	if r.Position.Offset != 1 {
		t.Errorf("a room that stopped is joined again from %v", r.Position)
	}
	a.ok(r.ID, joinedAt(r))
	a.event("chat", 2)
	for offset := range uint64(2) {
		if e := next[*client.Event](t, room); e.Position.Offset != offset+1 {
			t.Errorf("%v", e.Position)
		}
	}
}

func TestLeaving(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	room := joined(t, c, a, client.Join{Room: "chat"})
	ctx := soon(t)
	left := answered(func() (any, error) { return nil, room.Leave(ctx) })
	l := expect[*codec.Leave](a)
	a.event("chat", 1)
	// The room may be joined again before the server has answered.
	sub := answered(func() (*client.Subscription, error) { return c.Join(ctx, client.Join{Room: "chat"}) })
	j := expect[*codec.Join](a)
	a.event("chat", 2)
	a.event("chat", 0)
	a.say(&codec.Left{Room: "chat", Reason: codec.LeftKicked})
	a.ok(l.ID, &codec.LeaveResult{Room: "chat"})
	a.ok(j.ID, &codec.JoinResult{Room: "chat", Position: codec.Position{Epoch: "ep", Offset: 2}})
	a.event("chat", 3)
	if got := <-left; got.err != nil {
		t.Error(got.err)
	}
	again := (<-sub).r
	if r := next[*client.Reset](t, again); r.Position.Offset != 2 {
		t.Errorf("%+v", r)
	}
	if e := next[*client.Event](t, again); e.Position.Offset != 3 {
		t.Errorf("%+v", e)
	}
	// A join that is given up is left, and so is a room that was left while a
	// connection is made.
	short, cancel := context.WithCancel(t.Context())
	other := answered(func() (*client.Subscription, error) { return c.Join(short, client.Join{Room: "other"}) })
	expect[*codec.Join](a)
	cancel()
	if got := <-other; got.err != context.Canceled {
		t.Error(got.err)
	}
	if l := expect[*codec.Leave](a); l.Room != "other" {
		t.Errorf("%+v", l)
	}
	a.close(0, "")
	b := s.next()
	hello := expect[*codec.Hello](b)
	if len(hello.Rooms) != 1 {
		t.Errorf("%+v", hello)
	}
	if err := again.Leave(ctx); err != nil {
		t.Error(err)
	}
	b.welcome(hello, nil)
	if l := expect[*codec.Leave](b); l.Room != "chat" {
		t.Errorf("%+v", l)
	}
}

// More rooms than a hello holds are joined by the window's measure after it.
func TestManyRooms(t *testing.T) {
	const rooms = 300
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	ctx := soon(t)
	subs := make(chan result[*client.Subscription], rooms)
	for i := range rooms {
		go func() {
			sub, err := c.Join(ctx, client.Join{Room: fmt.Sprintf("chat:%0120d", i)})
			subs <- result[*client.Subscription]{sub, err}
		}()
	}
	for range rooms {
		r := expect[*codec.Join](a)
		a.ok(r.ID, joinedAt(r))
	}
	for range rooms {
		if got := <-subs; got.err != nil {
			t.Fatal(got.err)
		}
	}
	a.close(0, "")
	b := s.next()
	hello := expect[*codec.Hello](b)
	if size := len(codec.AppendRequest(nil, codec.JSON, hello)); len(hello.Rooms) < 50 || size > 48<<10 {
		t.Errorf("%d rooms in %d bytes", len(hello.Rooms), size)
	}
	b.welcome(hello, nil)
	for range rooms - len(hello.Rooms) {
		r := expect[*codec.Join](b)
		if !r.HasPosition {
			t.Fatalf("%+v", r)
		}
		b.ok(r.ID, joinedAt(r))
	}
	b.say(&codec.Ping{})
	expect[*codec.Pong](b)
}

func TestAck(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	room := joined(t, c, a, client.Join{Room: "chat"})
	if err := room.Ack(codec.Position{Epoch: "ep", Offset: 5}); err != nil {
		t.Error(err)
	}
	if ack := expect[*codec.Ack](a); ack.Room != "chat" || ack.Position.Offset != 5 {
		t.Errorf("%+v", ack)
	}
	// Frames besides requests are bounded, and full is said.
	for i := 0; ; i++ {
		if err := room.Ack(codec.Position{Epoch: "ep", Offset: 6}); err == client.ErrFull {
			break
		} else if err != nil || i > 1_000_000 {
			t.Fatalf("%v after %d", err, i)
		}
	}
}

// Several may wait for the items of one subscription; each item goes to one.
func TestManyConsumers(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	room := joined(t, c, a, client.Join{Room: "chat"})
	next[*client.Reset](t, room)
	const consumers, events = 4, 100
	ctx := soon(t)
	got := make(chan uint64, events)
	ended := make(chan error, consumers)
	for range consumers {
		go func() {
			for {
				item, err := room.Next(ctx)
				if err != nil {
					ended <- err
					return
				}
				got <- item.(*client.Event).Position.Offset
			}
		}()
	}
	for offset := range uint64(events) {
		a.event("chat", offset+1)
	}
	seen := map[uint64]bool{}
	for range events {
		seen[<-got] = true
	}
	if len(seen) != events {
		t.Errorf("%d of %d", len(seen), events)
	}
	c.Close()
	for range consumers {
		if err := <-ended; !errors.Is(err, client.ErrClosed) {
			t.Error(err)
		}
	}
}

// A join whose connection is lost before its answer is made by the next hello; one
// that was given up before it was sent is never made.
func TestJoinsThatAreNotAnswered(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	ctx := soon(t)
	sub := answered(func() (*client.Subscription, error) {
		return c.Join(ctx, client.Join{Room: "chat", Position: codec.Position{Epoch: "ep", Offset: 4}})
	})
	expect[*codec.Join](a)
	a.close(0, "")
	b := s.next()
	hello := expect[*codec.Hello](b)
	if len(hello.Rooms) != 1 || hello.Rooms[0].Position.Offset != 4 {
		t.Errorf("%+v", hello)
	}
	short, cancel := context.WithCancel(t.Context())
	other := answered(func() (*client.Subscription, error) { return c.Join(short, client.Join{Room: "other"}) })
	cancel()
	if got := <-other; got.err != context.Canceled {
		t.Error(got.err)
	}
	b.welcome(hello, nil)
	got := <-sub
	if got.err != nil {
		t.Fatal(got.err)
	}
	b.event("chat", 5)
	if e := next[*client.Event](t, got.r); e.Position.Offset != 5 {
		t.Errorf("%+v", e)
	}
	b.say(&codec.Ping{})
	expect[*codec.Pong](b)
}
