// Package ws is the WebSocket transport: an http.Handler that makes a
// transport.Conn and a transport.Receiver of each request for an upgrade.
//
// The handshake is checked here, then the Acceptor is asked, and only then is the
// HTTP connection taken over. gws reads messages (it unmasks, assembles fragments
// and checks the UTF-8 of text), but it is given no socket: reader stands between
// and shows it only what checker has found to be in order, so that no length, bit
// or order of frames that RFC 6455 forbids ever reaches it. What gws would write
// after the 101 is dropped: pong and close are conn's own.
//
// # Before the first request
//
// A listener of Handshakes holds a connection to one deadline from accept on, whatever
// deadlines the server sets, and computes few handshakes of TLS at once: who computes
// one holds a place, and nobody holds one while a peer or the network is waited for.
//
// # Writing
//
// The writing side of a socket has one owner at a time (outbox says who). A Write
// makes one nonblocking attempt. What the socket does not take goes to a writer
// goroutine, which ends when nothing is left to be written or the write timeout
// is over. Pings, pongs and the close frame go out between whole writes, never
// inside one. Three kinds of connection behave alike:
//
//   - TCP and Unix sockets: an attempt is one write(2).
//   - TLS over Handshakes.Listener: records are collected in memory, and then written to
//     the socket below in the same way.
//   - Any other net.Conn (TLS or a limit that an embedder put around): there is
//     no attempt that surely does not block, so every write has its goroutine.
//
// # Compression
//
// Where a client offers permessage-deflate and Config.Compression is on, an offer is
// taken that leaves the server's window alone. Frames of such connections have a
// framing of their own: each message is compressed by itself, once for all of them,
// where it is long enough and gets shorter. What comes in is inflated by gws, and no
// further than the longest message; a client that may refer to its earlier messages
// holds Window bytes for that (transport.Request.Held).
//
// # Closing
//
// The first cause of an end counts, of whichever side. One close frame goes out
// and one is awaited, until the write timeout. Then, and after a violation, the
// socket is shut for writing and what still comes is thrown away, for at most half
// a second and 4 MiB, before it is closed: closing a socket with unread bytes
// would reset the connection, and the peer could lose the close frame. A
// connection that breaks off is closed at once.
//
// # Goroutines and bounds
//
// A connection's reader goroutine makes all calls of its Receiver. The Handler
// owns it: Shutdown and Close return when all have ended, and a reader ends after
// its writer. Per idle connection there is one goroutine and one read buffer
// (Config.ReadBuffer); a message in progress may take twice Config.MaxMessageBytes,
// since gws's buffers are powers of two.
// Outbound there is at most what one Write gave, one pong, one ping and one close.
package ws
