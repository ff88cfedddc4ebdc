package session

import (
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

var errNoPresence = codec.NewError(codec.CodeUnsupported, "rooms of this kind have no presence")

// presence reads a page of a room's members.
func (s *Session) presence(r *codec.PresenceQuery) *codec.Error {
	if !s.allows(auth.Presence, r.Room) {
		return errForbidden
	}
	return errNoPresence
}
