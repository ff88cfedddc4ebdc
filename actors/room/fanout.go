package room

import (
	"slices"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// fanout is what is being given to the members: the events that one batch of
// the room brought, in order, and how far through the members it has got.
type fanout struct {
	events  []mailbox.Delivery // being given out
	runs    []mailbox.Run      // events, in pieces
	next    []mailbox.Delivery // collected since
	scratch []mailbox.Delivery
	at      int // members served
	of      int // members when it began
	start   int // index of the first, rotating so that nobody is always last
}

// busy: members are being served.
func (f *fanout) busy() bool { return f.of > 0 }

// appendBuffered appends deliveries of a kind's buffered events.
func appendBuffered(dst []mailbox.Delivery, kind *message.Policy, events []*codec.Event) []mailbox.Delivery {
	for _, e := range events {
		d := mailbox.Delivery{Event: e, Lane: kind.Lane, Buffered: true, Acks: kind.Acks}
		if kind.Acks {
			if p := kind.Event(e.Name); p != nil { // else another node knows it, which has another declaration
				d.Policy = p.Overflow
			}
		}
		dst = append(dst, d)
	}
	return dst
}

// begin takes what was collected and freezes who gets it.
func (f *fanout) begin(members int) bool {
	if len(f.next) == 0 {
		return false
	}
	f.events, f.next = f.next, f.events[:0]
	f.at, f.of = 0, members
	if members == 0 {
		f.end()
		return false
	}
	f.start = (f.start + scheduler.Slice) % members
	f.cut()
	return true
}

// cut makes runs of the events: buffered ones that follow each other become one
// frame, which costs a member one push and one copy, and the rest stays as it is.
func (f *fanout) cut() {
	f.runs = f.runs[:0]
	for rest := f.events; len(rest) > 0; {
		n := bundled(rest)
		run := mailbox.Run{Events: rest[:n]}
		if n > 1 {
			frames := make([]*codec.Frame, n)
			for i := range frames {
				frames[i] = &rest[i].Event.Frame
			}
			run.Whole = codec.Bundle(frames)
		}
		f.runs = append(f.runs, run)
		rest = rest[n:]
	}
}

// bundled is how many of the first events may go as one.
func bundled(events []mailbox.Delivery) int {
	n, size := 0, 0
	for n < len(events) && n < mailbox.BundleMost && events[n].Buffered {
		if size += events[n].Event.Size(); size > mailbox.BundleBytes {
			break
		}
		n++
	}
	return max(n, 1)
}

// end lets go of the events.
func (f *fanout) end() {
	clear(f.events)
	clear(f.runs)
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
		for _, run := range f.runs {
			r.deliver(m, run)
		}
	}
	r.turn.Spend(1+served*sliceCost/scheduler.Slice, 0)
	f.end()
	r.traced.end()
	r.members.compact()
	return true
}

// deliver gives a run of events to one member.
func (r *Room) deliver(m *member, run mailbox.Run) {
	if m.state != live {
		m.Out.Deliver(r.turn, r.mb.Flow(), m.Seat, run, false)
		return
	}
	if first := run.Events[0]; first.Buffered && m.pos.Offset >= first.Event.Position.Offset {
		run = r.fanout.above(run, m.pos.Offset)
	}
	posted, full := m.Out.Deliver(r.turn, r.mb.Flow(), m.Seat, run, true)
	if posted > 0 {
		m.pos = run.Events[posted-1].Event.Position // a run is all buffered, or one event
	}
	if full {
		m.become(behind)
		r.behind++
	}
}

// above leaves out what a member has already: it joined, was fed or was reset at
// the room's position while the run was on its way.
func (f *fanout) above(run mailbox.Run, offset uint64) mailbox.Run {
	f.scratch = f.scratch[:0]
	for _, d := range run.Events {
		if d.Event.Position.Offset > offset {
			f.scratch = append(f.scratch, d)
		}
	}
	return mailbox.Run{Events: f.scratch}
}

// drop takes the buffered events out of what is on its way: the history that
// they belong to is not the room's any more.
func (f *fanout) drop() {
	f.events, f.next = transient(f.events), transient(f.next)
	f.cut()
}

func transient(events []mailbox.Delivery) []mailbox.Delivery {
	return slices.DeleteFunc(events, func(d mailbox.Delivery) bool { return d.Buffered })
}
