package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// Outcome is what became of an offered event.
type Outcome = backpressure.Outcome

// Event is what the program publishes to a room.
type Event struct {
	Tenant, Room string
	Name         string
	// Data is a codec.Data as it is, or a value that encoding/json can encode.
	Data any
	// DedupKey makes a repeat within the kind's window return the first result.
	DedupKey string
	// TTL, if above 0, is how long the event may wait to be sequenced.
	TTL time.Duration
}

// Result is what became of an event that was published.
type Result struct {
	Outcome   codec.Outcome
	EID       string
	Position  codec.Position // zero: not buffered
	Duplicate bool
}

// TryPublish offers an event to a room and returns at once. The outcome says
// whether the room's mailbox took it, and promises nothing beyond. The error
// says that it never could: names, event or data are at fault, or the Engine is
// closed.
func (e *Engine) TryPublish(ev Event) (Outcome, error) {
	return e.offer(ev, unheard{})
}

// Publish offers an event to a room and waits for what becomes of it, or for ctx.
// A refusal is a *codec.Error. An error of ctx leaves open what becomes of the
// event.
func (e *Engine) Publish(ctx context.Context, ev Event) (Result, error) {
	w := make(waiter, 1)
	o, err := e.offer(ev, w)
	switch {
	case err != nil:
		return Result{}, err
	case !o.Took():
		return Result{}, message.Refusal(o, codec.ScopeRoom)
	}
	select {
	case a := <-w:
		if a.err != nil {
			return Result{}, a.err
		}
		return a.result, nil
	case <-ctx.Done():
		return Result{}, ctx.Err()
	case <-e.closed: // neither its room nor the broker has answered in time
		return Result{}, ErrClosed
	}
}

// unheard publishes without wanting to know.
type unheard struct{}

func (unheard) Published(*scheduler.Turn, *message.Publish, *codec.PublishResult, *codec.Error) {}

type published struct {
	result Result
	err    *codec.Error
}

// waiter has room for its one answer.
type waiter chan published

func (w waiter) Published(_ *scheduler.Turn, _ *message.Publish, ok *codec.PublishResult, err *codec.Error) {
	if err != nil {
		w <- published{err: err}
		return
	}
	w <- published{result: Result(*ok)}
}

var (
	errLarge = codec.NewError(codec.CodeTooLarge, "data larger than a message may be")
	errData  = codec.NewError(codec.CodeBadRequest, "data cannot be said in the protocol")
)

func (e *Engine) offer(ev Event, by message.Publisher) (Outcome, error) {
	topic, err := codec.NewTopic(ev.Tenant, ev.Room)
	if err != nil {
		return 0, fmt.Errorf("engine: publish: %w", err)
	}
	kind := e.kinds.Of(topic.Kind())
	if kind == nil {
		return 0, message.ErrNoKind
	}
	if !codec.ValidEvent(ev.Name) {
		return 0, codec.NewError(codec.CodeBadRequest, "no valid name of an event")
	}
	policy := kind.Event(ev.Name)
	if policy == nil {
		return 0, message.ErrNoEvent
	}
	data, ok := ev.Data.(codec.Data)
	if !ok {
		if data, err = codec.NewData(ev.Data); err != nil {
			return 0, errData
		}
	}
	if data.Len() > e.cfg.Limits.MaxMessageBytes {
		return 0, errLarge
	}
	p := &message.Publish{By: by, Topic: topic, Event: ev.Name, Kind: kind, Policy: policy, Data: data, DedupKey: ev.DedupKey}
	if ev.TTL > 0 {
		p.Expires = time.Now().Add(ev.TTL)
	}
	p.Trace = e.tracing.begin(p)
	o, err := e.post(topic, kind, policy.Lane, p.Item(e.coalesce, e.pool.Now()))
	if err == nil && !o.Took() {
		p.Refused(message.Refusal(o, codec.ScopeRoom))
	}
	return o, err
}

// post puts a message into a room's mailbox, making the room if need be.
func (e *Engine) post(topic codec.Topic, kind *message.Policy, lane backpressure.Lane, it mailbox.Item) (Outcome, error) {
	for range 3 {
		n, err := e.tenant(topic.Tenant)
		if err != nil {
			return 0, err
		}
		if n.Flow().Stuck() >= scheduler.StuckPerTenant {
			return backpressure.Unavailable, nil // its work is not started while they do not return
		}
		mb, refusal := n.Room(topic.Room, kind)
		if refusal != nil {
			if refusal.Code == codec.CodeQuotaExceeded {
				return backpressure.QuotaExceeded, nil
			}
			e.forget(n.Tenant) // it is ending: the next is another
			continue
		}
		if o := mb.Post(lane, it); o != backpressure.Closed {
			return o, nil
		}
		n.Forget(topic.Room, mb)
	}
	return backpressure.Unavailable, nil
}

// Disconnect closes, in order, all sessions of a subject on this node, or of the
// whole tenant when subject is empty, and tells how many. Their clients stay
// closed.
func (e *Engine) Disconnect(ctx context.Context, tenant, subject string) (int, error) {
	if !codec.ValidTenant(tenant) {
		return 0, errors.New("engine: disconnect: no valid name of a tenant")
	}
	return e.disconnect(ctx, tenant, subject, codec.CauseNormal)
}

func (e *Engine) disconnect(ctx context.Context, tenant, subject string, cause codec.Cause) (int, error) {
	e.mu.Lock()
	n := e.tenants[tenant]
	e.mu.Unlock()
	if n == nil {
		return 0, nil
	}
	done := make(chan int, 1)
	d := &message.Disconnect{Subject: subject, Cause: cause, Done: func(sessions int) { done <- sessions }}
	switch o := n.Disconnect(d); {
	case o == backpressure.Closed:
		return 0, nil
	case !o.Took():
		return 0, message.Refusal(o, codec.ScopeTenant)
	}
	select {
	case sessions := <-done:
		return sessions, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
