package room

import (
	"slices"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

// mostTraced bounds the events that a room follows to its members at a time; of more
// the oldest is let go.
const mostTraced = 8

// traced are events whose way is followed, from when they were accepted until the
// members have them. They are known by their ids, since what the broker brings back is
// another event.
type traced []tracedEvent

type tracedEvent struct {
	eid   string
	trace message.Trace
	out   bool // members are being given it
}

func (t *traced) add(eid string, trace message.Trace) {
	if trace == nil {
		return
	}
	if len(*t) == mostTraced {
		*t = slices.Delete(*t, 0, 1)
	}
	*t = append(*t, tracedEvent{eid: eid, trace: trace})
}

// begin is told what the members are being given from here on. What another node follows
// is linked, unless that is nil.
func (t *traced) begin(events []mailbox.Delivery, linked func(*codec.Trace) message.Trace) {
	for i := range *t {
		e := &(*t)[i]
		if slices.ContainsFunc(events, func(d mailbox.Delivery) bool { return d.Event.EID == e.eid }) {
			e.out = true
			e.trace.Begin(message.FannedOut)
		}
	}
	if linked == nil {
		return
	}
	for _, d := range events {
		of := d.Event.Trace
		if of == nil || len(*t) == mostTraced || slices.ContainsFunc(*t, func(e tracedEvent) bool { return e.eid == d.Event.EID }) {
			continue
		}
		trace := linked(of)
		trace.Begin(message.FannedOut)
		*t = append(*t, tracedEvent{eid: d.Event.EID, trace: trace, out: true})
	}
}

// end is told that they have it.
func (t *traced) end() {
	if len(*t) == 0 {
		return
	}
	*t = slices.DeleteFunc(*t, func(e tracedEvent) bool {
		if e.out {
			e.trace.End(message.FannedOut)
		}
		return e.out
	})
}
