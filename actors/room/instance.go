package room

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// instance is the room's handler and what the shell keeps for its successor. It
// is the only place that calls a handler.
type instance struct {
	// of the handler in place; all nil while there is none
	handler     Handler
	joiner      Joiner
	leaver      Leaver
	applier     Applier
	snapshotter Snapshotter
	commander   Commander
	ticker      Ticker

	// applied is the last event that the handler has applied, or the head from
	// which it began. whole: its state is that of the history from the beginning.
	applied codec.Position
	whole   bool

	errands
	warned bool // that ticks take long

	// kept is what the next handler begins from.
	kept    codec.Data
	keptAt  codec.Position
	keepAt  uint64     // the offset at which the next one is taken
	every   uint64     // immutable: so many events later
	shown   codec.Data // snapshot for members
	shownAt codec.Position
	isShown bool
	skip    map[uint64]bool // offsets whose Apply panicked, above keptAt
	epoch   string          // of skip and keepAt
	backoff supervision.Backoff
	waiting bool // for its delay
	timer   scheduler.Timer

	// mu is held by a Context's methods, and guards inside: who calls the handler
	// says so, and whoever finds it there for too long may take the room over.
	mu     sync.Mutex
	inside whereabouts
}

type whereabouts uint8

const (
	outside whereabouts = iota
	inHandler
	abandoned
)

// enter says that the handler's code runs from here on.
func (in *instance) enter() {
	in.mu.Lock()
	in.inside = inHandler
	in.mu.Unlock()
}

// leaveCode says that it has returned. It panics when the room was taken over
// meanwhile: nothing of it may be touched by this goroutine any more.
func (in *instance) leaveCode() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.inside == abandoned {
		panic(errAbandoned)
	}
	in.inside = outside
}

// abandon takes the room over, if the handler's code is what runs. While take
// does so that code can neither return to the shell nor use a Context.
func (in *instance) abandon(take func()) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.inside != inHandler {
		return false
	}
	in.inside = abandoned
	take()
	return true
}

func (in *instance) isAbandoned() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.inside == abandoned
}

var errAbandoned = errors.New("room: abandoned")

// handlerBackoff limits how often a room's handler is made anew without having
// served anything in between: one that fails now and then costs the guilty
// requests only, however often it does.
func handlerBackoff() supervision.Backoff {
	return supervision.Backoff{
		Initial: 10 * time.Millisecond, Cap: 10 * time.Second, Jitter: 0.5,
		MaxRestarts: 8, Window: 30 * time.Second,
	}
}

var errPanicked = codec.NewError(codec.CodeInternal, "the room's handler failed")

// begin makes a handler that goes on from the kept snapshot, if that is of this
// history, else from the history's beginning.
func (in *instance) begin(r *Room) {
	in.isShown = false
	in.handler = nil
	if in.epoch != r.seq.pos.Epoch {
		in.epoch, in.keepAt, in.skip = r.seq.pos.Epoch, r.seq.pos.Offset+in.every, nil
	}
	if !in.make(r) {
		return
	}
	if in.applier == nil {
		in.applied, in.whole = r.seq.pos, true
		return
	}
	switch {
	case in.keptAt.Epoch != "" && in.keptAt.Epoch == r.seq.pos.Epoch && in.keptAt.Offset <= r.seq.pos.Offset:
		in.applied = in.keptAt
		if in.snapshotter != nil && !in.kept.IsZero() {
			if !in.restore(r) {
				return
			}
		}
	default:
		in.applied, in.whole = codec.Position{Epoch: r.seq.pos.Epoch}, true
	}
}

// make makes a handler. False: it panicked.
func (in *instance) make(r *Room) bool {
	in.dismiss(r)
	var h Handler
	if !in.call(r, "new", func() { h = r.cfg.Kind.New() }) {
		return false
	}
	in.handler = h
	in.joiner, _ = h.(Joiner)
	in.leaver, _ = h.(Leaver)
	in.applier, _ = h.(Applier)
	in.snapshotter, _ = h.(Snapshotter)
	in.commander, _ = h.(Commander)
	in.ticker, _ = h.(Ticker)
	return true
}

