package session

import (
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

var errNotBuilt = codec.NewError(codec.CodeUnsupported, "not in this build")

// history reads a page of a room's buffered events.
func (s *Session) history(r *codec.History) *codec.Error {
	if !s.allows(auth.History, r.Room) {
		return errForbidden
	}
	return errNotBuilt
}
