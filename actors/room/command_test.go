package room

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// clerk is a ledger that answers commands, ticks, and does what the test says.
type clerk struct {
	ledger
	do   func(ctx *Context, c *Command) (any, error)
	tick func(ctx *Context)
}

func (c *clerk) Command(ctx *Context, cmd *Command) (any, error) {
	c.book.enter(ctx, "command")
	return c.do(ctx, cmd)
}

func (c *clerk) Tick(ctx *Context) {
	c.book.enter(ctx, "tick")
	if c.tick != nil {
		c.tick(ctx)
	}
}

// office is a room whose handlers are clerks.
type office struct {
	*stage
	book *book
	do   func(ctx *Context, c *Command) (any, error)
	tick func(ctx *Context)
}

func newOffice(t *testing.T, change func(*Kind)) *office {
	t.Helper()
	o := &office{book: &book{panics: map[string]int{}}}
	k := o.book.kind()
	k.New = func() Handler {
		o.book.made++
		o.book.applied = nil
		return &clerk{ledger: ledger{book: o.book},
			do: func(ctx *Context, c *Command) (any, error) { return o.do(ctx, c) },
			tick: func(ctx *Context) {
				if o.tick != nil {
					o.tick(ctx)
				}
			}}
	}
	if change != nil {
		change(&k)
	}
	o.stage = newStage(t, k)
	return o
}

// told is the caller of one command.
type told struct {
	mu  sync.Mutex
	n   int
	ok  *codec.CommandResult
	err *codec.Error
}

func (w *told) Answered(_ *scheduler.Turn, _ *message.Command, ok *codec.CommandResult, err *codec.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	w.ok, w.err = ok, err
}

func (w *told) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.n == 0:
		return "open"
	case w.n > 1:
		return fmt.Sprintf("%d answers", w.n)
	case w.err != nil:
		return w.err.Code.String()
	}
	data := "null"
	if !w.ok.Data.IsZero() {
		data = string(w.ok.Data.In(codec.JSON))
	}
	if w.ok.Duplicate {
		data += " again"
	}
	return data
}

// command posts one; its deadline is in a minute.
func (s *stage) command(change func(*message.Command)) (*message.Command, *told) {
	s.t.Helper()
	w := &told{}
	c := &message.Command{
		By: w, Topic: testTopic, Name: "do", Subject: "alice", Session: "s1", Window: time.Minute,
		Deadline: s.now + int64(time.Minute), MaxResult: 1 << 16,
	}
	if change != nil {
		change(c)
	}
	if o := s.room.mb.Post(backpressure.Interactive, c.Item()); !o.Took() {
		c.Removed(o)
	}
	return c, w
}

// ask posts one and runs.
func (s *stage) ask() *told {
	s.t.Helper()
	_, w := s.command(nil)
	s.run()
	return w
}

func TestCommandResults(t *testing.T) {
	withData := &codec.Error{Code: codec.CodeConflict, Message: "taken", Data: said(`{"by":"bob"}`)}
	for _, c := range []struct {
		name string
		v    any
		err  error
		want string
	}{
		{"a value", map[string]int{"n": 1}, nil, `{"n":1}`},
		{"nothing", nil, nil, "null"},
		{"data as it is", said(`[1.50]`), nil, `[1.50]`},
		{"a refusal", nil, Refuse(codec.CodeConflict, "no"), "conflict"},
		{"a refusal beside a value", 1, fmt.Errorf("wrapped: %w", Refuse(codec.CodeForbidden, "no")), "forbidden"},
		{"a refusal with data", nil, withData, "conflict"},
		{"another error", nil, errors.New("secret"), "internal"},
		{"what is no data", func() {}, nil, "internal"},
		{"too large", strings.Repeat("x", 1<<16), nil, "internal"},
		{"as large as may be", strings.Repeat("x", 1<<16-2), nil, `"` + strings.Repeat("x", 1<<16-2) + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOffice(t, nil)
			o.do = func(*Context, *Command) (any, error) { return c.v, c.err }
			w := o.ask()
			want(t, "result", w, c.want)
			if w.err != nil && strings.Contains(w.err.Message, "secret") {
				t.Error("an error's own text was told")
			}
			if c.err == error(withData) && string(w.err.Data.Raw()) != `{"by":"bob"}` {
				t.Errorf("the refusal's data: %s", w.err.Data.Raw())
			}
			want(t, "handlers made", o.book.made, 1)
		})
	}
}

