package engine

import (
	"context"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// answered is what a command came to.
type answered struct {
	ok  *codec.CommandResult
	err *codec.Error
}

// caller has place for its one answer.
type caller chan answered

func (c caller) Answered(_ *scheduler.Turn, _ *message.Command, ok *codec.CommandResult, err *codec.Error) {
	c <- answered{ok, err}
}

// command is a client's request to a room's handler, without a session. It is
// cancelled when the client goes.
func (x *exchange) command(ctx context.Context, r *codec.Command) (codec.Result, *codec.Error) {
	kind, err := x.asks(ctx, auth.Command, r.Room, r.Name)
	if err != nil {
		return nil, err
	}
	by, wait := make(caller, 1), message.CommandTime(r)
	if wait <= 0 {
		return nil, message.ErrDeadline
	}
	c := &message.Command{
		By: by, Name: r.Name, Data: r.Data, Topic: codec.Topic{Tenant: x.identity.Tenant, Room: r.Room},
		Subject: x.identity.Subject, DedupKey: r.DedupKey, Window: kind.DedupWindow, Deadline: x.e.pool.Now() + int64(wait),
		Codec: x.codec, MaxResult: x.e.cfg.Limits.MaxFrameBytes - message.AnswerRest,
	}
	if c.Window <= 0 {
		c.DedupKey = ""
	}
	if err := x.within(r); err != nil {
		return nil, err
	}
	if err := x.post(c.Topic, kind, backpressure.Interactive, c.Item()); err != nil {
		return nil, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case a := <-by:
		return a.ok, a.err
	case <-timer.C:
		c.Gone()
		return nil, message.ErrDeadline
	case <-ctx.Done():
		c.Gone()
		return nil, message.Unavailable(codec.ScopeRoom)
	}
}
