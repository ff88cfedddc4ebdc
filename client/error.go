package client

import (
	"errors"
	"fmt"

	"github.com/yaza-dev/pulse/codec"
)

// Error is a refusal by the server. Whether the same request may succeed later is
// said by Code.Retryable, and when by RetryAfter. A code that this build does not
// know is 0, and final.
type Error = codec.Error

var (
	// ErrClosed says that the client is closed for good; what closed it is wrapped
	// beside it, often a *CloseError.
	ErrClosed = errors.New("client: closed")
	// ErrUnknown says that the request was sent and its reply is not known: it may
	// have been done.
	ErrUnknown = errors.New("client: sent, but its outcome is unknown")
	// ErrFull says that Options.Requests is reached.
	ErrFull = errors.New("client: too many requests wait")
	// ErrDropped says that a newer publish took the place of this one, which
	// waited longest (Options.DropOldest).
	ErrDropped = errors.New("client: dropped for a newer publish")
	// ErrOffline says that there is no connection just now, where a call does not
	// wait for one.
	ErrOffline = errors.New("client: no connection")
	// ErrJoined says that the room has a Subscription already.
	ErrJoined = errors.New("client: the room is joined already")
)

// unknown says of an error that it left the outcome open.
func unknown(err error) error { return fmt.Errorf("%w: %w", ErrUnknown, err) }

// LeftError says that a membership has ended. Without a Reason the client itself
// left.
type LeftError struct {
	Room   string
	Reason codec.LeftReason
}

func (e *LeftError) Error() string {
	if e.Reason == 0 {
		return "client: left " + e.Room
	}
	return "client: left " + e.Room + ": " + e.Reason.String()
}