// restore gives the handler the kept state. False: it panicked.
func (in *instance) restore(r *Room) bool {
	h, state, at := in.snapshotter, in.kept, in.keptAt
	return in.call(r, "restore", func() {
		if err := h.Restore(state, at); err != nil {
			panic(fmt.Errorf("room: restore: %w", err))
		}
	})
}

// lags: events were given to the members that the handler has not applied.
func (in *instance) lags(pos codec.Position) bool {
	return in.handler != nil && in.applier != nil && in.applied.Offset < pos.Offset
}

// ready: it has applied everything, so that requests may be put to it.
func (in *instance) ready(pos codec.Position) bool {
	return !in.waiting && in.handler != nil && !in.lags(pos)
}

// call runs the handler's code, f, which reads nothing of the shell: that may be
// taken over meanwhile. False: it panicked; the failure is dealt with.
func (in *instance) call(r *Room, what string, f func()) (ok bool) {
	in.enter()
	defer func() {
		if ok {
			in.leaveCode()
			return
		}
		p := recover()
		in.leaveCode()
		in.failed(r, what, p)
	}()
	meter := r.cfg.Policy.Meter
	if !meter.Samples() {
		f()
		return true
	}
	began := time.Now()
	f()
	meter.Called(time.Since(began))
	return true
}

// serve is call for what somebody or something has asked of the handler: when that
// succeeds, what failed before counts no more.
func (in *instance) serve(r *Room, what string, f func()) (ok bool) {
	if ok = in.call(r, what, f); ok {
		in.backoff.Reset()
	}
	return ok
}

