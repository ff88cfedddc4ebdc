package server

import (
	"bufio"
	"net"
	"testing"
)

// A Sentinel that gives a server another role cuts everybody off from it, also who is just
// asking something.
func TestWhoIsCutOffAsksAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
				t.Error(err)
			}
			if n > 1 {
				if _, err := c.Write([]byte("+PONG\r\n")); err != nil {
					t.Error(err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	s := &Server{tb: t, port: l.Addr().(*net.TCPAddr).Port}
	if got := s.Do("PING"); got != "PONG" {
		t.Errorf("%q", got)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}
