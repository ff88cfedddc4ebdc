package engine

import (
	"context"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/actors/session"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// authorize asks the Authorizer for sessions of a tenant, on its share of the blocking
// pool. Nil: there is no Authorizer.
func (e *Engine) authorize(flow *scheduler.Tenant) session.Authorize {
	if e.cfg.Authorizer == nil {
		return nil
	}
	return func(list []auth.Access, done func(auth.Decision, error)) bool {
		return ask(e, flow, session.InquiryTime, func(ctx context.Context) (auth.Decision, error) { return e.decide(ctx, list) }, done)
	}
}

// decide asks the Authorizer, here and now, about each of list, until one is denied.
// What was to be allowed once makes all of it so.
func (e *Engine) decide(ctx context.Context, list []auth.Access) (auth.Decision, error) {
	all := auth.Allowed
	for _, a := range list {
		d, err := protect(func() (auth.Decision, error) { return e.cfg.Authorizer.Authorize(ctx, a) })
		switch {
		case err != nil:
			if ctx.Err() != context.Canceled { // which Close may cause
				if n := e.undecided.due(time.Now()); n > 0 {
					e.cfg.Logger.Error("authorizer failed", "tenant", a.Identity.Tenant, "right", a.Right.String(), "err", err, "times", n)
				}
			}
			return auth.Denied, err
		case d == auth.AllowedOnce:
			all = d
		case d != auth.Allowed:
			return auth.Denied, nil
		}
	}
	return all, nil
}

// authorize asks the Authorizer about a request over HTTP, which is of no membership:
// so each of them is asked about.
func (x *exchange) authorize(ctx context.Context, a auth.Access) *codec.Error {
	if x.e.cfg.Authorizer == nil {
		return nil
	}
	n, err := x.e.tenant(x.identity.Tenant)
	if err != nil {
		return errLeaving
	}
	a.Identity = x.identity
	answers := make(chan *codec.Error, 1)
	if !x.e.authorize(n.Flow())([]auth.Access{a}, func(d auth.Decision, err error) { answers <- session.Verdict(d, err) }) {
		return session.ErrNoAnswer
	}
	select {
	case refusal := <-answers:
		return refusal
	case <-ctx.Done():
		return session.ErrNoAnswer
	}
}

// ask has work done on a tenant's share of the blocking pool. done is called once, by
// the end of the time, also if work goes on. False: there is no place now, and it is
// not called.
func ask[T any](e *Engine, flow *scheduler.Tenant, within time.Duration, work func(context.Context) (T, error), done func(T, error)) bool {
	ctx, cancel := context.WithTimeout(e.working, within)
	var once sync.Once
	answer := func(v T, err error) { once.Do(func() { done(v, err) }) }
	stop := context.AfterFunc(ctx, func() {
		var none T
		answer(none, ctx.Err())
	})
	if e.pool.Block(flow, func() {
		defer cancel()
		defer stop()
		answer(work(ctx))
	}) {
		return true
	}
	once.Do(func() {})
	stop()
	cancel()
	return false
}