// failed ends the instance and asks the strategy when there is to be another.
func (in *instance) failed(r *Room, what string, p any) {
	r.cfg.Logger.Error("handler panicked", "tenant", r.cfg.Topic.Tenant, "room_kind", r.cfg.Policy.Name,
		"in", what, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
	in.handler = nil
	in.dismiss(r)
	r.restartHandler()
}

// with gives f a Context, which is valid until f returns.
func (in *instance) with(r *Room, applying bool, f func(*Context)) {
	ctx := Context{room: r, applying: applying}
	defer func() { ctx.room = nil }()
	f(&ctx)
}

// publish asks the handler about an event; nil: accepted, perhaps changed.
func (in *instance) publish(r *Room, e *Event) *codec.Error {
	h := in.handler
	var err error
	if !in.serve(r, "publish", func() {
		in.with(r, false, func(ctx *Context) { err = h.Publish(ctx, e) })
	}) {
		return errPanicked
	}
	return r.refusal("publish", err)
}

// join asks the handler about a member.
func (in *instance) join(r *Room, m *member) *codec.Error {
	if in.joiner == nil {
		return nil
	}
	h := in.joiner
	var err error
	if !in.serve(r, "join", func() {
		in.with(r, false, func(ctx *Context) { err = h.Join(ctx, &m.info) })
	}) {
		return errPanicked
	}
	return r.refusal("join", err)
}

func (in *instance) leave(r *Room, m *member) {
	if in.handler == nil || in.leaver == nil {
		return
	}
	h := in.leaver
	in.call(r, "leave", func() {
		in.with(r, false, func(ctx *Context) { h.Leave(ctx, &m.info) })
	})
}

// refusal is what a client is told of a handler's error. The text of an error
// that was not made for clients stays here, and so does what cannot be told.
func (r *Room) refusal(what string, err error) *codec.Error {
	if err == nil {
		return nil
	}
	var coded *codec.Error
	if !errors.As(err, &coded) {
		return codec.NewError(codec.CodeForbidden, "refused by the room")
	}
	if !message.Tellable(coded, r.cfg.MaxSnapshot) {
		r.cfg.Logger.Warn("a handler's refusal cannot be told", "tenant", r.cfg.Topic.Tenant,
			"room_kind", r.cfg.Policy.Name, "in", what)
		return errPanicked
	}
	return coded
}

// apply gives events to the handler if they are the next ones for it; else they
// come by a read, in their turn.
func (in *instance) apply(r *Room, events []*codec.Event) {
	if in.handler == nil || in.applier == nil {
		if in.handler != nil {
			in.applied = r.seq.pos
		}
		return
	}
	for _, e := range events {
		if e.Position.Offset != in.applied.Offset+1 {
			continue
		}
		if !in.step(r, e) || r.slow() {
			return // the rest comes by a read
		}
	}
}

// step applies one event. One whose Apply panics is skipped ever after.
func (in *instance) step(r *Room, e *codec.Event) bool {
	if !in.skip[e.Position.Offset] {
		h := in.applier
		if !in.call(r, "apply", func() {
			in.with(r, true, func(ctx *Context) { h.Apply(ctx, e) })
		}) {
			if in.skip == nil {
				in.skip = make(map[uint64]bool)
			}
			in.skip[e.Position.Offset] = true
			oldest := e.Position.Offset - min(e.Position.Offset, uint64(r.retention.Events))
			maps.DeleteFunc(in.skip, func(offset uint64, _ bool) bool { return offset < oldest })
			return false
		}
	}
	in.applied = e.Position
	if in.applied.Offset >= in.keepAt {
		in.keep(r)
	}
	return in.handler != nil // its Snapshot may have panicked
}

// keep takes the snapshot that a successor begins from, counted by offset, so that
// a handler that panics often gets on too. After one that failed the next comes as
// much later.
func (in *instance) keep(r *Room) {
	in.keepAt = in.applied.Offset + in.every
	if data, ok := in.take(r); ok {
		in.kept, in.keptAt = data, in.applied
		in.skip = nil
	}
}

func (in *instance) take(r *Room) (codec.Data, bool) {
	if in.handler == nil || in.snapshotter == nil || !in.whole {
		return codec.Data{}, false
	}
	if in.isShown && in.shownAt == in.applied {
		return in.shown, true
	}
	h := in.snapshotter
	var data codec.Data
	if !in.call(r, "snapshot", func() {
		state, err := h.Snapshot()
		if err == nil {
			data, err = codec.NewData(state)
		}
		if err != nil {
			panic(fmt.Errorf("room: snapshot: %w", err))
		}
	}) {
		return codec.Data{}, false
	}
	in.shown, in.shownAt, in.isShown = data, in.applied, true
	return data, true
}

// pageRead applies what the handler lacks. What is not kept any more it never
// gets: it then starts anew, and tells no state, because its own is of a part of
// the history only.
func (in *instance) pageRead(r *Room, page bridge.Page) {
	if in.handler == nil || in.applier == nil {
		return
	}
	if page.Reset != codec.ResetNone {
		if in.make(r) {
			in.applied, in.whole = r.seq.pos, false
		}
		return
	}
	if n := len(page.Events); n > 0 && page.Events[0].Position.Offset != in.applied.Offset+1 {
		in.applied, in.whole = r.seq.pos, false
		return
	}
	for _, e := range page.Events {
		if e.Position.Offset > r.seq.pos.Offset || !in.step(r, e) || r.slow() {
			return
		}
	}
}

// snapshot is the state at the room's position for who joins or is reset; absent
// if there is none, or if it does not fit a frame.
func (r *Room) snapshot() codec.Data {
	if r.handler == nil || r.handler.applied != r.seq.pos {
		return codec.Data{}
	}
	data, ok := r.handler.take(r)
	if !ok || data.Len() > r.cfg.MaxSnapshot {
		return codec.Data{}
	}
	return data
}
