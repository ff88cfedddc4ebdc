package session

import "github.com/yaza-dev/pulse/actors/message"

// memberships are the rooms that a session is in, by slot. A slot is used again
// after its membership has ended, with a later generation. Pure.
type memberships struct {
	slots []slot
	count int
}

type slot struct {
	m   *message.Membership // nil: free
	gen uint32
	// early: publishes of this membership go the way of its join, which they must
	// not overtake, because the first went before the room had answered it.
	early bool
}

// find is the membership of a room; nil: not joined.
func (ms *memberships) find(room string) *slot {
	for i := range ms.slots {
		if m := ms.slots[i].m; m != nil && m.Topic.Room == room {
			return &ms.slots[i]
		}
	}
	return nil
}

// add gives m a slot and a generation.
func (ms *memberships) add(m *message.Membership) {
	at := -1
	for i := range ms.slots {
		if ms.slots[i].m == nil {
			at = i
			break
		}
	}
	if at < 0 {
		at = len(ms.slots)
		ms.slots = append(ms.slots, slot{})
	}
	s := &ms.slots[at]
	s.gen = message.NextGeneration(s.gen)
	s.m, s.early = m, false
	m.Seat.Slot, m.Seat.Gen = uint16(at), s.gen
	ms.count++
}

// replace makes m the membership in s.
func (ms *memberships) replace(s *slot, m *message.Membership) {
	seat := s.m.Seat
	s.gen = message.NextGeneration(s.gen)
	s.m, s.early = m, false
	m.Seat.Slot, m.Seat.Gen = seat.Slot, s.gen
}

// remove frees the slot of m, if m is still in it.
func (ms *memberships) remove(m *message.Membership) bool {
	s := &ms.slots[m.Seat.Slot]
	if s.m != m {
		return false
	}
	s.m = nil
	ms.count--
	return true
}
