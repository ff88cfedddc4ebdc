// Package memory is a transport within one process, for tests of everything
// above sockets. It keeps all that transport promises, without a socket: it
// blocks on channels only and takes time from timers only, so that it runs
// inside a testing/synctest bubble, and a client that does not read fills a
// window of bytes and parks the connection, as a full socket would.
//
// A link is one connection. Its state is guarded by one mutex that is never held
// over a call to the outside. Its reader goroutine is started by Dial, makes all
// calls of the Receiver, and ends with Closed; Client.Done tells when. There is
// no writer goroutine: the client's Recv moves parked bytes on, and calls ready.
//
// Bounds: a window of bytes each way, and what one Write left over.
package memory
