package room

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/yaza-dev/pulse/actors/mailbox"
)

// MaxWork is how many pieces of work a room may have under way, see Context.Go.
const MaxWork = 64

var (
	// ErrBusy: the room has MaxWork pieces of work under way, or the tenant's
	// share of the blocking pool is full.
	ErrBusy = errors.New("room: too much blocking work")
	// ErrPanicked is what then gets of work that has panicked.
	ErrPanicked = errors.New("room: the work panicked")
)

// work is one call of Context.Go. Its signal is the slot of its end.
type work struct {
	room   *Room
	signal mailbox.Signal
	life   context.Context // of the handler that asked for it
	do     func(context.Context) (any, error)
	then   func(*Context, any, error)

	// written by the pool's goroutine before signal is raised
	value any
	err   error
}

// Go is how a handler does what blocks: work runs beside the room, on the blocking
// pool under the tenant's share, and then, with what work has returned, in the
// room. work must not touch the handler. Its context ends with the handler: when
// it fails, or the room ends, then is not called any more. Neither of them is
// called when Go returns an error. The room stays as long as work is under way.
func (c *Context) Go(do func(context.Context) (any, error), then func(ctx *Context, v any, err error)) error {
	r, leave := c.enter()
	defer leave()
	es := &r.handler.errands
	if es.working >= MaxWork {
		return ErrBusy
	}
	w := &work{room: r, life: es.alive(), do: do, then: then}
	w.signal.InitWork(w)
	if !r.cfg.Pool.Block(r.cfg.Tenant, w.block) {
		return ErrBusy
	}
	es.working++
	return nil
}

// block is the pool's.
func (w *work) block() {
	defer w.room.mb.Raise(&w.signal, 1) // false: the room has ended
	if w.err = w.life.Err(); w.err == nil {
		w.err = ErrPanicked // also what is left when the work ends its goroutine
		w.value, w.err = w.protected()
	}
}

func (w *work) protected() (v any, err error) {
	ok := false
	defer func() {
		if ok {
			return
		}
		cfg := &w.room.cfg
		cfg.Logger.Error("work of a handler panicked", "tenant", cfg.Topic.Tenant, "room_kind", cfg.Policy.Name,
			"panic", fmt.Sprintf("%T", recover()), "stack", string(debug.Stack()))
		v, err = nil, ErrPanicked
	}()
	v, err = w.do(w.life)
	ok = true
	return v, err
}

// worked takes the end of work: what follows waits for its turn.
func (r *Room) worked(w *work) { r.handler.list = append(r.handler.list, w) }

func (w *work) run(r *Room) {
	r.handler.working--
	if w.life.Err() == nil {
		r.handler.serve(r, "then", func() {
			r.handler.with(r, false, func(ctx *Context) { w.then(ctx, w.value, w.err) })
		})
	}
}

func (w *work) drop() {}
