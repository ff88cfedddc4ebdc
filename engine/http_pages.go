package engine

import (
	"context"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

// history is a page of a room's buffered events.
func (x *exchange) history(ctx context.Context, r *codec.History) (codec.Result, *codec.Error) {
	if _, err := x.asks(ctx, auth.History, r.Room, ""); err != nil {
		return nil, err
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
	if _, err := x.asks(ctx, auth.Presence, r.Room, ""); err != nil {
		return nil, err
	}
	topic := codec.Topic{Tenant: x.identity.Tenant, Room: r.Room}
	return paged(ctx, func(done func(*codec.PresenceResult, *codec.Error)) {
		message.PresencePage(x.e.presence, topic, *r, x.e.cfg.Limits.MaxFrameBytes, done)
	})
}

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
