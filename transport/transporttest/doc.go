// Package transporttest is the conformance suite of transport.Conn and
// transport.Receiver. A transport passes Test with a Dial of its own; what it
// promises beyond that (handshakes, frames) it tests by itself.
//
// The suite stands on both sides of a connection: as the engine, through an
// Acceptor that records, and as a client, through Peer. It takes the system's
// clock, since sockets do, and waits only for what must happen, with a limit at
// which the test fails. Where something must not happen (a full socket, a blocked
// reader) it looks for a fraction of a second: too short a look lets a fault pass,
// it never fails a transport that is right.
package transporttest
