package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/codec"
)

// ledger is a handler whose state is the sum of all applied numbers. It panics
// where the test says.
type ledger struct {
	book *book
	sum  int
	n    int
}

// book is what the test and all of a room's handlers share.
type book struct {
	panics  map[string]int // how often yet, by callback
	made    int
	refuse  error
	applied []uint64 // by the handler in place
	left    []string
	inside  func(ctx *Context, in string)
}

func (b *book) enter(ctx *Context, in string) {
	if b.inside != nil {
		b.inside(ctx, in)
	}
	if b.panics[in] != 0 {
		b.panics[in]--
		panic(in)
	}
}

func (b *book) kind() Kind {
	k := plain
	k.New = func() Handler {
		b.made++
		b.applied = nil
		b.enter(nil, "new")
		return &ledger{book: b}
	}
	return k
}

func (l *ledger) Publish(ctx *Context, e *Event) error {
	l.book.enter(ctx, "publish")
	if e.Name == "double" {
		var n int
		json.Unmarshal(e.Data.In(codec.JSON), &n)
		return e.SetData(2 * n)
	}
	return l.book.refuse
}

func (l *ledger) Join(ctx *Context, m *Member) error {
	l.book.enter(ctx, "join")
	return l.book.refuse
}

func (l *ledger) Leave(ctx *Context, m *Member) {
	l.book.enter(ctx, "leave")
	l.book.left = append(l.book.left, m.Subject)
}

func (l *ledger) Apply(ctx *Context, e *Applied) {
	l.book.enter(ctx, "apply")
	var n int
	json.Unmarshal(e.Data.In(codec.JSON), &n)
	if n == 13 {
		panic("thirteen")
	}
	l.book.applied = append(l.book.applied, e.Position.Offset)
	l.sum += n
	l.n++
}

func (l *ledger) Snapshot() (any, error) {
	l.book.enter(nil, "snapshot")
	return []int{l.sum, l.n}, nil
}

func (l *ledger) Restore(state codec.Data, at codec.Position) error {
	l.book.enter(nil, "restore")
	var s [2]int
	if err := json.Unmarshal(state.In(codec.JSON), &s); err != nil {
		return err
	}
	l.sum, l.n = s[0], s[1]
	if uint64(l.n) > at.Offset {
		return errors.New("restored to another position")
	}
	return nil
}

func (s *stage) publishAll(p *peer, from, to int) {
	s.t.Helper()
	for i := from; i <= to; i++ {
		want(s.t, fmt.Sprint("publish ", i), p.publish("message", fmt.Sprint(i)), "accepted")
	}
}

// A panic costs the request in which it came, in whatever callback that was: the
// members stay, the others' requests are served by the next handler, whose state
// is as if nothing had been.
func TestHandlerPanicCostsItsRequestOnly(t *testing.T) {
	for _, c := range []struct {
		in   string
		do   func(s *stage, a, b *peer) string
		want string
		last uint64 // offset afterwards
		data string // state afterwards
	}{
		{"publish", func(s *stage, a, b *peer) string { return a.publish("message", "4") }, "internal", 3, "[6,3]"},
		{"join", func(s *stage, a, b *peer) string { return fmt.Sprint(s.peer("carol", 64).join()) }, "[refused internal]", 3, "[6,3]"},
		{"leave", func(s *stage, a, b *peer) string { return fmt.Sprint(s.member("carol").leave()) }, "[parted]", 3, "[6,3]"},
		{"snapshot", func(s *stage, a, b *peer) string {
			a.publish("message", "4") // else the snapshot of a moment ago is shown
			return fmt.Sprint(s.peer("carol", 64).join())
		}, "[joined 4]", 4, "[10,4]"},
		// What the broker took is delivered, whatever Apply does; the handler never
		// sees it again.
		{"apply", func(s *stage, a, b *peer) string { return a.publish("message", "4") }, "accepted", 4, "[6,3]"},
	} {
		t.Run(c.in, func(t *testing.T) {
			b := &book{panics: map[string]int{}}
			s := newStage(t, b.kind())
			alice, bob := s.member("alice"), s.member("bob")
			if c.in == "leave" {
				s.member("carol")
			}
			s.publishAll(alice, 1, 3)
			alice.frames()
			want(t, "bob", bob.frames(), []string{"event 1", "event 2", "event 3"})
			epoch := s.room.seq.pos.Epoch

			b.panics[c.in] = 1
			want(t, "the guilty request", c.do(s, alice, bob), c.want)
			waits := alice.publishing("message", "100")
			s.run()
			want(t, "requests wait for the next handler", waits.n, 0)
			if s.room.cfg.Wheel.Armed() == 0 {
				t.Error("nobody makes the next handler")
			}
			s.recovered()
			want(t, "and are served by it", waits, "accepted")

			if s.room.seq.pos.Epoch != epoch || s.ended != 0 {
				t.Errorf("epoch %s, %d ended: a panic is no new history and no end", s.room.seq.pos.Epoch, s.ended)
			}
			want(t, "position", s.room.seq.pos.Offset, c.last+1)
			var all []string
			for i := uint64(4); i <= c.last+1; i++ {
				all = append(all, fmt.Sprint("event ", i))
			}
			want(t, "bob", bob.frames(), all)
			var sum, n int
			fmt.Sscanf(c.data, "[%d,%d]", &sum, &n)
			want(t, "state", s.peer("dave", 64).join(), []string{fmt.Sprintf("joined %d [%d,%d]", c.last+1, sum+100, n+1)})
			want(t, "handlers made", b.made, 2)
		})
	}
}

