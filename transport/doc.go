// Package transport is the seam between sockets and sessions.
//
// A transport (transport/ws, transport/memory) turns a network connection into
// two halves. Conn is what a session writes to; Receiver is what the engine does
// with what the connection reads. Acceptor decides which connections there are.
// A transport knows bytes, framings and closing handshakes; it knows no session,
// no tenant and no document.
//
// What every transport guarantees, and transporttest checks:
//
//   - Nothing blocks the session: Conn.Write makes one attempt, Conn.Close none.
//   - Bytes go out in the order of the writes, and a close behind all of them.
//   - A write that did not finish is finished by the transport within its write
//     timeout, or the connection is dead; either way ready is called once.
//   - A Receiver that blocks in Message stops the reading of that socket only.
//   - Receiver.Closed comes exactly once, after everything else.
//
// Goroutines: one reader per connection, owned by the transport, which makes all
// calls of its Receiver; and while a write is unfinished one writer, which ends
// when that write does. An idle connection has nothing else.
//
// Bounds: a connection holds at most what one Write gave it, one pong, one ping
// and one close frame on its way out, and one message of the configured size on
// its way in.
package transport
