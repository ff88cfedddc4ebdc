package mailbox

import (
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// Offer pushes a frame of a membership that is no event, within the bounds: what
// does not fit is for the caller to make up for. False: it did not. A session that
// is ending takes it, for nothing. The membership's mark was pushed before, into
// the same lane.
func (o *Outbound) Offer(t *scheduler.Turn, flow *scheduler.Flow, lane backpressure.Lane, f *codec.Frame, seat Seat) bool {
	frame := f.In(o.framing)
	size := len(frame.Bytes())
	o.mu.Lock()
	if o.state.has(finishing | ended) {
		o.mu.Unlock()
		return true
	}
	// An empty queue takes one whatever the ledger says, as with events.
	switch {
	case o.items == 0 && !o.state.has(parked):
		o.force(size)
	case !o.charge(1, size):
		o.mu.Unlock()
		return false
	}
	o.enter(lane, backpressure.Entry[outEntry]{Item: outEntry{frame: frame, slot: seat.Slot + 1, gen: seat.Gen}, Size: size})
	run := o.schedule()
	o.mu.Unlock()
	if run {
		t.Wake(&o.m.task, flow)
	}
	return true
}
