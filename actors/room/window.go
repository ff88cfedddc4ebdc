package room

import (
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// windowRest is how many events a room holds while nobody is behind.
const windowRest = 16

// window is the room's own part of the history: consecutive events up to the
// newest one delivered, shared by all members that are fed from it. It is filled
// by live delivery and by reads, grows down to the position of whoever is
// behind, and shrinks to windowRest when nobody is. Its bytes are charged once,
// however many members it feeds. Pure.
//
// Invariant: events are consecutive by offset, and the last is the room's
// position, when there are any.
type window struct {
	account *backpressure.Account // the tenant's replay_bytes
	events  backpressure.Ring[*codec.Event]
	limit   int // events at most, the kind's history
}

// low is the offset after which the window has everything; head is the room's.
func (w *window) low(head uint64) uint64 { return head - uint64(w.events.Len()) }

// add appends what was just delivered. wide: somebody is behind, so that all is
// kept as far as the limits allow.
func (w *window) add(events []*codec.Event, wide bool) {
	for _, e := range events {
		for !w.account.Charge(int64(e.Size())) {
			if !w.dropOldest() {
				return // the budget is used up elsewhere: hold nothing, read instead
			}
		}
		w.events.Push(e)
	}
	w.trim(wide)
}

// trim lets go of what nobody needs.
func (w *window) trim(wide bool) {
	keep := windowRest
	if wide {
		keep = max(keep, w.limit)
	}
	for w.events.Len() > keep {
		w.dropOldest()
	}
}

// prepend takes a page that was read, if it ends where the window begins and
// the budget allows; the events that the window lacks are put before it. False:
// the window has not grown.
func (w *window) prepend(page []*codec.Event, head uint64) bool {
	low := w.low(head)
	for len(page) > 0 && page[len(page)-1].Position.Offset > low {
		page = page[:len(page)-1]
	}
	if len(page) == 0 || page[len(page)-1].Position.Offset != low {
		return false
	}
	if room := w.limit - w.events.Len(); len(page) > room {
		page = page[len(page)-max(room, 0):]
	}
	var size int64
	for _, e := range page {
		size += int64(e.Size())
	}
	if len(page) == 0 || !w.account.Charge(size) {
		return false
	}
	var grown backpressure.Ring[*codec.Event]
	for _, e := range page {
		grown.Push(e)
	}
	for i := range w.events.Len() {
		grown.Push(w.events.At(i))
	}
	w.events = grown
	return true
}

// after appends to dst at most limit events that follow offset; ok is false when
// the window does not reach down to it.
func (w *window) after(dst []*codec.Event, offset, head uint64, limit int) (events []*codec.Event, ok bool) {
	low := w.low(head)
	if offset < low {
		return dst, false
	}
	for i := int(offset - low); i < w.events.Len() && limit > 0; i++ {
		dst = append(dst, w.events.At(i))
		limit--
	}
	return dst, true
}

// clear lets everything go: the history is another one, or the room ends.
func (w *window) clear() {
	for w.dropOldest() {
	}
}

func (w *window) dropOldest() bool {
	if w.events.Len() == 0 {
		return false
	}
	e, _ := w.events.Pop()
	w.account.Release(int64(e.Size()))
	return true
}
