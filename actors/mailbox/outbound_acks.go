package mailbox

import (
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// ackWindow is what a membership was sent of require_ack events and has not
// acknowledged: at most OutboundConfig.Unacked. It is made at the first of them, so
// that memberships of other kinds have none. Guarded by the Outbound's mu.
type ackWindow struct {
	open   backpressure.Ring[codec.Position] // ascending
	last   codec.Position                    // of the last buffered event that it was sent
	booked int                               // positions that the ledger has booked, at least those in open
}

// upTo is how many of the open positions p acknowledges: none where p is of another
// history, or beyond what was sent. The epoch may have changed on the way without a
// loss; offsets have gone on then.
func (w *ackWindow) upTo(p codec.Position) (n int) {
	if p.Epoch == w.last.Epoch {
		for p.Offset <= w.last.Offset && n < w.open.Len() && w.open.At(n).Offset <= p.Offset {
			n++
		}
		return n
	}
	for i := range w.open.Len() {
		if at := w.open.At(i); at.Epoch == p.Epoch && at.Offset <= p.Offset {
			n = i + 1
		}
	}
	return n
}

// Acknowledge says that the seat's client has processed everything up to p. A
// membership that was left behind by a full window asks its room for more.
func (o *Outbound) Acknowledge(seat Seat, p codec.Position) {
	o.mu.Lock()
	s := o.seated(seat)
	if s == nil || s.acks == nil {
		o.mu.Unlock()
		return
	}
	for range s.acks.upTo(p) {
		s.acks.open.Drop()
	}
	if s.acks.open.Len() == 0 {
		o.unbook(s.acks)
	}
	if !s.behind {
		o.mu.Unlock()
		return
	}
	o.asks()
}

// seated is the slot of a seat that is still the slot's. Under mu.
func (o *Outbound) seated(seat Seat) *outSlot {
	if int(seat.Slot) >= o.slots.len() {
		return nil
	}
	s := o.slots.at(seat.Slot)
	if s.gen != seat.Gen {
		return nil
	}
	return s
}

// unacked is how many of the events must be acknowledged.
func unacked(events []Delivery) (n int) {
	for i := range events {
		if events[i].Policy == backpressure.RequireAck {
			n++
		}
	}
	return n
}

// allows says whether the seat's window has place for n more events. An earlier
// membership has none: what it is sent is dropped. Under mu.
func (o *Outbound) allows(seat Seat, n int) bool {
	s := o.seated(seat)
	if s == nil || n == 0 {
		return true
	}
	if s.acks != nil {
		n += s.acks.open.Len()
	}
	return n <= o.cfg.Unacked
}

// await notes buffered events that the seat is sent. Under mu.
func (o *Outbound) await(seat Seat, events []Delivery) {
	s := o.seated(seat)
	if s == nil {
		return
	}
	if s.acks == nil {
		s.acks = new(ackWindow)
	}
	w := s.acks
	for i := range events {
		w.last = events[i].Event.Position
		if events[i].Policy != backpressure.RequireAck {
			continue
		}
		if w.open.Len() == w.booked {
			o.account().Force(chunk * backpressure.EntryBytes) // Unacked is what bounds it
			w.booked += chunk
		}
		w.open.Push(w.last)
	}
}

// absolve ends the wait for acknowledgements: what they would be about is void.
// Under mu.
func (o *Outbound) absolve(s *outSlot) {
	if s.acks != nil {
		o.unbook(s.acks)
		s.acks = nil
	}
}

func (o *Outbound) unbook(w *ackWindow) {
	o.account().Release(int64(w.booked) * backpressure.EntryBytes)
	w.booked = 0
}

// barred: whatever the slot were fed would not fit its window. Under mu.
func (o *Outbound) barred(s *outSlot) bool {
	return s.acks != nil && s.acks.open.Len() >= o.cfg.Unacked
}
