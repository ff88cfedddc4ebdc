package transporttest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/transport"
)

// Peer is the client's end of one connection.
type Peer interface {
	// Send sends one message and may wait for the server to read.
	Send(b []byte) error
	// Recv returns the next message, or a *CloseError. Whoever does not call it
	// does not read from the socket, beyond a small buffer.
	Recv(ctx context.Context) ([]byte, error)
	// Close sends a close with this code, behind what was sent, without waiting.
	Close(code uint16)
	// Cut breaks the connection off.
	Cut()
}

// CloseError is how Peer.Recv tells of the end. Code is 1006 when no close came.
type CloseError struct {
	Code   uint16
	Reason string
}

func (e *CloseError) Error() string { return fmt.Sprintf("closed %d %q", e.Code, e.Reason) }

// Options of the server's end.
type Options struct {
	MaxMessageBytes int
	WriteTimeout    time.Duration
}

// Dial makes a new connection whose server's end is a's, speaking a protocol
// with text messages. What it starts must end with t and by itself. Less than a
// megabyte is held between the ends.
type Dial func(t *testing.T, a transport.Acceptor, o Options) Peer
