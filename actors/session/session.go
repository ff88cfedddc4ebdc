package session

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport"
)

// ActorKind is how sessions are supervised: one that fails is ended, and its
// client resumes.
var ActorKind = actors.Kind{Name: "session", Rule: supervision.Rule{Directive: supervision.Stop}}

const (
	// inboundItems is how many messages of a client may wait for its session.
	inboundItems = 64
	// helloJoinTime is how long a room may take to answer a join of a hello.
	helloJoinTime = 2 * time.Second
	// expiringBefore is how long before its end a client is told that its
	// credentials end.
	expiringBefore = 30 * time.Second
	// lookAgain is how long a reader waits at most before it tries again to hand on
	// what it has read.
	lookAgain = 100 * time.Millisecond
	// tellEvery is how often a membership without echo is told where it stands.
	tellEvery = time.Second
)

// Rooms finds the rooms of a tenant.
type Rooms interface {
	// Room is the mailbox of the room, which is made if it does not exist.
	Room(name string, kind *message.Policy) (*mailbox.Mailbox, *codec.Error)
	// Forget drops a room whose mailbox said Closed, so that the next Room makes
	// it anew.
	Forget(name string, closed *mailbox.Mailbox)
}

// Limits are an engine's numbers for all sessions.
type Limits struct {
	Ping, Pong      time.Duration
	WriteTimeout    time.Duration
	ResumeTTL       time.Duration
	MaxRooms        int
	MaxMessageBytes int
	MaxFrameBytes   int
}

// Env is what the sessions of one tenant share. Immutable; NewEnv makes it.
type Env struct {
	Node   string
	Limits Limits
	Logger *slog.Logger

	// what runs them, and what they are charged to
	Pool   *scheduler.Pool
	Wheel  *scheduler.Wheel
	Tenant *scheduler.Tenant
	Queue  *backpressure.Account // of the tenant's queues
	Frames *backpressure.Account // what of it frames to clients may fill
	Rates  *Rates                // of what the tenant's clients ask for
	Out    *mailbox.OutboundConfig
	Lanes  *mailbox.LanePool

	// what they ask
	Kinds    *message.Declared
	Coalesce *message.Coalescer
	Rooms    Rooms
	Broker   bridge.Broker
	Presence bridge.Presence
	Commands func(*message.Command) *codec.Error // the tenant's own; nil: it has none
	// Authorize is asked beside the grants; nil: they alone say what is allowed.
	Authorize Authorize
	Sealer    *auth.Sealer // of resume tokens

	// what the engine says of itself
	Reach   *Reach
	Leaving *Leaving

	// what is measured
	Faults *message.Refusals // counts frames that are refused for what they are
	Timing mailbox.Timing    // is told how long sessions' messages wait; nil: nobody asks
	// Trace begins to follow a publish, or not (nil). Nil: none is followed.
	Trace func(*message.Publish) message.Trace

	mailbox *mailbox.Config // of each of them
}

// NewEnv is e, completed.
func NewEnv(e Env) *Env {
	e.mailbox = &mailbox.Config{
		Pool: e.Pool, Class: scheduler.Session, Tenant: e.Tenant, Removed: removed,
		Items: inboundItems, Bytes: 2 * e.Limits.MaxMessageBytes, Lanes: e.Lanes, Account: e.Queue, Frames: e.Frames,
		Timing: e.Timing,
	}
	return &e
}

// Verifier looks at new credentials for one session.
type Verifier interface {
	// Verify calls done exactly once, within the time of a handshake, on any
	// goroutine, which posts. The error wraps auth.ErrUnauthenticated when the
	// credentials are at fault; any other says that they could not be looked at.
	Verify(token string, done func(*auth.Identity, error))
}

// Config is one session.
type Config struct {
	*Env
	ID         string
	Generation uint64 // of its lease
	Resumed    bool
	Identity   *auth.Identity // who the client was at its hello
	Verifier   Verifier
	Conn       transport.Conn
	Hello      *codec.Hello
}

