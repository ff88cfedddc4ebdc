package tenant

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// world runs one tenant in virtual time, with rooms and sessions of straw.
type world struct {
	t      *testing.T
	pool   *scheduler.Pool
	wheel  *scheduler.Wheel
	system *actors.System
	node   *backpressure.Account
	tenant *Tenant
	limits Limits

	// guarded by mu
	mu    sync.Mutex
	log   []string
	ended int // times that Config.Ended was called
	rooms map[string]*straw
}

func (w *world) After(d time.Duration, f func()) { f() }

// play runs f with a tenant that has started, and checks at the end that nothing
// is left of it.
func play(t *testing.T, limits Limits, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, wheel: scheduler.NewWheel(), node: backpressure.NewAccount(nil, 0),
			limits: limits, rooms: make(map[string]*straw),
		}
		w.pool = scheduler.NewPool(scheduler.PoolConfig{Workers: 2})
		w.system = actors.NewSystem(actors.Config{Clock: w, Failed: func(f actors.Failure) { t.Errorf("failed: %v", f.Panic) }})
		w.wheel.Start()
		w.pool.Start()
		w.tenant = New(Config{
			Name: "acme", Limits: limits, Pool: w.pool, Wheel: w.wheel, Queue: w.node, Replay: w.node,
			NewRoom:  w.newRoom,
			RoomKind: &actors.Kind{Name: "room"}, SessionKind: &actors.Kind{Name: "session"},
			Ended: func(*Tenant) { w.mu.Lock(); w.ended++; w.mu.Unlock() },
		})
		if _, err := w.system.SpawnRoot(&ActorKind, w.tenant, w.tenant.Mailbox()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f(w)
		w.tenant.Cut()
		select {
		case <-w.system.Close():
		case <-time.After(time.Minute):
			t.Errorf("%d actors are left", w.system.Live())
		}
		w.wheel.Stop()
		w.pool.Stop()
		if n := w.node.Used(); n != 0 {
			t.Errorf("ledger at the end: %d", n)
		}
	})
}

func (w *world) hasEnded() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

func (w *world) say(what string) {
	w.mu.Lock()
	w.log = append(w.log, what)
	w.mu.Unlock()
}

// said is what was said since it was asked last, once everything has come to rest.
func (w *world) said() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.log
	w.log = nil
	return log
}

func (w *world) want(what string, want ...string) {
	w.t.Helper()
	if got := w.said(); !slices.Equal(got, want) {
		w.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// straw is a room or a session that says what happens to it.
type straw struct {
	w       *world
	name    string
	mb      *mailbox.Mailbox
	over    func()        // of a room: it has closed its mailbox
	held    chan struct{} // of a room: what its handler waits for
	subject string
	signal  mailbox.Signal
	context *actors.Context
}

func (w *world) newRoom(topic codec.Topic, _ *message.Policy, ended func()) Room {
	s := w.straw("room " + topic.Room)
	s.over = ended
	w.mu.Lock()
	w.rooms[topic.Room] = s
	w.mu.Unlock()
	return s
}

func (w *world) straw(name string) *straw {
	s := &straw{w: w, name: name}
	s.mb = mailbox.New(&mailbox.Config{
		Pool: w.pool, Tenant: w.tenant.Flow(), Items: 8, Bytes: 1 << 10, Account: w.tenant.Queue(),
		Removed: func(msg any, _ backpressure.Outcome) { w.say(name + " gives back " + msg.(string)) },
	}, nil)
	s.signal.Init(s)
	return s
}

func (s *straw) Mailbox() *mailbox.Mailbox { return s.mb }
func (s *straw) Subject() string           { return s.subject }

func (s *straw) Notice() { s.w.say(s.name + " is noticed") }

func (s *straw) Kick(cause codec.Cause) { s.w.say(s.name + " is kicked: " + cause.String()) }

func (s *straw) Abandon() bool {
	if s.held == nil {
		return false
	}
	s.mb.Abandon()
	return true
}

func (s *straw) Started(c *actors.Context) {
	s.context = c
	s.w.say(s.name + " starts")
}

func (s *straw) Receive(b *mailbox.Batch) {
	for msg, ok := b.Next(); ok; msg, ok = b.Next() {
		switch m := msg.(type) {
		case *mailbox.Raised: // leave off
			if s.over != nil && s.mb.CloseIfIdle() {
				s.over()
			}
		case string:
			s.w.say(s.name + " gets " + m)
			if s.held != nil {
				<-s.held
			}
		}
	}
}

func (s *straw) Stopping() {}
func (s *straw) Stopped()  { s.w.say(s.name + " ends") }

// leaveOff makes a room end itself.
func (s *straw) leaveOff() { s.mb.Raise(&s.signal, 1) }

func (w *world) room(name string) (*mailbox.Mailbox, *codec.Error) { return w.tenant.Room(name, nil) }

func (w *world) post(name, msg string) backpressure.Outcome {
	w.t.Helper()
	mb, err := w.room(name)
	if err != nil {
		w.t.Fatalf("room %s: %v", name, err)
	}
	return mb.Post(backpressure.Interactive, mailbox.Item{Msg: msg, Size: len(msg)})
}

// attach starts a session, or says why not.
func (w *world) attach(subject string) (*straw, *codec.Error) {
	w.t.Helper()
	return w.replace(subject, nil)
}

// replace is attach for a session that takes the place of old.
func (w *world) replace(subject string, old *straw) (*straw, *codec.Error) {
	w.t.Helper()
	s := w.straw("session " + subject)
	s.subject = subject
	done := make(chan *codec.Error, 1)
	a := &message.Attach{Session: s, Done: func(err *codec.Error) { done <- err }}
	if old != nil {
		a.Replaces = old
	}
	if o := w.tenant.Attach(a); !o.Took() {
		w.t.Fatalf("attach: %v", o)
	}
	return s, <-done
}
