package server

import (
	"net"
	"strconv"
	"testing"
)

// A server that is stopped comes back to its port: no other test gets it meanwhile.
func TestAStoppedServerKeepsItsPort(t *testing.T) {
	s := Start(t)
	s.Stop()
	if l, err := net.Listen("tcp", net.JoinHostPort(keeper, strconv.Itoa(s.Port()))); err == nil {
		l.Close()
		t.Error("another test could take its port")
	}
	s.Restart()
}
