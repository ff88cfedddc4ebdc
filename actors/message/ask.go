package message

import (
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

// What clients are refused for, whichever way they ask.
var (
	ErrForbidden  = codec.NewError(codec.CodeForbidden, "no grant covers this")
	ErrNoKind     = codec.NewError(codec.CodeNotFound, "no such kind of room")
	ErrNoEvent    = codec.NewError(codec.CodeNotFound, "no such event in rooms of this kind")
	ErrNoPresence = codec.NewError(codec.CodeUnsupported, "rooms of this kind have no presence")
	ErrExpired    = codec.NewError(codec.CodeExpired, "its time to live has passed")
	ErrDeadline   = codec.NewError(codec.CodeDeadlineExceeded, "not answered in time")
)

// For finds the policy of a room for a client that asks what takes a right. The right
// is looked at first: a name without a grant is forbidden, whether there is such a
// room or not.
func (d *Declared) For(g auth.Grants, right auth.Right, room string) (*Policy, *codec.Error) {
	kind := d.Of(codec.RoomKind(room))
	switch {
	case !g.Allows(right, room), right == auth.Publish && kind != nil && kind.Publish == Server:
		return nil, ErrForbidden
	case kind == nil:
		return nil, ErrNoKind
	case right == auth.Presence && !kind.Presence:
		return nil, ErrNoPresence
	}
	return kind, nil
}
