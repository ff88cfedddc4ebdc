package room

import (
	"sync"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// Bits of the signal of a room's presence.
const (
	presenceArrived uint32 = 1 << iota // changes, or anew
	presenceLanded                     // a report was answered
	presenceListed                     // a page came
	presenceTimed
)

// presenceArrivals is the room's watcher: the bridge fills it from any goroutine,
// the room empties it. What it has no place for it forgets, and the room lists
// anew.
type presenceArrivals struct {
	room   *mailbox.Mailbox // immutable
	signal mailbox.Signal

	// guarded by mu
	mu       sync.Mutex
	anew     bool // before changes
	changes  []bridge.PresenceChange
	subjects int // in changes

	// Written by the bridge's goroutine before signal is raised, read after: there
	// is one report, and one page, on its way at most.
	landed answered[bridge.Mark]
	listed answered[bridge.MemberPage]
}

// answered is what a call has brought.
type answered[T any] struct {
	v   T
	err *codec.Error
}

var _ bridge.Watcher = (*presenceArrivals)(nil)

// Anew is the bridge's.
func (a *presenceArrivals) Anew() {
	a.mu.Lock()
	a.begin()
	a.mu.Unlock()
	a.room.Raise(&a.signal, presenceArrived)
}

// Changed is the bridge's.
func (a *presenceArrivals) Changed(c bridge.PresenceChange) {
	a.mu.Lock()
	a.subjects += len(c.Joined) + len(c.Updated) + len(c.Left)
	if len(a.changes) < heldChanges && a.subjects <= heldSubjects {
		a.changes = append(a.changes, c)
	} else {
		a.begin()
	}
	a.mu.Unlock()
	a.room.Raise(&a.signal, presenceArrived)
}

// begin forgets: a list that is asked for from here on has it all. Under mu.
func (a *presenceArrivals) begin() { a.anew, a.changes, a.subjects = true, nil, 0 }

// take is the room's.
func (a *presenceArrivals) take() (anew bool, changes []bridge.PresenceChange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	anew, changes = a.anew, a.changes
	a.anew, a.changes, a.subjects = false, nil, 0
	return anew, changes
}

// land is the done of a Change.
func (a *presenceArrivals) land(m bridge.Mark, err *codec.Error) {
	a.landed = answered[bridge.Mark]{m, err}
	a.room.Raise(&a.signal, presenceLanded)
}

// list is the done of a List.
func (a *presenceArrivals) list(p bridge.MemberPage, err *codec.Error) {
	a.listed = answered[bridge.MemberPage]{p, err}
	a.room.Raise(&a.signal, presenceListed)
}
