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
	dry  int            // pages in a row that brought nothing though there is more

	// Whether pos still holds is for the broker to say: another epoch was heard
	// of, since it was asked last (doubt) or before that (asked).
	doubt, asked bool
}

// start sets the position from which the room follows its topic.
func (s *sequencer) start(head codec.Position) {
	s.pos, s.head = head, head.Offset
}

// arrived takes a batch of buffered events. What it returns is next in order.
func (s *sequencer) arrived(b bridge.Batch) (deliver []*codec.Event) {
	events := b.Events
	first := events[0].Position
	if first.Epoch != s.pos.Epoch {
		if b.Previous != s.pos {
			s.doubt = true
			return nil
		}
		s.pos.Epoch, s.head, s.held = first.Epoch, s.pos.Offset, nil
	}
	last := events[len(events)-1].Position.Offset
	s.head = max(s.head, last)
	switch {
	case last <= s.pos.Offset:
		return nil // all known
	case first.Offset > s.pos.Offset+1:
		s.hold(events)
		return nil
	}
	deliver = events[s.pos.Offset+1-first.Offset:]
	s.pos.Offset = last
	return s.release(deliver)
}

// atLeast is told that the topic has got as far as head.
func (s *sequencer) atLeast(head codec.Position) {
	if head.Epoch != s.pos.Epoch {
		s.doubt = true
		return
	}
	s.head = max(s.head, head.Offset)
}

// gap: something exists that was not handed out, or may.
func (s *sequencer) gap() bool { return s.doubt || s.asked || s.head > s.pos.Offset }

// ask begins a read that closes the gap; its page is of what comes after the
// position returned.
func (s *sequencer) ask() codec.Position {
	s.asked, s.doubt = s.asked || s.doubt, false
	return s.pos
}

// page takes what was read. reset: what was delivered so far is no prefix of the
// history any more; pos is then the head of the new one.
func (s *sequencer) page(since codec.Position, p bridge.Page) (deliver []*codec.Event, reset codec.ResetReason) {
	if since.Epoch != s.pos.Epoch || p.Reset != codec.ResetNone && since != s.pos {
		s.doubt = true // it is about a position that was left meanwhile
		return nil, codec.ResetNone
	}
	s.asked = false
	if p.Reset != codec.ResetNone {
		head := p.Head.Offset
		if p.Head.Epoch == s.pos.Epoch {
			head = max(head, s.head) // the page may be older than what is known
		}
		s.begin(p.Head)
		s.head = head
		return nil, p.Reset
	}
	if p.Head.Epoch != s.pos.Epoch {
		// The position holds in the new epoch: the broker said so by no reset.
		s.pos.Epoch, s.head, s.held = p.Head.Epoch, s.pos.Offset, nil
	}
	s.head = max(s.head, p.Head.Offset)
	for i, e := range p.Events {
		if e.Position.Offset == s.pos.Offset+1 {
			deliver = p.Events[i:]
			s.pos.Offset = p.Events[len(p.Events)-1].Position.Offset
			break
		}
	}
	switch {
	case len(deliver) > 0 || s.head == s.pos.Offset:
		s.dry = 0
	case s.dry == 1:
		s.begin(p.Head)
		return nil, codec.ResetOverflow
	default:
		s.dry = 1
	}
	return s.release(deliver), codec.ResetNone
}

// begin goes on from the head of another history.
func (s *sequencer) begin(head codec.Position) {
	s.pos, s.head, s.held, s.dry = head, head.Offset, nil, 0
}

// heldHead is the last offset of held, which is not empty.
func (s *sequencer) heldHead() uint64 { return s.held[len(s.held)-1].Position.Offset }

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
	for len(s.held) > 0 && s.held[0].Position.Offset <= s.pos.Offset {
		s.held = s.held[1:]
	}
	switch {
	case len(s.held) == 0:
		s.held = nil // with the events that were in it
	case s.held[0].Position.Offset == s.pos.Offset+1:
		deliver = append(deliver[:len(deliver):len(deliver)], s.held...)
		s.pos.Offset = s.heldHead()
		s.held = nil
	}
	return deliver
}
