// Package e2e holds the tests that meet an engine as a stranger would: over real
// sockets, with a WebSocket client that shares no code with the server, and with
// frames that the tests write and read themselves.
//
// Every client checks the order of what it is sent against section 4 of the
// protocol, whatever its test is about. Every test ends with a closed engine and no
// goroutine left.
package e2e
