package room

import (
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// heldEvents bounds what a sequencer keeps above a gap while the gap is read.
// Beyond, only the head is remembered, and the rest is read too.
const heldEvents = 64

// sequencer puts the buffered events of one room into one order without a hole.
// It is pure: arrivals and pages go in, what may be delivered comes out.
//
// Invariant: everything up to pos was handed out once, in order; nothing above
// it was. held is ascending and consecutive, and begins above pos+1.
type sequencer struct {
	pos  codec.Position // of the last event handed out
	head uint64         // highest offset known to exist in pos.Epoch
	held []*codec.Event // what came above a gap
	dry  int            // pages in a row that made none
}

// start sets the position from which the room follows its topic.
func (s *sequencer) start(head codec.Position) {
	s.pos, s.head = head, head.Offset
}

// arrived takes a batch of buffered events. What it returns is next in order; gap says that
// there is something between pos and what is known to exist, to be read.
func (s *sequencer) arrived(b bridge.Batch) (deliver []*codec.Event, gap bool) {
	events := b.Events
	if len(events) == 0 {
		return nil, s.gap()
	}
	first := events[0].Position
	if first.Epoch != s.pos.Epoch {
		if b.Previous.Epoch != s.pos.Epoch || s.pos.Offset != b.Previous.Offset {
			// Whether this position still holds is for the broker to say.
			s.held = nil
			s.head = max(s.head, first.Offset, s.pos.Offset+1)
			return nil, true
		}
		s.pos.Epoch, s.head, s.held = first.Epoch, s.pos.Offset, nil
	}
	last := events[len(events)-1].Position.Offset
	s.head = max(s.head, last)
	switch {
	case last <= s.pos.Offset:
		return nil, s.gap() // all known
	case first.Offset > s.pos.Offset+1:
		s.hold(events)
		return nil, true
	}
	deliver = events[s.pos.Offset+1-first.Offset:]
	s.pos.Offset = last
	return s.release(deliver), s.gap()
}

// atLeast is told that the topic has got as far as head.
func (s *sequencer) atLeast(head codec.Position) (gap bool) {
	if head.Epoch != s.pos.Epoch {
		s.head = max(s.head, s.pos.Offset+1)
		return true
	}
	s.head = max(s.head, head.Offset)
	return s.gap()
}

// page takes what was read after pos. reset: what was delivered so far is no
// prefix of the history any more; pos is then the head of the new one.
func (s *sequencer) page(p bridge.Page) (deliver []*codec.Event, gap bool, reset codec.ResetReason) {
	if p.Reset != codec.ResetNone {
		s.pos, s.head, s.held, s.dry = p.Head, p.Head.Offset, nil, 0
		return nil, false, p.Reset
	}
	if p.Head.Epoch != s.pos.Epoch {
		// The position holds in the new epoch: the broker said so by no reset.
		s.pos.Epoch, s.head, s.held = p.Head.Epoch, s.pos.Offset, nil
	}
	s.head = max(p.Head.Offset, s.heldHead())
	for i, e := range p.Events {
		if e.Position.Offset == s.pos.Offset+1 {
			deliver = p.Events[i:]
			s.pos.Offset = p.Events[len(p.Events)-1].Position.Offset
			break
		}
	}
	if len(deliver) > 0 {
		s.dry = 0
	} else if s.dry++; s.dry >= 2 && s.gap() {
		s.pos, s.held, s.dry = p.Head, nil, 0
		s.head = p.Head.Offset
		return nil, false, codec.ResetOverflow
	}
	return s.release(deliver), s.gap(), codec.ResetNone
}

// gap: something exists that was not handed out.
func (s *sequencer) gap() bool { return s.head > s.pos.Offset }

func (s *sequencer) heldHead() uint64 {
	if n := len(s.held); n > 0 {
		return s.held[n-1].Position.Offset
	}
	return 0
}

func (s *sequencer) hold(events []*codec.Event) {
	for _, e := range events {
		if len(s.held) == heldEvents {
			return
		}
		if len(s.held) == 0 || e.Position.Offset == s.heldHead()+1 {
			s.held = append(s.held, e)
		}
	}
}

// release appends what was held and is next now.
func (s *sequencer) release(deliver []*codec.Event) []*codec.Event {
	if len(s.held) == 0 {
		return deliver
	}
	for len(s.held) > 0 && s.held[0].Position.Offset <= s.pos.Offset {
		s.held = s.held[1:]
	}
	if len(s.held) > 0 && s.held[0].Position.Offset == s.pos.Offset+1 {
		deliver = append(deliver[:len(deliver):len(deliver)], s.held...)
		s.pos.Offset = s.heldHead()
		s.held = nil
	}
	if len(s.held) == 0 {
		s.held = nil
	}
	return deliver
}
