package transport

import "github.com/yaza-dev/pulse/codec"

// Receiver is the receiving half of a connection: what the engine does with what
// is read. All calls come from the connection's one reader goroutine, and none
// after Closed. A Receiver that panics ends its own connection with
// codec.CauseInternal.
type Receiver interface {
	// Message gives b away: the transport keeps no reference. binary is the kind of
	// message, for transports that have kinds. Message may block, which is
	// backpressure: the socket is not read meanwhile. It must return soon after the
	// connection was closed, since the reader goroutine cannot end before it does.
	// What comes after Conn.Close is not handed on.
	Message(b []byte, binary bool)

	// Alive says that something was received, be it a part of a message or a
	// transport's own ping or pong. It is called for every read, so it must be as
	// cheap as an atomic store.
	Alive()

	// Closed is the last call, and comes exactly once. cause is the first that any
	// side gave: the argument of Conn.Close, the peer's close code, the rule that
	// the peer broke (CauseProtocol, CauseTooLarge, CauseInvalidText), CauseOverload
	// for a peer that did not read, or CauseAbrupt for a connection that broke off.
	// The closing handshake may still be going on; nothing more is told about it.
	Closed(cause codec.Cause)
}