// Bits of the session's own signal.
const (
	timed    uint32 = 1 << iota
	closed          // the connection has ended
	kicked          // the embedder or the tenant: close it
	keptBack        // a membership was kept from the session's own events
	noticed         // Reach or Leaving has changed, or kinds were declared anew
)

type phase uint8

const (
	opening phase = iota
	open
	closing
	ended
)

// Session is one connection's actor. There is one for each client, so its size counts:
// what few need, or only for a while, is made when it is needed.
type Session struct {
	// immutable
	cfg        *Env
	id         string
	generation uint64 // of its lease
	verifier   Verifier
	out        mailbox.Outbound // has its own lock

	// atomic
	// identity is what the credentials of the moment say; the actor changes it, and
	// never tenant or subject.
	identity atomic.Pointer[auth.Identity]
	in       atomic.Int64  // when something was last received, by the pool's clock
	pages    atomic.Int32  // of history, under way
	cause    atomic.Uint32 // why it ends: the first that anyone gave, unless a later one comes at once
	place    place         // for requests

	signal mailbox.Signal
	timer  scheduler.Timer

	// owned by the actor
	turn    *scheduler.Turn
	rooms   memberships
	seldom  *seldom // nil: nothing of it is needed
	live    liveness
	expires int64 // end of the credentials; 0: never
	phase   phase
	hungUp  bool // the connection has ended, what it brought before is handled
	warned  bool // the client knows that the node leaves
	ageing  bool // the client knows that its credentials end
}

// New makes a session and its mailbox.
func New(cfg Config) *Session {
	s := &Session{cfg: cfg.Env, id: cfg.ID, generation: cfg.Generation, verifier: cfg.Verifier}
	s.out.Init(cfg.Out, cfg.Conn, cfg.Conn.Framing(), mailbox.New(cfg.mailbox, &s.out))
	s.rarely().hello = &opened{s: s, hello: cfg.Hello, resumed: cfg.Resumed}
	s.signal.Init(s)
	s.timer.Init(func() { s.Mailbox().Raise(&s.signal, timed) })
	s.in.Store(cfg.Pool.Now())
	s.become(cfg.Identity)
	return s
}

// Mailbox of the session.
func (s *Session) Mailbox() *mailbox.Mailbox { return s.out.Mailbox() }

func (s *Session) conn() transport.Conn { return s.out.Conn().(transport.Conn) }

// ID of the session.
func (s *Session) ID() string { return s.id }

// Subject of the session; it never changes.
func (s *Session) Subject() string { return s.identity.Load().Subject }

// Alive notes that something was received; the reader's.
func (s *Session) Alive() { s.in.Store(s.cfg.Pool.Now()) }

// Blame says why the session ends, if nobody has before, and returns what holds;
// callable by anyone.
func (s *Session) Blame(cause codec.Cause) codec.Cause {
	if cause.Immediate() {
		s.cause.Store(uint32(cause))
	} else {
		s.cause.CompareAndSwap(0, uint32(cause))
	}
	return codec.Cause(s.cause.Load())
}

// Closed says that the connection has ended, after Blame said why; the reader's,
// once.
func (s *Session) Closed() { s.Mailbox().Raise(&s.signal, closed) }

// Kick closes the session in order, with a cause; callable by anyone.
func (s *Session) Kick(cause codec.Cause) {
	s.Blame(cause)
	s.Mailbox().Raise(&s.signal, kicked)
}

// Post hands a request of size bytes to the session. It waits while the queue is
// full. False: the session takes no more. For the reader alone.
func (s *Session) Post(r codec.Request, size int) bool {
	lane := backpressure.Interactive
	switch r.(type) {
	case *codec.Ping, *codec.Pong:
		lane = backpressure.Control
	}
	it := mailbox.Item{Msg: r, Size: size}
	for {
		switch o := s.Mailbox().Post(lane, it); {
		case o.Took():
			return true
		case o == backpressure.Closed, o == backpressure.TooLarge:
			return false
		}
		answer := s.place.ask()
		if s.Mailbox().Post(lane, it).Took() {
			s.place.free()
			return true
		}
		select {
		case <-answer:
		case <-time.After(lookAgain): // nobody says when the tenant's budget has place again
		}
		if s.place.closed() {
			return false
		}
		s.Alive() // it is we who do not read
	}
}

