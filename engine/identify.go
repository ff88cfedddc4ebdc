package engine

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

var (
	errPanicked = errors.New("engine: the program's own code panicked")
	errNobody   = errors.New("engine: authenticator returned no valid identity")
	errCrowded  = errors.New("engine: too many authenticators at work")
	errFaulty   = errors.New("engine: authenticator is broken")            // how is in the log
	errUnjudged = errors.New("engine: credentials cannot be verified now") // why is in the log
)

// identify asks who a client is, on the blocking pool: at most maxHandshakes at
// once, fair by address. The error is of the credentials (auth.ErrUnauthenticated),
// of ctx, errCrowded, errUnjudged, or errFaulty.
func (e *Engine) identify(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
	if err := e.handshakes.Acquire(ctx, sourceOf(cr.Remote)); err != nil {
		return nil, err
	}
	defer e.handshakes.Release()
	type answer struct {
		identity *auth.Identity
		err      error
	}
	answers := make(chan answer, 1)
	if !e.pool.Block(e.strangers, func() {
		id, err := e.authenticate(ctx, cr)
		answers <- answer{id, err}
	}) {
		return nil, errCrowded
	}
	select {
	case a := <-answers:
		return a.identity, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sourceOf is the source of an address as a text, with a port or without.
func sourceOf(remote string) string {
	a, err := netip.ParseAddr(remote)
	if err != nil {
		at, err := netip.ParseAddrPort(remote)
		if err != nil {
			return remote
		}
		a = at.Addr()
	}
	return source(a).String()
}

// authenticate asks the Authenticator, here and now, and looks at its answer.
func (e *Engine) authenticate(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
	id, err := protect(func() (*auth.Identity, error) { return e.terms.Load().authenticator.Authenticate(ctx, cr) })
	if err == nil && (id == nil || !codec.ValidTenant(id.Tenant) || !codec.ValidSubject(id.Subject)) {
		err = errNobody
	}
	if err == nil || errors.Is(err, auth.ErrUnauthenticated) {
		return id, err
	}
	if ctx.Err() != context.Canceled { // which strangers, and Close, may cause
		if n := e.unjudged.due(time.Now()); n > 0 {
			e.cfg.Logger.Error("authenticator failed", "err", without(err, cr.Token), "times", n)
		}
	}
	if err == errNobody || err == errPanicked {
		return nil, errFaulty
	}
	return nil, errUnjudged
}

// without is what an error says, but for a secret that it may repeat.
func without(err error, secret string) string {
	if secret == "" {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), secret, "***")
}

// unidentified is what a request is answered that identify has failed for.
func unidentified(err error) *codec.Error {
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		return codec.NewError(codec.CodeUnauthenticated, "the credentials are not valid")
	case err == errFaulty:
		return codec.NewError(codec.CodeInternal, "credentials cannot be verified")
	}
	return codec.Retry(codec.CodeUnavailable, codec.ScopeNode, retryFull, "credentials cannot be verified now")
}

// verify looks at new credentials of a client that is known, on its tenant's share
// of the blocking pool; done is called once, by the end of ctx's time.
func (e *Engine) verify(flow *scheduler.Tenant, cr auth.Credentials, done func(*auth.Identity, error)) {
	work := func(ctx context.Context) (*auth.Identity, error) { return e.authenticate(ctx, cr) }
	if !ask(e, flow, e.cfg.Limits.HandshakeTimeout, work, done) {
		done(nil, errCrowded)
	}
}

// vouch refuses a request whose bearer header is bad, before its upgrade. Who has a
// good one is asked again at the hello, which may bring another token.
func (e *Engine) vouch(r *http.Request) *codec.Error {
	cr := e.credentials(r)
	if cr.Source != auth.Bearer {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), e.cfg.Limits.HandshakeTimeout)
	defer cancel()
	defer context.AfterFunc(e.staying, cancel)()
	if _, err := e.identify(ctx, cr); err != nil {
		return unidentified(err)
	}
	return nil
}

// protect turns a panic of an embedder's code into an error without its value.
func protect[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	return f()
}

// bearer is the token of a bearer header, which may be empty; false: there is no such
// header.
func bearer(h http.Header) (token string, ok bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "bearer")
}
