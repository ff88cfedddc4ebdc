package room

import (
	"slices"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// fanout is what is being given to the members: the events that one batch of
// the room brought, in order, and how far through the members it has got.
type fanout struct {
	events  []mailbox.Delivery // being given out
	next    []mailbox.Delivery // collected since
	scratch []mailbox.Delivery
	first   uint64 // offset of the first buffered event in events; 0: none is
	at      int    // members served
	of      int    // members when it began
	start   int    // index of the first, rotating so that nobody is always last
}

// busy: members are being served.
func (f *fanout) busy() bool { return f.of > 0 }

// buffered collects what the sequencer has handed out.
func (f *fanout) buffered(events []*codec.Event, lane backpressure.Lane) {
	for _, e := range events {
		f.next = append(f.next, mailbox.Delivery{Event: e, Lane: lane, Buffered: true})
	}
}

// begin takes what was collected and freezes who gets it.
func (f *fanout) begin(members int) bool {
	if len(f.next) == 0 {
		return false
	}
	f.events, f.next = f.next, f.events[:0]
	f.at, f.of, f.first = 0, members, 0
	for i := range f.events {
		if f.events[i].Buffered {
			f.first = f.events[i].Event.Position.Offset
			break
		}
	}
	if members > 0 {
		f.start = (f.start + scheduler.Slice) % members
	}
	return members > 0
}

// end lets go of the events.
func (f *fanout) end() {
	clear(f.events)
	clear(f.scratch)
	f.events, f.scratch = f.events[:0], f.scratch[:0]
	f.of = 0
	if cap(f.events) > 4*scheduler.BatchMessages {
		f.events = nil
	}
}

// sliceCost is what serving a slice is charged, in units: some two microseconds
// for eight pushes.
const sliceCost = 8

// serve gives the events to one slice of the members. False: there is more.
func (r *Room) serve() (done bool) {
	f := &r.fanout
	served := 0
	for ; f.at < f.of; f.at++ {
		if served == scheduler.Slice {
			r.turn.Spend(sliceCost, 0)
			return false
		}
		i := f.start + f.at
		if i >= f.of {
			i -= f.of
		}
		m := r.members.list[i]
		if m == nil {
			continue
		}
		served++
		r.deliver(m, f.events)
	}
	r.turn.Spend(1+served*sliceCost/scheduler.Slice, 0)
	f.end()
	r.members.compact()
	return true
}

// deliver gives a run of events to one member.
func (r *Room) deliver(m *member, events []mailbox.Delivery) {
	if m.state != live {
		m.Out.Deliver(r.turn, r.mb.Flow(), m.Seat, events, false)
		return
	}
	if r.fanout.first != 0 && m.pos.Offset >= r.fanout.first {
		events = r.fanout.above(events, m.pos.Offset)
	}
	posted, full := m.Out.Deliver(r.turn, r.mb.Flow(), m.Seat, events, true)
	for i := 0; posted > 0; i++ {
		if events[i].Buffered {
			m.pos = events[i].Event.Position
			posted--
		}
	}
	if full {
		m.become(behind)
		r.behind++
	}
}

// above leaves out the buffered events that a member has already: it joined, was
// fed or was reset at the room's position while they were on their way.
func (f *fanout) above(events []mailbox.Delivery, offset uint64) []mailbox.Delivery {
	f.scratch = f.scratch[:0]
	for _, d := range events {
		if !d.Buffered || d.Event.Position.Offset > offset {
			f.scratch = append(f.scratch, d)
		}
	}
	return f.scratch
}

// drop takes the buffered events out of what is on its way: the history that
// they belong to is not the room's any more.
func (f *fanout) drop() {
	f.events, f.next = transient(f.events), transient(f.next)
	f.first = 0
}

func transient(events []mailbox.Delivery) []mailbox.Delivery {
	return slices.DeleteFunc(events, func(d mailbox.Delivery) bool { return d.Buffered })
}