// Started begins with the joins of the hello.
func (s *Session) Started(*actors.Context) {
	s.seldom.hello.begin()
	s.tick()
}

// Receive is one batch of the client's requests and of what rooms say.
func (s *Session) Receive(b *mailbox.Batch) {
	s.turn = b.Turn()
	for {
		s.out.Stuffed() // if it is, only signals come until enough has gone out
		msg, ok := b.Next()
		if !ok {
			break
		}
		switch m := msg.(type) {
		case codec.Request:
			if s.phase == open || s.phase == opening {
				s.handle(m)
			}
		case *renewal:
			s.adopt(m)
		case *mailbox.Raised:
			s.signalled(m.Owner, m.Bits)
		}
	}
	if s.place.asked() && s.Mailbox().Depth(backpressure.Interactive) <= inboundItems/2 {
		s.place.free()
	}
	if s.hungUp && s.phase != ended {
		s.Mailbox().Raise(&s.signal, closed)
	}
	s.turn = nil
}

func (s *Session) signalled(owner any, bits uint32) {
	switch o := owner.(type) {
	case *message.Membership: // the room has ended it
		if s.rooms.remove(o) {
			s.out.Part(o.Seat.Slot)
		}
	case *message.HelloJoin:
		if s.phase == opening {
			s.seldom.hello.answered(o)
		}
	case *refresh:
		if s.phase < closing {
			s.verified()
		}
	case *inquiry:
		if s.phase < closing {
			s.heard(o)
		}
	case *Session:
		if bits&closed != 0 {
			s.hangUp()
		}
		if bits&kicked != 0 {
			s.kick(codec.Cause(s.cause.Load()))
		}
		if bits&keptBack != 0 {
			s.rarely().untold = true
		}
		if bits&noticed != 0 && s.phase < closing {
			s.leaveForbidden() // of a kind that is no more
		}
		if bits&(timed|keptBack|noticed) != 0 {
			s.tick()
		}
	}
}

// tick does what is due and sets the timer to what is next.
func (s *Session) tick() {
	if s.phase == ended {
		return
	}
	now := s.cfg.Pool.Now()
	next := time.Duration(1<<62 - 1)
	until := func(at int64) { next = min(next, time.Duration(at-now)) }
	if s.phase == closing {
		if now >= s.seldom.deadline {
			s.conn().Close(codec.CauseOverload, "")
			return
		}
		until(s.seldom.deadline)
	} else {
		if s.expires != 0 && now >= s.expires {
			s.close(codec.CauseUnauthenticated, "credentials ended")
			return
		}
		if s.phase == opening && now >= s.seldom.hello.deadline {
			s.seldom.hello.timeout()
		}
		if s.phase == opening {
			until(s.seldom.hello.deadline)
		}
		if s.expires != 0 {
			until(s.expires)
		}
		if s.expires != 0 && !s.ageing && s.phase == open {
			ends := s.expires - int64(s.identity.Load().Leeway)
			if left := time.Duration(ends - now); left <= expiringBefore {
				s.out.Control(codec.NewFrame(&codec.Expiring{In: max(0, left)}))
				s.ageing = true
			} else {
				until(ends - int64(expiringBefore))
			}
		}
		if s.phase == open && !s.tellReach() {
			until(now + int64(tellEvery))
		}
		if s.phase == open && s.cfg.Leaving.begun() && !s.warn(time.Duration(s.cfg.Leaving.over.Load())) {
			until(now + int64(tellEvery))
		}
		if s.pending() != nil {
			if s.advance(); s.phase >= closing {
				return // which has set the timer
			}
			if q := s.pending(); q != nil && q.full {
				until(now + int64(askAgain))
			}
		}
		if r := s.seldom; r != nil {
			if at := r.commands.expire(s.turn, now); at != 0 {
				until(at)
			}
			if r.untold && now >= r.told+int64(tellEvery) {
				r.told = now
				s.tell()
			}
			if r.untold {
				until(r.told + int64(tellEvery))
			}
			if r.idle(now) {
				s.seldom = nil
			}
		}
		in := s.in.Load()
		if s.out.Took() {
			in = now // it reads, though slowly
		}
		what, wait := s.live.check(&s.cfg.Limits, now, in, s.out.Sent())
		switch what {
		case giveUp:
			s.conn().Close(codec.CauseTimeout, "no pong")
			s.leaveRooms((*message.Membership).Lost) // they do not wait for the close, which nobody may answer
			return
		case sendPing:
			s.out.Control(pingFrame)
			if p, ok := s.out.Conn().(transport.Pinger); ok {
				p.Ping()
			}
		}
		next = min(next, wait)
	}
	s.cfg.Wheel.Set(&s.timer, max(next, scheduler.Tick))
}

