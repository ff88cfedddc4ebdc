package tenant

import (
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// ActorKind is how tenants are supervised: no user code runs in one, so it goes
// on after a fault; one that fails and fails is stopped.
var ActorKind = actors.Kind{Name: "tenant", Rule: supervision.Rule{
	Directive: supervision.Resume,
	Backoff:   supervision.Backoff{MaxRestarts: 10, Window: time.Minute},
}}

const (
	// mailboxItems and mailboxBytes bound what waits for a tenant: handshakes
	// that have passed authentication, mostly.
	mailboxItems = 1024
	mailboxBytes = 1 << 20
	attachSize   = 256

	// linger is how long a tenant outlives its last session and room.
	linger = time.Minute
)

// Limits of one tenant on this node.
type Limits struct {
	Weight      int
	MaxSessions int
	MaxRooms    int
	QueueBytes  int64
	ReplayBytes int64
}

// Config is one tenant.
type Config struct {
	Name   string
	Limits Limits
	Pool   *scheduler.Pool
	Wheel  *scheduler.Wheel
	Queue  *backpressure.Account // the node's queues
	Replay *backpressure.Account // the node's replay_bytes

	// NewRoom makes a room; it must not block. ended is for the room to call when
	// its mailbox is closed.
	NewRoom func(topic codec.Topic, kind *message.Policy, ended func()) Room
	// RoomKind and SessionKind are how the children are supervised.
	RoomKind, SessionKind *actors.Kind
	// Timing is told how long the tenant's messages wait; nil: nobody asks.
	Timing mailbox.Timing
	// Ended is told that the tenant takes nothing any more, and that the next one
	// of its name must be made anew.
	Ended func(*Tenant)
}

// Bits of the tenant's own signal.
const (
	lingered uint32 = 1 << iota
	closing
	cut
	notice   // to be given to every session
	noticing // and is being given
)

// Tenant is the actor, and what others may use of a tenant.
type Tenant struct {
	// immutable
	cfg     Config
	mb      *mailbox.Mailbox
	flow    *scheduler.Tenant
	queue   *backpressure.Account
	frames  *backpressure.Account // within queue
	present *backpressure.Account // within frames
	replay  *backpressure.Account

	directory directory // has its own lock
	signal    mailbox.Signal
	timer     scheduler.Timer
	stopping  chan struct{} // closed by Stopping

	maxSessions atomic.Int64

	// owned by the actor
	sessions map[*mailbox.Mailbox]message.Session
	replaced map[*mailbox.Mailbox]struct{} // sessions that were taken over and have not ended yet
	rooms    map[*actors.Ref]*entry
	ending   bool
	context  *actors.Context

	unnoticed []message.Session // who has not had the notice under way
}

// New makes a tenant and its mailbox.
func New(cfg Config) *Tenant {
	t := &Tenant{
		cfg:      cfg,
		stopping: make(chan struct{}),
		flow:     scheduler.NewTenant(1),
		queue:    backpressure.NewAccount(cfg.Queue, 0),
		replay:   backpressure.NewAccount(cfg.Replay, 0),
		sessions: make(map[*mailbox.Mailbox]message.Session),
		replaced: make(map[*mailbox.Mailbox]struct{}),
		rooms:    make(map[*actors.Ref]*entry),
	}
	t.frames = backpressure.NewAccount(t.queue, 0)
	t.present = backpressure.NewAccount(t.frames, 0)
	t.mb = mailbox.New(&mailbox.Config{
		Pool: cfg.Pool, Class: scheduler.Actor, Tenant: t.flow,
		Items: mailboxItems, Bytes: mailboxBytes, Account: t.queue, Removed: removed, Timing: cfg.Timing,
	}, nil)
	t.signal.Init(t)
	t.timer.Init(func() { t.mb.Raise(&t.signal, lingered) })
	t.directory = directory{tenant: t.mb, name: cfg.Name, rooms: make(map[string]*entry), make: cfg.NewRoom}
	t.Limit(cfg.Limits)
	return t
}

// Limit gives the tenant other limits; callable by anyone. What is beyond them stays,
// and nothing is added to it.
func (t *Tenant) Limit(l Limits) {
	t.flow.SetWeight(l.Weight)
	t.queue.SetLimit(l.QueueBytes)
	t.frames.SetLimit(l.QueueBytes / 4 * 3)
	t.present.SetLimit(l.QueueBytes / 2)
	t.replay.SetLimit(l.ReplayBytes)
	t.maxSessions.Store(int64(l.MaxSessions))
	t.directory.mu.Lock()
	t.directory.max = l.MaxRooms
	t.directory.mu.Unlock()
}

// Mailbox, Flow, Queue and Replay are for its sessions and rooms.

func (t *Tenant) Mailbox() *mailbox.Mailbox    { return t.mb }
func (t *Tenant) Flow() *scheduler.Tenant      { return t.flow }
func (t *Tenant) Queue() *backpressure.Account { return t.queue }

// Frames is the part of Queue that frames on their way to clients may fill: three
// quarters, so that clients who do not read cannot keep requests out.
func (t *Tenant) Frames() *backpressure.Account { return t.frames }

// Present is the part of Frames that who is present in rooms may fill: half of Queue,
// so that a crowd keeps out neither requests nor what it is told.
func (t *Tenant) Present() *backpressure.Account { return t.present }

func (t *Tenant) Replay() *backpressure.Account { return t.replay }

// Name of the tenant.
func (t *Tenant) Name() string { return t.cfg.Name }

// Room finds a room, or makes it.
func (t *Tenant) Room(name string, kind *message.Policy) (*mailbox.Mailbox, *codec.Error) {
	return t.directory.Room(name, kind)
}

// Forget drops a room whose mailbox said Closed.
func (t *Tenant) Forget(name string, closed *mailbox.Mailbox) { t.directory.Forget(name, closed) }

// Rooms is how many there are.
func (t *Tenant) Rooms() int { return t.directory.size() }

// EachRoom calls f for each room that there is now, with no lock held.
func (t *Tenant) EachRoom(f func(name string, m *mailbox.Mailbox)) {
	for _, e := range t.directory.all() {
		f(e.name, e.room.Mailbox())
	}
}

// Attach starts a session.
func (t *Tenant) Attach(a *message.Attach) backpressure.Outcome {
	return t.mb.Post(backpressure.Interactive, mailbox.Item{Msg: a, Size: attachSize})
}

// Disconnect closes sessions.
func (t *Tenant) Disconnect(d *message.Disconnect) backpressure.Outcome {
	return t.mb.Post(backpressure.Control, mailbox.Item{Msg: d, Size: attachSize})
}

// Abandon is for the watchdog: task has run for too long. False: it is no room of
// this tenant, or is not in a handler.
func (t *Tenant) Abandon(task *scheduler.Task) bool { return t.directory.abandon(task) }

// Close ends the tenant in order: its sessions are closed for the node's leaving,
// and when the last has ended its rooms stop and then the tenant.
func (t *Tenant) Close() { t.mb.Raise(&t.signal, closing) }

// Cut ends the tenant at once: sessions that are left are stopped.
func (t *Tenant) Cut() { t.mb.Raise(&t.signal, cut) }

// Ending is closed when no session is left and the tenant stops, whatever for.
func (t *Tenant) Ending() <-chan struct{} { return t.stopping }

// Started is the actor's.
func (t *Tenant) Started(c *actors.Context) {
	t.context = c
	t.rest()
}

// Receive is one batch.
func (t *Tenant) Receive(b *mailbox.Batch) {
	for {
		msg, ok := b.Next()
		if !ok {
			return
		}
		switch m := msg.(type) {
		case *message.Attach:
			t.attach(m)
		case *message.Disconnect:
			t.disconnect(m)
		case *mailbox.Raised:
			switch o := m.Owner.(type) {
			case *entry:
				t.room(o, m.Bits)
			case *Tenant:
				t.own(m.Bits)
			}
		}
	}
}

// attach is takeover, quota and spawn in one turn.
func (t *Tenant) attach(a *message.Attach) {
	if a.Replaces != nil {
		if old := a.Replaces.Mailbox(); t.sessions[old] != nil {
			delete(t.sessions, old)
			t.replaced[old] = struct{}{}
		}
	}
	switch {
	case t.ending:
		a.Done(codec.Retry(codec.CodeDraining, codec.ScopeNode, time.Second, "the node is leaving"))
		return
	case len(t.sessions) >= int(t.maxSessions.Load()):
		a.Done(codec.Retry(codec.CodeQuotaExceeded, codec.ScopeTenant, time.Second, "as many sessions as the tenant may have"))
		return
	}
	if _, err := t.context.Spawn(t.cfg.SessionKind, a.Session, a.Session.Mailbox()); err != nil {
		a.Done(errEnding)
		return
	}
	t.sessions[a.Session.Mailbox()] = a.Session
	a.Done(nil)
}

func (t *Tenant) disconnect(d *message.Disconnect) {
	n := 0
	for _, s := range t.sessions {
		if d.Subject == "" || s.Subject() == d.Subject {
			s.Kick(d.Cause)
			n++
		}
	}
	d.Done(n)
}

// room starts or ends a room.
func (t *Tenant) room(e *entry, bits uint32) {
	if bits&wanted != 0 && t.ending {
		t.drop(e)
		return
	}
	if bits&wanted != 0 && e.ref == nil {
		ref, err := t.context.Spawn(t.cfg.RoomKind, e.room, e.room.Mailbox())
		if err != nil {
			t.drop(e)
			return
		}
		e.ref = ref
		t.rooms[ref] = e
	}
	if bits&over != 0 {
		t.directory.Forget(e.name, e.room.Mailbox())
		if e.ref != nil {
			e.ref.Stop()
		}
	}
}

func (t *Tenant) own(bits uint32) {
	switch {
	case bits&notice != 0:
		t.notice()
	case bits&noticing != 0:
		t.noticeMore()
	}
	switch {
	case bits&cut != 0:
		t.context.Self().Stop()
	case bits&closing != 0:
		t.ending = true
		t.directory.close(true, nil)
		for _, s := range t.sessions {
			s.Kick(codec.CauseRestart)
		}
		t.emptied()
	case bits&lingered != 0 && !t.ending:
		if t.unused() && t.directory.close(false, t.mb.CloseIfIdle) {
			t.ending = true
			t.cfg.Ended(t)
			t.context.Self().Stop()
			return
		}
		t.rest()
	}
}

// drop ends a room that was never started: what waits in its mailbox is answered.
func (t *Tenant) drop(e *entry) {
	t.directory.Forget(e.name, e.room.Mailbox())
	e.room.Mailbox().Abandon()
}

// unused: nothing of it is left but itself.
func (t *Tenant) unused() bool {
	return len(t.sessions) == 0 && len(t.replaced) == 0 && len(t.rooms) == 0
}

// rest looks again in a while whether the tenant is still used, while it is not.
func (t *Tenant) rest() {
	if t.unused() {
		t.cfg.Wheel.Set(&t.timer, linger)
	}
}

// ChildStopped forgets a child, whoever ended it.
func (t *Tenant) ChildStopped(ref *actors.Ref) {
	if e := t.rooms[ref]; e != nil {
		delete(t.rooms, ref)
		t.directory.Forget(e.name, e.room.Mailbox())
	}
	delete(t.sessions, ref.Mailbox)
	delete(t.replaced, ref.Mailbox)
	t.emptied()
}

// emptied ends a closing tenant that has no sessions, or lets one rest that has
// nothing.
func (t *Tenant) emptied() {
	switch {
	case !t.ending:
		t.rest()
	case len(t.sessions) == 0 && len(t.replaced) == 0:
		t.context.Self().Stop()
	}
}

// Stopping and Stopped are the end.
func (t *Tenant) Stopping() {
	t.ending = true
	t.directory.close(true, nil)
	t.cfg.Wheel.Clear(&t.timer)
	close(t.stopping)
}

// Stopped is the last call.
func (t *Tenant) Stopped() { t.cfg.Ended(t) }

// removed answers what left the mailbox unhandled.
func removed(msg any, o backpressure.Outcome) {
	switch m := msg.(type) {
	case *message.Attach:
		m.Done(message.Refusal(o, codec.ScopeTenant))
	case *message.Disconnect:
		m.Done(0)
	case *mailbox.Raised:
		if e, ok := m.Owner.(*entry); ok && m.Bits&wanted != 0 {
			e.room.Mailbox().Abandon()
		}
	}
}
