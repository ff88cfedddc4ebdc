package engine

import (
	"context"
	"net/http"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
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
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(e.working, cancel)()
	var ok codec.Result
	err := errLeaving
	if e.guests.enter() {
		defer e.guests.left()
		err = x.admit(w)
	}
	if err == nil {
		ok, err = x.renew(ctx)
	}
	x.answer(w, ok, err)
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
	type answer struct {
		ok  *codec.TokenResult
		err *codec.Error
	}
	renewed := make(chan answer, 1)
	if !s.Renew(x.identity, func(ok *codec.TokenResult, err *codec.Error) { renewed <- answer{ok, err} }) {
		return nil, errOtherSession
	}
	select {
	case a := <-renewed:
		switch {
		case a.err != nil:
			return nil, a.err
		case a.ok == nil:
			return nil, errOtherSession
		}
		return a.ok, nil
	case <-ctx.Done():
		return nil, message.Unavailable(codec.ScopeNode)
	}
}
