package mailbox

import "github.com/yaza-dev/pulse/codec"

// leading is a frame that goes out before everything that waits: the welcome, and
// replies that nothing which follows from them may overtake, in whatever lane it
// is. Beside the welcome there are at most MaxOwed, since each has a reservation.
type leading struct {
	frame *codec.Encoded
	owed  bool // gives its reservation back when it goes out
	next  *leading
}

// Lead sends the answer to a request for which Reserve was called, before
// everything that waits and everything that is pushed from now on, but behind the
// first frame.
func (o *Outbound) Lead(f *codec.Frame) {
	frame := f.In(o.framing)
	o.mu.Lock()
	if o.state.has(ended) {
		o.owed.Add(-1)
		o.mu.Unlock()
		return
	}
	last := &o.rarely().first
	for *last != nil {
		last = &(*last).next
	}
	*last = &leading{frame: frame, owed: true}
	run := o.schedule()
	o.mu.Unlock()
	if run {
		o.m.cfg.Pool.Ready(&o.m.task, nil)
	}
}

// leads: a leading frame waits. Under mu.
func (o *Outbound) leads() bool { return o.seldom != nil && o.seldom.first != nil }

// led takes the leading frame that comes next. Under mu.
func (o *Outbound) led() *codec.Encoded {
	s := o.seldom
	l := s.first
	if s.first = l.next; s.first == nil && s.withheld == nil && s.closes == nil {
		o.seldom = nil
	}
	if l.owed {
		o.owed.Add(-1)
	}
	return l.frame
}
