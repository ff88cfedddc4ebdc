package ws

import (
	"io"
	"net"
	"testing"
	"time"
)

// A peer that takes something within each write timeout is waited for, however long
// all of it takes; one that takes nothing is not.
func TestWriteTimeoutIsForAPeerThatTakesNothing(t *testing.T) {
	const timeout, size = 300 * time.Millisecond, 512 << 10
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for end, set := range map[*net.TCPConn]func(*net.TCPConn) error{
		c.(*net.TCPConn):    func(c *net.TCPConn) error { return c.SetWriteBuffer(8 << 10) },
		peer.(*net.TCPConn): func(c *net.TCPConn) error { return c.SetReadBuffer(8 << 10) },
	} {
		if err := set(end); err != nil {
			t.Fatal(err)
		}
	}
	s := newSocket(c)
	if err := peer.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	began := time.Now()
	go func() {
		rest, err := s.attempt(make([]byte, size))
		if err == nil {
			err = s.finish(rest, timeout)
		}
		done <- err
	}()
	every := time.NewTicker(timeout / 6)
	defer every.Stop()
	for left := size; left > 0; left -= 32 << 10 {
		<-every.C
		if _, err := io.CopyN(io.Discard, peer, 32<<10); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil || time.Since(began) < 2*timeout {
		t.Errorf("slowly read: %v after %v", err, time.Since(began))
	}
	rest, err := s.attempt(make([]byte, size))
	if err == nil {
		err = s.finish(rest, timeout)
	}
	if nerr, ok := err.(net.Error); !ok || !nerr.Timeout() {
		t.Errorf("not read: %v", err)
	}
}
