package room

import (
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// windowRest is how many events a room holds while nobody is behind.
const windowRest = 16

// window is the room's own part of the history: consecutive events up to the
// newest one delivered, shared by all members that are fed from it. It is filled
// by live delivery and by reads, grows down to the position of whoever is
// behind, and shrinks to windowRest when nobody is. It never holds what the kind's
// history would not keep any more, so that what is gone is gone for everybody. Its
// bytes are charged once, however many members it feeds. Pure; instants are given.
//
// Invariant: events are consecutive by offset, and the last is the room's
// position, when there are any.
type window struct {
	account *backpressure.Account // the tenant's replay_bytes
	limit   bridge.Retention      // the kind's history
	events  backpressure.Ring[held]
	bytes   int64 // sum of Size over events
}

// held is an event with the instant at which it was delivered or read: until then
// the history had it.
type held struct {
	event *codec.Event
	at    int64
}

// low is the offset after which the window has everything; head is the room's.
func (w *window) low(head uint64) uint64 { return head - uint64(w.events.Len()) }

// add appends what was just delivered. wide: somebody is behind, so that all is
// kept as far as the limits allow.
func (w *window) add(events []*codec.Event, wide bool, now int64) {
	for _, e := range events {
		size := int64(e.Size())
		for !w.account.Charge(size) {
			if !w.dropOldest() {
				return // the budget is used up elsewhere: hold nothing, read instead
			}
		}
		w.events.Push(held{e, now})
		w.bytes += size
	}
	w.trim(wide, now)
}

// trim lets go of what nobody needs, and of what the history does not keep.
func (w *window) trim(wide bool, now int64) {
	keep := w.limit.Events
	if !wide {
		keep = min(keep, windowRest)
	}
	for w.events.Len() > keep || w.excess(now) {
		w.dropOldest()
	}
}

// excess reports whether the oldest event is one too many by size or by age.
func (w *window) excess(now int64) bool {
	return w.events.Len() > 0 && (w.limit.Bytes > 0 && w.bytes > w.limit.Bytes ||
		w.limit.Age > 0 && now-w.events.At(0).at >= int64(w.limit.Age))
}

// prepend takes a page that was read, if it ends where the window begins and
// the budget allows; of the events that the window lacks those that fit the
// history are put before it. False: the window has not grown.
func (w *window) prepend(page []*codec.Event, head uint64, now int64) bool {
	low := w.low(head)
	for len(page) > 0 && page[len(page)-1].Position.Offset > low {
		page = page[:len(page)-1]
	}
	if len(page) == 0 || page[len(page)-1].Position.Offset != low {
		return false
	}
	if room := w.limit.Events - w.events.Len(); len(page) > room {
		page = page[len(page)-max(room, 0):]
	}
	var size int64
	for i := len(page) - 1; i >= 0; i-- {
		more := size + int64(page[i].Size())
		if w.limit.Bytes > 0 && w.bytes+more > w.limit.Bytes {
			page = page[i+1:]
			break
		}
		size = more
	}
	if len(page) == 0 || !w.account.Charge(size) {
		return false
	}
	var grown backpressure.Ring[held]
	for _, e := range page {
		grown.Push(held{e, now})
	}
	for i := range w.events.Len() {
		grown.Push(w.events.At(i))
	}
	w.events = grown
	w.bytes += size
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
		dst = append(dst, w.events.At(i).event)
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
	oldest, _ := w.events.Pop()
	size := int64(oldest.event.Size())
	w.bytes -= size
	w.account.Release(size)
	return true
}
