package server

import (
	"net"
	"testing"
)

// A server that is stopped comes back to its port: nobody who asks the system for any, or
// this package for one, gets it meanwhile.
func TestAStoppedServerKeepsItsPort(t *testing.T) {
	s := Start(t)
	s.Stop()
	for range 200 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if l.Addr().(*net.TCPAddr).Port < lowestPort+ports+busAbove {
			t.Errorf("the system gives ports as low as %v", l.Addr())
		}
	}
	if l, err := net.Listen("tcp", net.JoinHostPort(keeper, s.Address()[len("127.0.0.1:"):])); err == nil {
		l.Close()
		t.Error("another test could take its port")
	}
	s.Restart()
}
