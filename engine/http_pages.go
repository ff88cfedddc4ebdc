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
	return await(ctx, func(done func(codec.Result, *codec.Error)) {
		message.HistoryPage(x.e.broker, topic, *r, x.codec, x.e.cfg.Limits.MaxFrameBytes,
			func(page *codec.HistoryResult, err *codec.Error) { done(page, err) })
	})
}

// presence is a page of a room's members.
func (x *exchange) presence(ctx context.Context, r *codec.PresenceQuery) (codec.Result, *codec.Error) {
	if _, err := x.asks(ctx, auth.Presence, r.Room, ""); err != nil {
		return nil, err
	}
	topic := codec.Topic{Tenant: x.identity.Tenant, Room: r.Room}
	return await(ctx, func(done func(codec.Result, *codec.Error)) {
		message.PresencePage(x.e.presence, topic, *r, x.e.cfg.Limits.MaxFrameBytes,
			func(page *codec.PresenceResult, err *codec.Error) { done(page, err) })
	})
}