func TestCommandWithoutACommander(t *testing.T) {
	want(t, "kind without code", newStage(t, plain).ask(), "not_found")
	b := &book{panics: map[string]int{}}
	want(t, "handler that takes none", newStage(t, b.kind()).ask(), "not_found")
}

func TestCommandTellsWhoseItIs(t *testing.T) {
	o := newOffice(t, nil)
	o.do = func(_ *Context, c *Command) (any, error) {
		who := "no member"
		if c.Member != nil {
			who = c.Member.Subject
		}
		return fmt.Sprint(c.Name, " ", c.From, " ", c.Session, " ", c.Data.IsZero(), " ", who), nil
	}
	want(t, "of no member", o.ask(), `"do alice s1 true no member"`)
	bob := o.member("bob")
	of := func() *told {
		_, w := o.command(func(c *message.Command) {
			c.Subject, c.Session, c.Member, c.Data = "bob", "bob", bob.member, said("1")
		})
		o.run()
		return w
	}
	want(t, "of a member", of(), `"do bob bob false bob"`)
	bob.member.Gone()
	o.run()
	want(t, "of one that has left", of(), `"do bob bob false no member"`)
}

// An answer that is left for later is given once, from wherever.
func TestCommandLater(t *testing.T) {
	o := newOffice(t, nil)
	var reply *Reply
	o.do = func(_ *Context, c *Command) (any, error) {
		reply = c.Later()
		if c.Later() != reply {
			t.Error("Later twice makes two replies")
		}
		return "ignored", errors.New("ignored")
	}
	w := o.ask()
	want(t, "before", w, "open")
	results := make(chan bool, 32)
	for i := range 32 {
		go func() { results <- reply.Answer(i, nil) }()
	}
	first := 0
	for range 32 {
		if <-results {
			first++
		}
	}
	if got := w.String(); first != 1 || w.n != 1 || w.err != nil {
		t.Errorf("%d were told that they came first; the caller got %s", first, got)
	}
	w = o.ask()
	reply.Answer(nil, Refuse(codec.CodeNotFound, "no such thing"))
	want(t, "a later refusal", w, "not_found")
	w = o.ask()
	reply.Answer(nil, errors.New("secret"))
	want(t, "a later failure", w, "internal")
}

// Whatever ends first answers what was left for later.
func TestCommandLaterIsEndedBy(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   func(o *office, c *message.Command)
		want  string
		keyed string // with a dedup key
	}{
		{"its deadline", func(_ *office, c *message.Command) { c.Expire(nil) }, "deadline_exceeded", "deadline_exceeded"},
		{"its caller's end", func(_ *office, c *message.Command) { c.Gone() }, "open", "open"},
		{"the handler's failure", func(o *office, _ *message.Command) {
			o.book.panics["publish"] = 1
			o.member("bob").publish("message", "1")
		}, "unavailable", "unavailable"},
		{"the room's end", func(o *office, _ *message.Command) { o.room.Stopping() }, "unavailable", "unavailable"},
	} {
		for _, key := range []string{"", "k"} {
			t.Run(c.name+key, func(t *testing.T) {
				o := newOffice(t, nil)
				o.broker.attempted = &bridge.Attempted{Token: 9}
				var reply *Reply
				var ctx context.Context
				o.do = func(_ *Context, c *Command) (any, error) {
					reply, ctx = c.Later(), c.Context()
					return nil, nil
				}
				call, w := o.command(func(c *message.Command) { c.DedupKey = key })
				o.run()
				if ctx == nil || ctx.Err() != nil {
					t.Fatalf("the context of a command that is open: %v", ctx)
				}
				c.end(o, call)
				o.run()
				// Somebody may still come for the result of a command with a key.
				goes := key != "" && (c.want == "deadline_exceeded" || c.want == "open")
				if (ctx.Err() == nil) != goes {
					t.Errorf("the context afterwards: %v", ctx.Err())
				}
				want(t, "told", w, c.want)
				if first := reply.Answer("late", nil); first != goes {
					t.Errorf("a late answer counts: %v", first)
				}
				want(t, "told after a late answer", w, c.want)
				switch n := len(o.broker.settled); {
				case key == "":
					want(t, "settled", n, 0)
				case n != 1 || (o.broker.settled[0].Err == nil) != goes || o.broker.settled[0].Token != 9:
					t.Errorf("settled: %+v", o.broker.settled)
				}
			})
		}
	}
}

