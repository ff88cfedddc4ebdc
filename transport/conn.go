package transport

import (
	"errors"

	"github.com/yaza-dev/pulse/codec"
)

// ErrClosed says that a connection takes no more writes: Close was called, its
// peer closed it, or it was cut.
var ErrClosed = errors.New("transport: connection closed")

// ErrStuck says that the peer did not read what was written within the write
// timeout, and that its connection was cut for that.
var ErrStuck = errors.New("transport: peer does not read")

// Conn is the sending half of one client's connection. One goroutine at a time
// calls its methods (the session's drain), except Close, which anyone may call.
type Conn interface {
	// Framing says how frames for this connection are encoded. Connections of one
	// transport and protocol share one framing, so that a frame is encoded once.
	Framing() *codec.Framing

	// Name is the transport's name as clients see it: "websocket", "memory".
	Name() string

	// Write sends b, which is any number of whole frames, without blocking.
	//
	// done: the socket took all of it. Not done: the connection has copied the rest
	// and is parked; it writes the rest by itself, for as long as the peer makes place
	// within each write timeout, then calls the ready function once, and until then
	// Write must not be called.
	// err: the connection takes no more writes, now or ever (ErrClosed, ErrStuck or
	// the socket's own fault), and ready is not called for this write.
	Write(b []byte) (done bool, err error)

	// OnReady sets the function that ends a parked write, once, before the first
	// Write. It is called on any goroutine and must only post. Its err is nil when
	// all was written, else why the connection is dead.
	OnReady(ready func(err error))

	// Close ends the connection. What Write has taken is finished first, then the
	// close frame goes out with the cause's code and the reason (ASCII, cut at 123
	// bytes), then the peer has what is left of the write timeout, counted from the
	// call, to answer; then the socket is closed. The first cause counts, of
	// whichever side. codec.CauseAbrupt has no close frame: it cuts the connection at
	// once. Close never blocks and may be called at any time by anyone.
	Close(cause codec.Cause, reason string)
}

// Pinger is a Conn whose transport has a ping of its own, which the peer's
// transport answers without its program's help, so that it works where the
// program's timers are throttled. Ping never blocks, is safe from any goroutine,
// and several that cannot go out yet become one.
type Pinger interface {
	Ping()
}
