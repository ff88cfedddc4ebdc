package engine

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/session"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport"
)

// Admit decides about a request before its upgrade.
func (e *Engine) Admit(r *http.Request) *codec.Error {
	if e.guests.areLeaving() {
		return errLeaving
	}
	if err := e.admission.paced(e.pool.Now(), address(r)); err != nil {
		if n := e.rushed.due(time.Now()); n > 0 {
			e.cfg.Logger.Warn("connections refused: they come faster than they may", "times", n)
		}
		return err
	}
	if err := e.admission.judge(r); err != nil {
		return err
	}
	if !e.admission.enter(address(r)) {
		return codec.Retry(codec.CodeUnavailable, codec.ScopeNode, retryFull, "too many connections have not said hello")
	}
	if err := e.vouch(r); err != nil {
		e.admission.leave(address(r))
		return err
	}
	return nil
}

// Abandon takes an admission back.
func (e *Engine) Abandon(r *http.Request) { e.admission.leave(address(r)) }

// Accept takes a connection over.
func (e *Engine) Accept(c transport.Conn, r transport.Request) transport.Receiver {
	n := &connection{e: e, conn: c, request: r, deadline: r.Deadline}
	if latest := time.Now().Add(e.cfg.Limits.HandshakeTimeout); n.deadline.IsZero() || n.deadline.After(latest) {
		n.deadline = latest
	}
	n.timer.Init(func() { c.Close(codec.CauseTimeout, "no hello in time") })
	e.wheel.Set(&n.timer, time.Until(n.deadline))
	e.connections.add(n)
	n.guest = e.guests.enter() // else it is closed at once
	n.stays = context.AfterFunc(e.staying, func() { c.Close(codec.CauseRestart, e.leaving.Reason("")) })
	return n
}

// connection is what is read from one client. All but the timer is the reader
// goroutine's.
type connection struct {
	e       *Engine
	conn    transport.Conn
	request transport.Request
	timer   scheduler.Timer // fires at deadline
	greeted bool            // no longer counted as unauthenticated
	guest   bool            // a drain waits for it

	deadline time.Time   // of the handshake
	stays    func() bool // it is not closed any more because the node leaves; false: it was

	node    *node
	record  *record               // of the session, from the attempt to attach it on
	session *session.Session      // nil: before the hello
	counted bool                  // as a session
	refused bool                  // what still comes is not looked at
	held    *backpressure.Account // that request.Held is charged to; nil: none is
	started time.Time
}

// Alive is called for every read.
func (c *connection) Alive() {
	if c.session != nil {
		c.session.Alive()
	}
}

// Message takes one message of the client.
func (c *connection) Message(b []byte, binary bool) {
	switch {
	case c.refused:
	case c.session == nil:
		c.aside(func() { c.hello(b, binary) })
	default:
		if c.e.unmeasure != nil {
			c.e.counts.messages.Add(1)
			c.e.counts.received.Add(uint64(len(b)))
		}
		var requests []codec.Request
		var err error
		c.e.pool.Decode(c.node.Flow(), len(b), func() { requests, err = c.decode(b, binary) })
		if err != nil {
			c.refuse(codec.CauseMalformed, "malformed message")
			c.part(codec.CauseMalformed) // however long the peer takes to answer
			return
		}
		for _, r := range requests {
			if !c.session.Post(r, len(b)) {
				c.refused = true
				return
			}
		}
	}
}

// aside runs the handshake on a goroutine of its own and waits for it: what it
// calls needs a larger stack than reading does, and the reader would keep that
// stack for as long as the connection is idle.
func (c *connection) aside(handshake func()) {
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		handshake()
	}()
	<-done
	if panicked != nil {
		panic(panicked) // contained by the transport, as any of the reader's
	}
}

var errKind = errors.New("engine: a message of the other kind")

func (c *connection) decode(b []byte, binary bool) ([]codec.Request, error) {
	p := c.conn.Framing().Protocol
	if binary != p.Binary() {
		return nil, errKind
	}
	return p.Decode(nil, b)
}

func (c *connection) refuse(cause codec.Cause, reason string) {
	if cause == codec.CauseRestart {
		reason = c.e.leaving.Reason("")
	}
	c.refused = true
	c.conn.Close(cause, reason)
}

// hello is the handshake: who is it, and may its tenant have one more session?
func (c *connection) hello(b []byte, binary bool) {
	requests, err := c.decode(b, binary)
	if err != nil || len(requests) != 1 {
		c.refuse(codec.CauseMalformed, "malformed message")
		return
	}
	hello, ok := requests[0].(*codec.Hello)
	if !ok {
		c.refuse(codec.CauseMalformed, "the first frame must be a hello")
		return
	}
	ctx, cancel := context.WithDeadline(c.e.staying, c.deadline)
	defer cancel()
	identity, cause := c.authenticate(ctx, hello)
	if cause == 0 {
		cause = c.attach(ctx, identity, hello)
	}
	if cause != 0 {
		c.refuse(cause, "")
	}
}

// late is why a handshake ends whose context has ended.
func (c *connection) late() codec.Cause {
	if c.e.guests.areLeaving() {
		return codec.CauseRestart
	}
	return codec.CauseTimeout
}