// A panic costs its command, also one that left its answer for later, and nobody
// else's but for what the handler had under way.
func TestCommandPanic(t *testing.T) {
	for _, later := range []bool{false, true} {
		o := newOffice(t, nil)
		o.do = func(_ *Context, c *Command) (any, error) {
			if later {
				c.Later()
			}
			panic("no")
		}
		guilty := o.ask()
		want(t, "guilty", guilty, "internal")
		o.do = func(*Context, *Command) (any, error) { return "served", nil }
		waits := o.ask()
		want(t, "requests wait for the next handler", waits, "open")
		o.recovered()
		want(t, "and are served by it", waits, `"served"`)
		want(t, "guilty, in the end", guilty, "internal")
		want(t, "handlers made", o.book.made, 2)
	}
}

// What nobody waits for any more is not begun.
func TestCommandThatIsOverIsNotBegun(t *testing.T) {
	o := newOffice(t, nil)
	ran := 0
	o.do = func(*Context, *Command) (any, error) { ran++; return nil, nil }
	_, late := o.command(func(c *message.Command) { c.Deadline = o.now + 10 })
	o.now += 10
	o.run()
	want(t, "one whose deadline has passed", late, "deadline_exceeded")
	gone, w := o.command(nil)
	gone.Gone()
	expired, x := o.command(func(c *message.Command) { c.DedupKey = "k" })
	expired.Expire(nil)
	o.run()
	want(t, "one whose caller has gone", w, "open")
	want(t, "one that its session has answered", x, "deadline_exceeded")
	if ran != 0 || len(o.broker.attempts) != 0 || !gone.Data.IsZero() {
		t.Errorf("%d ran, %d attempts", ran, len(o.broker.attempts))
	}

	// Nor after the broker has been asked.
	call, w := o.command(func(c *message.Command) { c.DedupKey = "k" })
	o.run()
	call.Gone()
	o.broker.attempts[0](bridge.Attempted{Token: 7})
	o.run()
	if ran != 0 || w.n != 0 || len(o.broker.settled) != 1 || o.broker.settled[0].Err == nil {
		t.Errorf("%d ran, told %v, settled %+v", ran, w, o.broker.settled)
	}
}

// With a dedup key the broker decides whether a command is done.
func TestCommandWithADedupKey(t *testing.T) {
	o := newOffice(t, nil)
	ran := 0
	o.do = func(_ *Context, c *Command) (any, error) {
		if ran++; c.Name == "fail" {
			return nil, Refuse(codec.CodeConflict, "no")
		}
		return ran, nil
	}
	keyed := func(name string) *told {
		_, w := o.command(func(c *message.Command) { c.DedupKey, c.Name = "k", name })
		o.run()
		return w
	}
	w := keyed("do")
	want(t, "while the broker is asked", w, "open")
	o.broker.attempts[0](bridge.Attempted{Token: 7})
	o.run()
	want(t, "done", w, "1")
	s := o.broker.settled[0]
	want(t, "settled", fmt.Sprint(s.Subject, s.Key, s.Token, s.Window, string(s.Result.Raw()), s.Err), "alicek7 1m0s1<nil>")

	o.broker.attempted = &bridge.Attempted{Result: s.Result}
	want(t, "a repeat", keyed("do"), "1 again")
	o.broker.attempted = &bridge.Attempted{Err: codec.NewError(codec.CodeForbidden, "no")}
	want(t, "one that waited for an error", keyed("do"), "forbidden")
	want(t, "ran", ran, 1)

	o.broker.attempted = &bridge.Attempted{Token: 8}
	want(t, "one that fails", keyed("fail"), "conflict")
	if s := o.broker.settled[1]; s.Token != 8 || s.Err == nil || s.Err.Code != codec.CodeConflict {
		t.Errorf("settled: %+v", s)
	}

	// While a handler is being made they wait, as all requests do.
	o.broker.attempted = nil
	w = keyed("do")
	o.book.panics["publish"] = 1
	o.member("bob").publish("message", "1")
	o.broker.attempts[len(o.broker.attempts)-1](bridge.Attempted{Token: 9})
	o.run()
	want(t, "for the next handler", w, "open")
	o.recovered()
	want(t, "and are served by it", w, "3")
	if o.room.handler.busy() {
		t.Error("something is still under way")
	}

	// A room that has ended gives its attempts back.
	w = keyed("do")
	o.room.Stopping()
	o.room.mb.Abandon()
	o.broker.attempts[len(o.broker.attempts)-1](bridge.Attempted{Token: 10})
	want(t, "in a room that has ended", w, "unavailable")
	if s := o.broker.settled[len(o.broker.settled)-1]; s.Token != 10 || s.Err == nil {
		t.Errorf("settled: %+v", s)
	}
}

