package room

import (
	"slices"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
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

// begin is told what the members are being given from here on.
func (t traced) begin(events []mailbox.Delivery) {
	for i := range t {
		if slices.ContainsFunc(events, func(d mailbox.Delivery) bool { return d.Event.EID == t[i].eid }) {
			t[i].out = true
			t[i].trace.Begin(message.FannedOut)
		}
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
