package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
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
	if e.closing.Load() {
		return codec.Retry(codec.CodeDraining, codec.ScopeNode, time.Second, "the node is leaving")
	}
	if err := e.admission.judge(r); err != nil {
		return err
	}
	if !e.admission.enter(address(r)) {
		return codec.Retry(codec.CodeUnavailable, codec.ScopeNode, retryFull, "too many connections have not said hello")
	}
	return nil
}

// Abandon takes an admission back.
func (e *Engine) Abandon(r *http.Request) { e.admission.leave(address(r)) }

// Accept takes a connection over.
func (e *Engine) Accept(c transport.Conn, r transport.Request) transport.Receiver {
	n := &connection{e: e, conn: c, request: r}
	n.timer.Init(func() { c.Close(codec.CauseTimeout, "no hello in time") })
	e.wheel.Set(&n.timer, e.cfg.Limits.HandshakeTimeout)
	if e.closing.Load() {
		c.Close(codec.CauseRestart, "")
	}
	return n
}

// connection is what is read from one client. All but the timer is the reader
// goroutine's.
type connection struct {
	e       *Engine
	conn    transport.Conn
	request transport.Request
	timer   scheduler.Timer // the handshake's deadline
	greeted bool            // no longer counted as unauthenticated
	node    *node
	session *session.Session // nil: before the hello
	counted bool             // as a session
	refused bool             // what still comes is not looked at
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
		c.hello(b, binary)
	default:
		var requests []codec.Request
		var err error
		c.e.pool.Decode(c.node.Flow(), len(b), func() { requests, err = c.decode(b, binary) })
		if err != nil {
			c.refuse(codec.CauseMalformed, "malformed message")
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

var errKind = errors.New("engine: a message of the other kind")

func (c *connection) decode(b []byte, binary bool) ([]codec.Request, error) {
	p := c.conn.Framing().Protocol
	if binary != p.Binary() {
		return nil, errKind
	}
	return p.Decode(nil, b)
}

func (c *connection) refuse(cause codec.Cause, reason string) {
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
	identity, cause := c.authenticate(hello)
	if cause != 0 {
		c.refuse(cause, "")
		return
	}
	if cause := c.attach(identity, hello); cause != 0 {
		c.refuse(cause, "")
	}
}

// authenticate asks who the client is, on the blocking pool.
func (c *connection) authenticate(hello *codec.Hello) (*auth.Identity, codec.Cause) {
	ctx, cancel := context.WithTimeout(context.Background(), c.e.cfg.Limits.HandshakeTimeout)
	defer cancel()
	if err := c.e.handshakes.Acquire(ctx, c.request.Remote.String()); err != nil {
		return nil, codec.CauseTimeout
	}
	defer c.e.handshakes.Release()
	cr := auth.Credentials{
		Protocol: c.conn.Framing().Protocol.Name(), Token: hello.Token, Source: auth.Hello,
		Remote: c.request.Remote.String(), Header: c.request.Header,
	}
	if cr.Token == "" {
		cr.Source = auth.None
		if token, ok := bearer(c.request.Header); ok {
			cr.Token, cr.Source = token, auth.Bearer
		}
	}
	type answer struct {
		identity *auth.Identity
		err      error
	}
	answers := make(chan answer, 1)
	if !c.e.pool.Block(c.e.strangers, func() {
		id, err := protect(func() (*auth.Identity, error) { return c.e.cfg.Authenticator.Authenticate(ctx, cr) })
		answers <- answer{id, err}
	}) {
		return nil, codec.CauseOverload
	}
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		return nil, codec.CauseTimeout
	}
	switch {
	case errors.Is(a.err, auth.ErrUnauthenticated):
		return nil, codec.CauseUnauthenticated
	case a.err != nil:
		c.e.cfg.Logger.Error("authenticator failed", "err", a.err)
		return nil, codec.CauseInternal
	case a.identity == nil || !codec.ValidTenant(a.identity.Tenant) || !codec.ValidSubject(a.identity.Subject):
		c.e.cfg.Logger.Error("authenticator returned no valid identity")
		return nil, codec.CauseInternal
	}
	return a.identity, 0
}

var errPanicked = errors.New("engine: authenticator panicked")

// protect turns a panic of an embedder's code into an error without its value.
func protect[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	return f()
}

func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "bearer")
}

// attach gives the session to its tenant, and waits until it is started.
func (c *connection) attach(identity *auth.Identity, hello *codec.Hello) codec.Cause {
	if c.e.sessions.Add(1) > int64(c.e.cfg.Limits.MaxSessions) {
		c.e.sessions.Add(-1)
		return codec.CauseOverload
	}
	c.counted = true
	for {
		n, err := c.e.tenant(identity.Tenant)
		if err != nil {
			return codec.CauseRestart
		}
		s := session.New(session.Config{Env: n.sessions, ID: rand.Text(), Identity: identity, Conn: c.conn, Hello: hello})
		done := make(chan *codec.Error, 1)
		a := &message.Attach{Session: s, Mailbox: s.Mailbox(), Done: func(err *codec.Error) { done <- err }}
		// The deadline holds until the session is there, and no longer.
		c.e.wheel.Clear(&c.timer)
		switch o := n.Attach(a); {
		case o.Took():
		case o == backpressure.Closed:
			c.e.forget(n.Tenant)
			continue
		default:
			return codec.CauseOverload
		}
		if err := <-done; err != nil {
			switch err.Code {
			case codec.CodeQuotaExceeded:
				return codec.CauseRateLimited
			case codec.CodeDraining:
				return codec.CauseRestart
			}
			return codec.CauseOverload
		}
		c.node, c.session, c.started = n, s, time.Now()
		c.greet()
		return 0
	}
}

// greet ends the connection's counting as one that has not said hello.
func (c *connection) greet() {
	if !c.greeted {
		c.greeted = true
		c.e.admission.leave(c.request.Remote)
	}
}

// Closed is the end of the connection.
func (c *connection) Closed(cause codec.Cause) {
	c.e.wheel.Clear(&c.timer)
	c.greet()
	if c.counted {
		c.e.sessions.Add(-1)
	}
	if c.session == nil {
		c.e.cfg.Logger.Info("connection refused", "cause", cause.String())
		return
	}
	c.session.Closed()
	c.e.cfg.Logger.Info("connection ended", "cause", cause.String(), "tenant", c.node.Name(),
		"session", c.session.ID(), "lasted_ms", time.Since(c.started).Milliseconds())
}
