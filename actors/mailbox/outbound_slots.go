package mailbox

// outSlot is one membership as the queue knows it.
type outSlot struct {
	room   *Mailbox // told when the slot wants to be fed
	signal *Signal
	want   uint32 // bits to raise
	gen    uint32 // generation that the slot is of now
	opened uint32 // generation whose mark has gone out
	behind bool
	asked  bool       // want was raised and not yet answered
	acks   *ackWindow // nil: nothing was sent that is to be acknowledged
}

// outSlots are the memberships of a session by slot: the first is there from the
// beginning, since most sessions are in one room, and those beyond cost a word until
// there are some.
type outSlots struct {
	first outSlot
	more  *[]outSlot
}

func (s *outSlots) len() int {
	if s.more == nil {
		return 1
	}
	return 1 + len(*s.more)
}

// at is a slot that is there.
func (s *outSlots) at(slot uint16) *outSlot {
	if slot == 0 {
		return &s.first
	}
	return &(*s.more)[slot-1]
}

// reach makes the slots up to one be there.
func (s *outSlots) reach(slot uint16) {
	if slot > 0 && s.more == nil {
		s.more = new([]outSlot)
	}
	for int(slot) >= s.len() {
		*s.more = append(*s.more, outSlot{})
	}
}
