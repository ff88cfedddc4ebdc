package session

import "github.com/yaza-dev/pulse/actors/message"

// memberships are the rooms that a session is in, chained in the order of their slots.
// A slot is used again after its membership has ended; each membership has a later
// generation than all before it. Pure.
type memberships struct {
	first *message.Membership
	count uint16
	gen   uint32 // the latest
}

// find is the membership of a room; nil: not joined.
func (ms *memberships) find(room string) *message.Membership {
	for m := ms.first; m != nil; m = m.Next {
		if m.Topic.Room == room {
			return m
		}
	}
	return nil
}

// add gives m the first slot that is free, and a generation.
func (ms *memberships) add(m *message.Membership) {
	at, slot := &ms.first, uint16(0)
	for *at != nil && (*at).Seat.Slot == slot {
		at = &(*at).Next
		slot++
	}
	ms.seat(m, at, *at, slot)
	ms.count++
}

// replace makes m the membership in the place of old, which is there.
func (ms *memberships) replace(old, m *message.Membership) {
	ms.seat(m, ms.before(old), old.Next, old.Seat.Slot)
	old.Next = nil
}

// remove frees the slot of m, if m is still in it.
func (ms *memberships) remove(m *message.Membership) bool {
	at := ms.before(m)
	if at == nil {
		return false
	}
	*at, m.Next = m.Next, nil
	ms.count--
	return true
}

// before is where the chain goes on with m; nil: nowhere.
func (ms *memberships) before(m *message.Membership) **message.Membership {
	for at := &ms.first; *at != nil; at = &(*at).Next {
		if *at == m {
			return at
		}
	}
	return nil
}

func (ms *memberships) seat(m *message.Membership, at **message.Membership, next *message.Membership, slot uint16) {
	ms.gen = message.NextGeneration(ms.gen)
	m.Seat.Slot, m.Seat.Gen, m.Next = slot, ms.gen, next
	*at = m
}
