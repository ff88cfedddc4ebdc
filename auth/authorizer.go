package auth

import "context"

// Access is what an Authorizer is asked: may Identity do, in Room, what takes Right?
// The grants of the identity have allowed it already.
type Access struct {
	Identity *Identity
	Right    Right
	Room     string // empty: the tenant itself, of which commands are asked
	Name     string // of the event or the command; empty with other rights
}

// Decision is what an Authorizer answers.
type Decision uint8

const (
	// Denied, the zero value: this access is refused. The next one is asked again.
	Denied Decision = iota
	// Allowed: this access, and with Publish every event that the member publishes in
	// this room, for as long as it is in it with these credentials.
	Allowed
	// AllowedOnce: this access, and the next one is asked again.
	AllowedOnce
)

// Authorizer decides what grants cannot say. It may block, until ctx ends at the
// latest, and is called from many goroutines at once, also more than once about one
// access.
type Authorizer interface {
	// Authorize answers one question. Its error says that there is no answer now; the
	// access is refused then, and may be tried again.
	Authorize(ctx context.Context, a Access) (Decision, error)
}
