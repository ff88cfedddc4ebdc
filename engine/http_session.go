package engine

import (
	"context"
	"net/http"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

var (
	errNoSession    = codec.NewError(codec.CodeBadRequest, "the header Pulse-Session names no session")
	errOtherSession = codec.NewError(codec.CodeForbidden, "no session of this subject")
	errNodeSilent   = codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "the session's node does not answer")
)

// renewSession renews the credentials of a session from those of the request: for
// pages whose token is in a cookie that they cannot read.
func (e *Engine) renewSession(w http.ResponseWriter, r *http.Request) {
	x := &exchange{e: e, r: r, codec: accepted(r)}
	x.run(w, func(ctx context.Context) (codec.Result, *codec.Error) {
		// It needs no body, and takes none of another type than any POST.
		if r.ContentLength > 0 || r.Header["Content-Type"] != nil {
			if _, err := x.readBody(w); err != nil {
				return nil, err
			}
		}
		return x.renew(ctx)
	})
}

// validSession: it may be the id of a session, which nodes make up of letters and digits.
func validSession(id string) bool {
	for _, c := range []byte(id) {
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9') {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

// renew finds the session, on this node or another. That of another subject, and one
// that there is not, are told apart by nothing.
func (x *exchange) renew(ctx context.Context) (codec.Result, *codec.Error) {
	ids := x.r.Header.Values("Pulse-Session")
	if len(ids) != 1 || !validSession(ids[0]) {
		return nil, errNoSession
	}
	if err := x.identify(ctx); err != nil {
		return nil, err
	}
	s := x.e.leases.find(x.identity.Tenant, ids[0])
	if s == nil {
		return x.e.elsewhere(ctx, ids[0], x.identity)
	}
	if s.Subject() != x.identity.Subject {
		return nil, errOtherSession
	}
	renewed, err := await(ctx, func(done func(*codec.TokenResult, *codec.Error)) {
		if !s.Renew(x.identity, done) {
			done(nil, nil)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case renewed == nil: // it has ended
		return nil, errOtherSession
	}
	return renewed, nil
}