func TestCommandsUnderWayAreBounded(t *testing.T) {
	for _, key := range []string{"", "k"} {
		o := newOffice(t, func(k *Kind) { k.MailboxItems = 4 })
		var replies []*Reply
		o.do = func(_ *Context, c *Command) (any, error) { replies = append(replies, c.Later()); return nil, nil }
		next := func() *told {
			_, w := o.command(func(c *message.Command) { c.DedupKey = key })
			o.run()
			return w
		}
		for range 4 {
			want(t, "within the bound", next(), "open")
		}
		w := next()
		want(t, "beyond", w, "backpressured")
		want(t, "whose bound", w.err.Scope, "room")
		if key == "" {
			replies[2].Answer(nil, nil)
		} else {
			o.broker.attempts[2](bridge.Attempted{})
			o.run()
		}
		want(t, "with place again", next(), "open")
		want(t, "and not for two", next(), "backpressured")
	}
}

// A handler that does not return loses its room, and the callers of all its
// commands are told.
func TestCommandsOfAnAbandonedRoom(t *testing.T) {
	o := newOffice(t, nil)
	o.room.mb.RegisterHandlers(&invoker{t: t, receive: o.room.Receive, fails: true}, nil)
	var replies []*Reply
	o.do = func(_ *Context, c *Command) (any, error) { replies = append(replies, c.Later()); return nil, nil }
	open := o.ask()
	in, release, returned := make(chan struct{}), make(chan struct{}), make(chan any)
	o.do = func(ctx *Context, c *Command) (any, error) {
		close(in)
		<-release
		defer func() { returned <- recover() }()
		c.Later()
		return nil, nil
	}
	_, stuck := o.command(nil)
	_, queued := o.command(nil)
	go func() {
		defer func() { _ = recover(); close(returned) }()
		o.pool.Step()
	}()
	<-in
	if !o.room.Abandon() {
		t.Fatal("not abandoned")
	}
	want(t, "open, stuck and queued", fmt.Sprint(open, stuck, queued), "unavailable unavailable unavailable")
	close(release)
	if <-returned == nil {
		t.Error("its Command works afterwards")
	}
	<-returned
	if replies[0].Answer(1, nil) {
		t.Error("a late answer counts")
	}
	want(t, "in the end", fmt.Sprint(open, stuck, queued), "unavailable unavailable unavailable")
}

// said is data as a client wrote it.
func said(text string) codec.Data {
	d, err := codec.MakeData(codec.JSON, []byte(text))
	if err != nil {
		panic(err)
	}
	return d
}

// A command that the broker has let through is answered, and given back, when its
// room ends before it is done: while it waits for a handler, or for the room's turn.
func TestCommandLetThroughInARoomThatEnds(t *testing.T) {
	for _, seen := range []bool{true, false} {
		o := newOffice(t, nil)
		bob := o.member("bob")
		_, w := o.command(func(c *message.Command) { c.DedupKey = "k" })
		o.run()
		o.book.panics["publish"] = 1
		bob.publish("message", "1")
		o.broker.attempts[0](bridge.Attempted{Token: 9})
		if seen {
			o.run()
		}
		want(t, "before", w, "open")
		o.room.Stopping()
		o.room.mb.Abandon()
		want(t, "afterwards", w, "unavailable")
		if s := o.broker.settled; len(s) != 1 || s[0].Token != 9 || s[0].Err == nil {
			t.Errorf("settled: %+v", s)
		}
	}
}

// What was answered before its handler got stuck, in the same batch, is not answered
// again by whoever takes the room over.
func TestAbandonedRoomAnswersOnlyWhatIsInHand(t *testing.T) {
	b := &book{panics: map[string]int{}}
	s := newStage(t, b.kind())
	s.room.mb.RegisterHandlers(&invoker{t: t, receive: s.room.Receive, fails: true}, nil)
	alice := s.member("alice")
	in, release, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b.inside = func(_ *Context, where string) {
		switch where {
		case "publish":
			s.now += int64(2 * time.Millisecond) // ends the batch
		case "apply":
			close(in)
			<-release
		}
	}
	s.broker.publish(1)
	s.broker.sink.Arrived(bridge.Batch{Events: s.broker.events})
	a := alice.publishing("typing", "1")
	go func() {
		defer close(returned)
		defer func() { _ = recover() }()
		s.pool.Step()
	}()
	<-in
	if !s.room.Abandon() {
		t.Fatal("not abandoned")
	}
	close(release)
	<-returned
	want(t, "the publish", a, "accepted")
}
