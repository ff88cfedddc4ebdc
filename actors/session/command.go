package session

import (
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

var errNoHandler = codec.NewError(codec.CodeNotFound, "nobody handles this command")

// command is for the room's handler, or the tenant's.
func (s *Session) command(r *codec.Command) *codec.Error {
	if r.Room == "" && !s.cfg.Identity.Grants.AllowsTenant(auth.Command) || r.Room != "" && !s.allows(auth.Command, r.Room) {
		return errForbidden
	}
	return errNoHandler
}
