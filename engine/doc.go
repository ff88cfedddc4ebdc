// Package engine is Pulse inside a Go program: rooms, sessions and tenants,
// served over WebSocket and to the program itself.
//
//	e, err := engine.Start(ctx, engine.Config{
//		Kinds:         []room.Kind{{Name: "chat", New: newChat}},
//		Authenticator: tokens,
//	})
//	http.ListenAndServe(addr, e.Handler())
//
// Start wires everything and returns a running Engine; several live in one
// process without knowing of each other. Handler serves clients, InternalHandler
// serves operators, Publish and TryPublish are the program's own way to rooms,
// Close ends it in order. The context of Start bounds the start only.
//
// # A connection's way in
//
// The transport asks Admit before the upgrade: caps, origin, and whether the
// node is leaving. The connection's reader goroutine then waits for the hello,
// under the handshake's deadline, which counts from the accept where the connection
// came through Listener; the Authenticator runs on the blocking pool, a
// few at a time, fair by address; then the tenant's actor starts the session.
// Until then the connection counts as unauthenticated. From then on the reader
// decodes, within its tenant's share, and posts to the session.
//
// What grants allow an Authorizer may still refuse. Its answers come to the session
// that asked, and count for the credentials that it asked with alone.
//
// # Sessions outlive connections
//
// A session is held through a lease. A hello with a resume token takes over the
// one that the token names, if the store of leases agrees, and the connection
// that had it is closed; a token that is not taken is logged with its cause, and
// answered by a new session. When a connection ends without a word, or by a close
// that is not final, its session may be resumed for as long as Limits.ResumeTTL
// says; else it ends at once.
//
// # What is measured
//
// With a MeterProvider the instruments of docs/metrics.md, with a TracerProvider the
// way of some events; without them nothing, at no cost. What there is is counted at
// each scrape in the sets that hold it; what happens is counted by its owner; and of
// times a few are taken, at random. A scrape costs a quarter of a microsecond for
// each room and session, and runs on the goroutine of who asks.
//
// # Who runs what
//
// The Engine owns the scheduler's workers, one timer wheel, one goroutine that
// tells the store of leases, the transport's reader goroutines and, unless it was
// given them, a broker, leases and presence in memory. All end with
// Close, except a handler of the embedder's that does not return: its room is
// taken from it, and Close does not wait for it.
package engine
