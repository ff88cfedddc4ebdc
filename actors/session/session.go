package session

import (
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport"
)

// ActorKind is how sessions are supervised: one that fails is ended, and its
// client resumes.
var ActorKind = actors.Kind{Name: "session", Rule: supervision.Rule{Directive: supervision.Stop}}

// lookAgain is how long a reader waits at most before it tries again to hand on what it
// has read.
const lookAgain = 100 * time.Millisecond

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
