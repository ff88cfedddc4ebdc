package engine

import (
	"context"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

// history is a page of a room's buffered events.
func (x *exchange) history(ctx context.Context, r *codec.History) (codec.Result, *codec.Error) {
	switch {
	case !x.identity.Grants.Allows(auth.History, r.Room):
		return nil, errForbidden
	case x.e.kinds.Of(codec.RoomKind(r.Room)) == nil:
		return nil, errNoKind
	}
	if err := x.within(r); err != nil {
		return nil, err
	}
	topic := codec.Topic{Tenant: x.identity.Tenant, Room: r.Room}
	return paged(ctx, func(done func(*codec.HistoryResult, *codec.Error)) {
		message.HistoryPage(x.e.broker, topic, *r, x.codec, x.e.cfg.Limits.MaxFrameBytes, done)
	})
}

// presence is a page of a room's members.
func (x *exchange) presence(ctx context.Context, r *codec.PresenceQuery) (codec.Result, *codec.Error) {
	kind := x.e.kinds.Of(codec.RoomKind(r.Room))
	switch {
	case !x.identity.Grants.Allows(auth.Presence, r.Room):
		return nil, errForbidden
	case kind == nil:
		return nil, errNoKind
	case !kind.Presence:
		return nil, errNoPresence
	}
	topic := codec.Topic{Tenant: x.identity.Tenant, Room: r.Room}
	return paged(ctx, func(done func(*codec.PresenceResult, *codec.Error)) {
		message.PresencePage(x.e.presence, topic, *r, x.e.cfg.Limits.MaxFrameBytes, done)
	})
}

var errNoPresence = codec.NewError(codec.CodeUnsupported, "rooms of this kind have no presence")

// paged waits for a page.
func paged[R codec.Result](ctx context.Context, read func(done func(R, *codec.Error))) (codec.Result, *codec.Error) {
	type page struct {
		ok  R
		err *codec.Error
	}
	came := make(chan page, 1)
	read(func(ok R, err *codec.Error) { came <- page{ok, err} })
	select {
	case p := <-came:
		return p.ok, p.err
	case <-ctx.Done():
		return nil, message.Unavailable(codec.ScopeNode)
	}
}
