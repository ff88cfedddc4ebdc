package mailbox

import (
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// withheld are the positions of a session's own buffered events that were kept
// from its memberships without echo, as long as nothing later has told them where
// they stand. Guarded by the Outbound's mu.
type withheld struct {
	at    map[uint16]codec.Position // by slot; at most one each
	fresh bool                      // the signal is to be raised

	// immutable
	session string
	signal  *Signal // of the session, told when at begins to fill
	bits    uint32
}

// withheld of o; nil: no membership was ever without echo. Under mu.
func (o *Outbound) withheld() *withheld {
	if o.seldom == nil {
		return nil
	}
	return o.seldom.withheld
}

// Withhold prepares for memberships without echo: when one of them is kept from
// events of the session with that id, which is o's, the bits are raised on signal in its
// mailbox, once until Position has told all.
func (o *Outbound) Withhold(session string, signal *Signal, bits uint32) {
	o.mu.Lock()
	if o.withheld() == nil {
		o.rarely().withheld = &withheld{at: make(map[uint16]codec.Position), session: session, signal: signal, bits: bits}
	}
	o.mu.Unlock()
}

// Position tells a membership where it stands, if it was kept from events and
// nothing later has told it. more: some memberships are yet to be told, this one
// too if there is no place.
func (o *Outbound) Position(t *scheduler.Turn, lane backpressure.Lane, room string, seat Seat) (more bool) {
	o.mu.Lock()
	w := o.withheld()
	p, there := w.at[seat.Slot]
	o.mu.Unlock()
	var f *codec.Encoded
	if there {
		f = codec.NewFrame(&codec.PositionFrame{Room: room, Position: p}).In(o.framing)
	}
	o.mu.Lock()
	run := false
	if there && w.at[seat.Slot] == p && !o.state.has(finishing|ended) { // else later, of where it stands then
		if size := len(f.Bytes()); o.charge(1, size) {
			o.enter(lane, backpressure.Entry[outEntry]{
				Item: outEntry{frame: f, slot: seat.Slot + 1, gen: seat.Gen}, Size: size,
			})
			delete(w.at, seat.Slot)
			run = o.schedule()
		}
	}
	more = len(w.at) > 0
	o.mu.Unlock()
	switch {
	case !run:
	case t != nil:
		t.Wake(&o.m.task, nil)
	default:
		o.m.cfg.Pool.Ready(&o.m.task, nil)
	}
	return more
}

// own: the event is of the session itself. Under mu.
func (w *withheld) own(e *codec.Event) bool { return w != nil && e.Session == w.session }

// keep notes that the seat was kept from a buffered event. Under mu.
func (w *withheld) keep(o *Outbound, seat Seat, p codec.Position) {
	if o.seated(seat) == nil {
		return // of an earlier membership
	}
	w.fresh = w.fresh || len(w.at) == 0
	w.at[seat.Slot] = p
}

// told: something that is queued tells the slot's membership where it stands, or
// there is none any more. Under mu.
func (w *withheld) told(slot uint16) {
	if w != nil {
		delete(w.at, slot)
	}
}

// take is w, if its signal is to be raised, which is done without mu; else nil. Under mu.
func (w *withheld) take() *withheld {
	if w == nil || !w.fresh {
		return nil
	}
	w.fresh = false
	return w
}

// tell raises what take gave.
func (o *Outbound) tell(w *withheld) {
	if w != nil {
		o.m.Raise(w.signal, w.bits)
	}
}