// authenticate asks who the client is.
func (c *connection) authenticate(ctx context.Context, hello *codec.Hello) (*auth.Identity, codec.Cause) {
	cr := c.e.carried(c.request.Header, c.request.Remote, false)
	cr.Protocol = c.conn.Framing().Protocol.Name()
	if hello.Token != "" {
		cr.Token, cr.Source = hello.Token, auth.Hello
	}
	identity, err := c.e.identify(ctx, cr)
	if cr.Source == auth.Cookie && errors.Is(err, auth.ErrUnauthenticated) { // a bad one counts as none
		cr.Token, cr.Source = "", auth.None
		identity, err = c.e.identify(ctx, cr)
	}
	switch {
	case err == nil:
		return identity, 0
	case errors.Is(err, auth.ErrUnauthenticated):
		return nil, codec.CauseUnauthenticated
	case err == errCrowded:
		return nil, codec.CauseOverload
	case err == errFaulty, err == errUnjudged && ctx.Err() == nil:
		return nil, codec.CauseInternal
	}
	return nil, c.late()
}

// attach gives the session to its tenant, and waits until it is started.
func (c *connection) attach(ctx context.Context, identity *auth.Identity, hello *codec.Hello) codec.Cause {
	if c.e.sessions.Add(1) > int64(c.e.cfg.Limits.MaxSessions) {
		c.e.sessions.Add(-1)
		return codec.CauseOverload
	}
	c.counted = true
	record, resumed := c.e.leases.claim(ctx, identity, hello.Resume)
	c.record = record
	lease := record.lease
	if !c.stays() { // from here on it is the session's business
		return codec.CauseRestart
	}
	for {
		n, err := c.e.tenant(identity.Tenant)
		if err != nil {
			return codec.CauseRestart
		}
		if !c.hold(n) {
			return codec.CauseOverload
		}
		s := session.New(session.Config{
			Env: n.sessions, ID: lease.Session, Generation: lease.Generation, Resumed: resumed,
			Identity: identity, Verifier: c, Conn: c.conn, Hello: hello,
		})
		done := make(chan *codec.Error, 1)
		a := &message.Attach{Session: s, Done: func(err *codec.Error) { done <- err }}
		if old := c.e.leases.hold(record, s); old != nil {
			a.Replaces = old
		}
		switch o := n.Attach(a); {
		case o.Took():
			return c.begin(ctx, n, s, done)
		case o != backpressure.Closed:
			return codec.CauseOverload
		}
		c.e.forget(n.Tenant)
	}
}

// begin waits until a session that its tenant has taken is started, or refused.
func (c *connection) begin(ctx context.Context, n *node, s *session.Session, done <-chan *codec.Error) codec.Cause {
	var refusal *codec.Error
	select {
	case refusal = <-done:
	case <-ctx.Done():
		select {
		case refusal = <-done: // at the same time
		default:
			cause := c.late()
			s.Blame(cause)
			c.refuse(cause, "") // before the session, if it is started after all, ends and closes it
			s.Closed()
			return cause
		}
	}
	switch {
	case refusal == nil:
		c.node, c.session, c.started = n, s, time.Now()
		c.greet()
		return 0
	case refusal.Code == codec.CodeQuotaExceeded:
		return codec.CauseRateLimited
	case c.e.guests.areLeaving():
		return codec.CauseRestart
	}
	return codec.CauseOverload
}

// hold charges the tenant what the connection holds for as long as it lives; false:
// there is no place for it.
func (c *connection) hold(n *node) bool {
	c.release()
	held := int64(c.request.Held)
	if held > 0 && n.Queue().Charge(held) {
		c.held = n.Queue()
	}
	return held == 0 || c.held != nil
}

func (c *connection) release() {
	if c.held != nil {
		c.held.Release(int64(c.request.Held))
		c.held = nil
	}
}

// greet ends the handshake: its deadline, and its counting as one that has not
// said hello.
func (c *connection) greet() {
	if !c.greeted {
		c.greeted = true
		c.stays()
		c.e.wheel.Clear(&c.timer)
		c.e.admission.leave(c.request.Remote)
		// What only the handshake needed would stay as long as the connection.
		c.stays = nil
		c.request = transport.Request{Remote: c.request.Remote, Held: c.request.Held}
	}
}

// Closed is the end of the connection.
func (c *connection) Closed(cause codec.Cause) {
	c.e.connections.remove(c)
	c.greet()
	c.release()
	if c.counted {
		c.e.sessions.Add(-1)
	}
	if c.guest {
		defer c.e.guests.left()
	}
	defer func() { c.e.counts.closes[cause].Add(1) }()
	if c.session == nil {
		if c.record != nil {
			c.e.leases.end(c.record)
		}
		c.e.cfg.Logger.Info("connection refused", "cause", cause.String())
		return
	}
	cause = c.part(cause)
	c.e.cfg.Logger.Info("connection ended", "cause", cause.String(), "tenant", c.node.Name(),
		"session", c.session.ID(), "lasted_ms", time.Since(c.started).Milliseconds())
}

// part ends the session's use of the connection, and says why it ended. Idempotent.
func (c *connection) part(cause codec.Cause) codec.Cause {
	if cause = c.session.Blame(cause); cause.Final() {
		c.e.leases.end(c.record)
	} else {
		c.e.leases.detach(c.record)
	}
	c.session.Closed()
	return cause
}

// Verify looks at new credentials for the session of this connection.
func (c *connection) Verify(token string, done func(*auth.Identity, error)) {
	c.e.verify(c.node.Flow(), auth.Credentials{
		Protocol: c.conn.Framing().Protocol.Name(), Token: token, Source: auth.Hello, Remote: c.request.Remote.String(),
	}, done)
}
