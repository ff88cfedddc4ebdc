package auth

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// ErrUnauthenticated is wrapped by the error of an Authenticator that has
// looked at the credentials and found them missing, bad or ended. Any other
// error says that they could not be looked at.
var ErrUnauthenticated = errors.New("auth: unauthenticated")

// Identity is what verified credentials say about a client. It is immutable.
type Identity struct {
	Tenant  string // [A-Za-z0-9_.-]{1,64}
	Subject string // 1 to 256 bytes of UTF-8
	Grants  Grants
	// Expires is when the credentials end as their issuer said; zero: never.
	Expires time.Time
	// Leeway is for how long after Expires they are still taken, for clocks
	// that differ.
	Leeway  time.Duration
	TokenID string // the token's own name, for revocation; may be empty
}

// Source says where a credential was found.
type Source uint8

// The places where the protocol allows a credential.
const (
	None   Source = iota // no credential was given
	Hello                // the token of the hello frame
	Bearer               // the Authorization header
	Cookie               // the cookie that the deployment names
)

// String returns the source's name, for logs.
func (s Source) String() string {
	switch s {
	case Hello:
		return "hello"
	case Bearer:
		return "bearer"
	case Cookie:
		return "cookie"
	}
	return "none"
}

// Credentials is what a client gave to be known by.
type Credentials struct {
	Protocol string      // name of the client protocol, such as "pulse.v1.json"; empty before the upgrade
	Token    string      // the winning token, of several given; may be empty
	Source   Source      // where Token comes from
	Remote   string      // the client's address
	Header   http.Header // of the request that opened the connection; read only
}

// Authenticator verifies credentials. It may block, until ctx ends at the
// latest, and is called from many goroutines at once.
type Authenticator interface {
	// Authenticate returns who the client is. Its error wraps
	// ErrUnauthenticated when the credentials are at fault; any other error
	// means that they could not be verified now.
	Authenticate(ctx context.Context, c Credentials) (*Identity, error)
}
