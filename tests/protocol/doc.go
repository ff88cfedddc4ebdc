// Package protocol holds a running node against RFC 6455 (WebSocket) and RFC 7692
// (its compression), byte by byte: framing, pings, reserved bits, opcodes,
// fragmentation, UTF-8, closing, limits, handshakes, and every offer of
// compression. Each case has a number within its section and names its rule; all
// run over TCP and over TLS.
//
// The client is written here and knows nothing of the server's code but the
// protocol's own frames: a message got through when the `ping` in it, or behind
// it, is answered by its `pong`.
package protocol
