//go:build !linux

package ws

import "net"

// rawWriter is for Linux only; elsewhere every connection is written to like a
// foreign one.
type rawWriter struct{}

func newRawWriter(net.Conn) *rawWriter { return nil }

func (*rawWriter) write([]byte) (int, error) { panic("ws: no raw writer") }