// kick is Kick, in the actor.
func (s *Session) kick(cause codec.Cause) {
	reason := ""
	if cause == codec.CauseRestart {
		reason = s.cfg.Leaving.Reason(s.id)
		if s.phase == open {
			s.warn(s.cfg.Limits.WriteTimeout)
		}
	}
	s.close(cause, reason)
}

// tell tells memberships without echo where they stand.
func (s *Session) tell() {
	more := false
	for m := s.rooms.first; m != nil; m = m.Next {
		if m.Seat.NoEcho {
			more = s.out.Position(s.turn, m.Policy.Lane, m.Topic.Room, m.Seat)
		}
	}
	if s.seldom != nil {
		s.seldom.untold = more
	}
}

// close ends the session in order: what is queued goes out first, unless the
// cause is one that comes at once.
func (s *Session) close(cause codec.Cause, reason string) {
	if s.hungUp {
		s.end()
	}
	s.Blame(cause)
	if s.phase == closing && cause.Immediate() {
		s.out.End()
		s.conn().Close(cause, reason)
	}
	if s.phase >= closing {
		return
	}
	s.phase = closing
	s.place.close()
	s.rarely().hello = nil
	s.seldom.deadline = s.cfg.Pool.Now() + int64(s.cfg.Limits.WriteTimeout)
	if cause.Immediate() {
		s.out.End()
		s.conn().Close(cause, reason)
	} else {
		s.tell()
		s.out.Finish(cause, reason)
	}
	s.tick()
}

// hangUp ends a session whose connection has ended. What the client said before
// counts, and is handled first.
func (s *Session) hangUp() {
	if s.phase >= closing || s.Mailbox().UserMessageCount() == 0 {
		s.end()
		return
	}
	s.hungUp = true
	s.out.End() // nobody is there to be told
}

// leaveRooms tells every room how the session has left it.
func (s *Session) leaveRooms(how func(*message.Membership)) {
	for m := s.rooms.first; m != nil; m = m.Next {
		how(m)
	}
}

// end is the last thing that a session does.
func (s *Session) end() {
	if s.phase == ended {
		return
	}
	s.place.close()
	s.phase = ended
	if codec.Cause(s.cause.Load()).Final() {
		s.leaveRooms((*message.Membership).Gone)
	} else {
		s.leaveRooms((*message.Membership).Lost)
	}
	s.rooms = memberships{}
	if s.seldom != nil {
		s.seldom.hello = nil
		s.seldom.commands.gone()
		s.dropInquiries()
		s.dropTokens()
	}
	s.out.End()
	actors.Stop(s.Mailbox())
}

// Stopping makes sure of it: the session was stopped from outside, or failed.
func (s *Session) Stopping() {
	s.end()
	s.conn().Close(codec.CauseInternal, "")
	s.cfg.Wheel.Clear(&s.timer)
}

// Stopped is the end.
func (s *Session) Stopped() {}