// member is a peer that has joined; carol is remembered.
func (s *stage) member(name string) *peer {
	s.t.Helper()
	p := s.peer(name, 64)
	if got := p.join(); len(got) != 1 || !strings.HasPrefix(got[0], "joined") {
		s.t.Fatalf("join of %s: %v", name, got)
	}
	return p
}

func TestHandlerGoesOnFromTheSnapshotAndWhatCameSince(t *testing.T) {
	b := &book{panics: map[string]int{}}
	s := newStage(t, b.kind())
	alice := s.member("alice")
	s.publishAll(alice, 1, 13) // whose Apply panics
	s.recovered()
	s.publishAll(alice, 14, DefaultSnapshotEvery+40)
	last := DefaultSnapshotEvery + 40
	sum := last*(last+1)/2 - 13

	b.panics["publish"] = 1
	want(t, "guilty", alice.publish("message", "1"), "internal")
	s.recovered()
	if len(b.applied) >= last-1 || b.applied[0] <= 13 {
		t.Errorf("the next handler applied %d events from %d on: it did not begin from the snapshot", len(b.applied), b.applied[0])
	}
	want(t, "state", s.peer("bob", 64).join(), []string{fmt.Sprintf("joined %d [%d,%d]", last, sum, last-1)})
}

func TestHandlerOnAnotherNodeBeginsFromTheHistory(t *testing.T) {
	b := &book{panics: map[string]int{}}
	s := newStage(t, plain)
	s.kind = b.kind()
	s.broker.publish(5)
	s.open()
	want(t, "applied", b.applied, []int{1, 2, 3, 4, 5})
	want(t, "data", s.peer("bob", 64).join(), []string{"joined 5 [0,5]"})
}

// Where the history is gone the handler starts anew, and tells no state that it
// does not have.
func TestHandlerWhoseHistoryIsGoneSendsNoData(t *testing.T) {
	b := &book{panics: map[string]int{}}
	s := newStage(t, plain)
	s.kind = b.kind()
	s.broker.publish(5)
	s.broker.kept = 2
	s.open()
	want(t, "join", s.peer("bob", 64).join(), []string{"joined 5"})
	alice := s.member("alice")
	s.publishAll(alice, 6, 7)
	want(t, "applied", b.applied, []int{6, 7})
	want(t, "join", s.peer("carol", 64).join(), []string{"joined 7"})
}

// A handler that serves nothing any more stops its room.
func TestHandlerOverTheLimitStopsTheRoom(t *testing.T) {
	for _, in := range []string{"publish", "new", "restore"} {
		t.Run(in, func(t *testing.T) {
			b := &book{panics: map[string]int{}}
			s := newStage(t, b.kind())
			alice, bob := s.member("alice"), s.member("bob")
			s.publishAll(alice, 100, 100+DefaultSnapshotEvery) // so that there is something to restore
			alice.frames()
			bob.frames()
			b.panics[in] = 100
			switch in {
			case "new", "restore":
				b.panics["publish"] = 1
			}
			var answers []*answer
			for range 20 {
				answers = append(answers, alice.publishing("message", "1"))
				s.run()
				if s.ended > 0 {
					break
				}
				s.recovered()
			}
			want(t, "ended", s.ended, 1)
			for _, p := range []*peer{alice, bob} {
				f := p.frames()
				if len(f) == 0 || f[len(f)-1] != "left stopped" {
					t.Errorf("%s: %v", p.name, f)
				}
				want(t, p.name+" was told that its membership ended", p.ended, 1)
			}
			s.room.Stopping()
			s.room.mb.Abandon() // as the tenant does, by stopping it
			s.run()
			for i, a := range answers {
				if a.n != 1 {
					t.Errorf("publish %d: %v", i, a)
				}
			}
			want(t, "after the end", fmt.Sprint(alice.frames(), bob.frames()), "[] []")
		})
	}
}

// A handler that fails wherever it can, and serves publishes in between, costs what
// it fails in, for as long as it likes.
func TestHandlerThatServesSomethingKeepsItsRoom(t *testing.T) {
	for _, in := range []string{"apply", "join", "leave", "snapshot"} {
		t.Run(in, func(t *testing.T) {
			b := &book{panics: map[string]int{}}
			s := newStage(t, b.kind())
			alice, bob := s.member("alice"), s.member("bob")
			b.panics[in] = 1 << 20
			for i := range 50 {
				want(t, "publish", alice.publish("message", "1"), "accepted")
				switch in {
				case "join", "snapshot":
					s.peer("guest", 64).join()
				case "leave":
					s.recovered()
					s.member("guest").leave()
				}
				s.recovered()
				want(t, "bob", bob.frames(), []string{fmt.Sprint("event ", i+1)})
			}
			want(t, "ended", s.ended, 0)
			if b.panics[in] > 1<<20-50 {
				t.Errorf("it panicked %d times only", 1<<20-b.panics[in])
			}
		})
	}
}

