package session

import "github.com/yaza-dev/pulse/codec"

// token renews the credentials.
func (s *Session) token(*codec.Token) *codec.Error { return errNotBuilt }
