package config

import (
	"fmt"
	"reflect"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
)

// Kind returns the kind of that name that r declares.
func (r Room) Kind(name string) room.Kind {
	k := room.Kind{
		Name:          name,
		History:       room.History{Events: r.History.Events, Age: r.History.Age, Bytes: int64(r.History.Bytes)},
		NoHistory:     r.History.Events == 0,
		DedupWindow:   r.DedupWindow,
		Publish:       word(r.Publish, room.Members, room.Grant, room.Server),
		MailboxItems:  r.Mailbox.Items,
		MailboxBytes:  int(r.Mailbox.Bytes),
		Linger:        r.Linger,
		Presence:      r.Presence,
		PresenceLimit: r.PresenceLimit,
	}
	if r.DedupWindow == 0 { // "off" here, "the default" there
		k.DedupWindow = -1
	}
	if r.Events != nil {
		k.Events = make(map[string]room.EventPolicy, len(r.Events))
	}
	for event, e := range r.Events {
		k.Events[event] = room.EventPolicy{
			Delivery:   word(e.Delivery, room.AtLeastOnce, room.AtMostOnce, room.Transient),
			Lane:       word(e.Lane, backpressure.Interactive, backpressure.Bulk, backpressure.Lossy),
			Overflow:   word(e.Overflow, backpressure.Reject, backpressure.DropOldest, backpressure.CoalesceLatest, backpressure.RequireAck),
			CoalesceBy: e.CoalesceBy,
			Secret:     e.Secret,
		}
	}
	return k
}

// Faults is what is wrong with r as a kind of that name.
func (r Room) Faults(name string) (faults []*room.Fault) {
	_, err := r.Kind(name).Policy()
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, fault := range joined.Unwrap() {
			faults = append(faults, fault.(*room.Fault))
		}
	}
	return faults
}

// word returns the one of values that text names. The schema lets no other pass.
func word[T fmt.Stringer](text string, values ...T) T {
	for _, v := range values {
		if v.String() == text {
			return v
		}
	}
	panic(fmt.Sprintf("config: %q is none of %v", text, values))
}

// DefaultRoom is the declaration of a kind that says nothing.
func DefaultRoom() Room {
	var r Room
	setDefaults(reflect.ValueOf(&r).Elem())
	return r
}