// Whoever is being reset when its room ends hears nothing after left.
func TestHandlerPanicInASnapshotForAReset(t *testing.T) {
	b := &book{panics: map[string]int{}}
	s := newStage(t, b.kind())
	alice := s.member("alice")
	bob := s.member("bob")
	s.publishAll(alice, 1, 3)
	alice.frames()
	bob.frames()
	for range 8 { // the ninth is over the limit, as docs/embedding.md says
		b.panics["publish"] = 1
		want(t, "guilty", alice.publish("message", "1"), "internal")
		s.recovered()
	}
	b.panics["snapshot"] = 1
	// The history is another one: everybody is reset, and is to be shown the state.
	s.broker.fail(2)
	s.broker.events = nil
	s.broker.head = 0
	s.broker.sink.Gap(s.broker.position())
	s.run()
	for _, p := range []*peer{alice, bob} {
		f := p.frames()
		if n := len(f); n > 0 && f[n-1] != "left stopped" && s.ended > 0 || n == 0 {
			t.Errorf("%s: %v", p.name, f)
		}
	}
}

func TestHandlerDecides(t *testing.T) {
	b := &book{panics: map[string]int{}}
	s := newStage(t, b.kind())
	alice := s.member("alice")
	want(t, "changed", alice.publish("double", "21"), "accepted")
	want(t, "as changed", string(s.broker.events[0].Data.In(codec.JSON)), "42")
	b.refuse = Refuse(codec.CodeConflict, "not now")
	want(t, "refused", alice.publish("message", "1"), "conflict")
	want(t, "refused joiner", s.peer("bob", 64).join(), []string{"refused conflict"})
	b.refuse = errors.New("a secret")
	want(t, "refused without a reason", alice.publish("message", "1"), "forbidden")
	want(t, "nothing was published", s.broker.head, 1)
	want(t, "leave", alice.leave()[1:], []string{"parted"})
	want(t, "told of who left, not of who was refused", b.left, []string{"alice"})
}

func TestContext(t *testing.T) {
	b := &book{panics: map[string]int{}}
	s := newStage(t, b.kind())
	alice, bob := s.member("alice"), s.member("bob")
	var kept *Context
	try := func(in string, f func(ctx *Context) error) error {
		t.Helper()
		var err error
		ran := false
		b.inside = func(ctx *Context, where string) {
			if where == in {
				kept, ran = ctx, true
				err = f(ctx)
			}
		}
		want(t, "publish", alice.publish("message", "1"), "accepted")
		b.inside = nil
		if !ran {
			t.Fatalf("%s was not called", in)
		}
		alice.frames()
		return err
	}
	want(t, "what it knows", try("publish", func(ctx *Context) error {
		return fmt.Errorf("%s %s %d %d", ctx.Tenant(), ctx.Room(), ctx.Position().Offset, len(ctx.Members()))
	}), "acme chat:1 0 2")
	bob.frames()

	want(t, "broadcast", try("publish", func(ctx *Context) error { return ctx.Broadcast("news", "x") }), nil)
	want(t, "a buffered broadcast comes in its order", bob.frames(), []string{"event 2", "event 3"})
	want(t, "broadcast of a transient event", try("publish", func(ctx *Context) error { return ctx.Broadcast("typing", "x") }), nil)
	want(t, "a transient one too", len(bob.frames()), 2)
	want(t, "send", try("publish", func(ctx *Context) error { return ctx.Send("bob", "typing", 1) }), nil)
	want(t, "to one", fmt.Sprint(bob.frames(), alice.frames()), "[typing event 5] []")
	want(t, "to nobody", try("publish", func(ctx *Context) error { return ctx.Send("eve", "typing", 1) }), ErrNotMember)
	want(t, "a buffered event to one", try("publish", func(ctx *Context) error { return ctx.Send("bob", "message", 1) }), ErrBuffered)
	want(t, "from apply", try("apply", func(ctx *Context) error { return ctx.Broadcast("news", 1) }), ErrApplying)
	want(t, "to one from apply", try("apply", func(ctx *Context) error { return ctx.Send("bob", "typing", 1) }), nil)
	if err := try("publish", func(ctx *Context) error { return ctx.Broadcast("news", func() {}) }); err == nil {
		t.Error("data that cannot be encoded was taken")
	}

	for name, use := range map[string]func(){
		"Tenant": func() { kept.Tenant() }, "Room": func() { kept.Room() }, "Position": func() { kept.Position() },
		"Members": func() { kept.Members() }, "Log": func() { kept.Log() }, "Send": func() { kept.Send("bob", "typing", 1) },
		"Broadcast": func() { kept.Broadcast("news", 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s works after its callback", name)
				}
			}()
			use()
		}()
	}
}
