package codec

import (
	"errors"
	"strings"
)

// Topic names one room of one tenant. It is valid by construction when it comes
// from NewTopic. A client never sees the tenant in a frame, so
// events decoded by a client have a topic without one.
type Topic struct{ Tenant, Room string }

// NewTopic refuses names outside the grammar.
func NewTopic(tenant, room string) (Topic, error) {
	if !ValidTenant(tenant) {
		return Topic{}, errors.New("codec: tenant outside the grammar")
	}
	if !ValidRoom(room) {
		return Topic{}, errors.New("codec: room outside the grammar")
	}
	return Topic{tenant, room}, nil
}

// String is injective: a tenant has no ':', so the first one ends it.
func (t Topic) String() string { return t.Tenant + ":" + t.Room }

// Kind is the part of the room's name that picks its handler and policies.
func (t Topic) Kind() string { return RoomKind(t.Room) }

// RoomKind is the part of a room's name before the first ':', or all of it.
func RoomKind(room string) string {
	kind, _, _ := strings.Cut(room, ":")
	return kind
}
