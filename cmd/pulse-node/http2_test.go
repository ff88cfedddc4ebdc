package main

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// oneConn is a listener with one connection.
type oneConn struct {
	net.Listener
	conn chan net.Conn
}

func (l oneConn) Accept() (net.Conn, error) {
	if c, ok := <-l.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l oneConn) Close() error { return nil }

// Who has a connection of HTTP/2 and never reads from it is cut after the write timeout,
// whatever its streams were promised. Virtual time.
func TestHTTP2ThatNobodyReads(t *testing.T) {
	certificates := httptest.NewUnstartedServer(nil)
	certificates.StartTLS()
	certificates.Close()
	certificate := certificates.TLS.Certificates
	synctest.Test(t, func(t *testing.T) {
		const timeout = 3 * time.Second
		n := node{handshakeTimeout: time.Minute}
		n.engine.Logger = slog.New(slog.DiscardHandler)
		n.engine.Limits.WriteTimeout = timeout
		s := n.server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
		s.TLSConfig = &tls.Config{Certificates: certificate, SessionTicketsDisabled: true} // tickets would be read or waited for
		here, there := net.Pipe()
		l := oneConn{conn: make(chan net.Conn, 1)}
		l.conn <- there
		served := make(chan error)
		go func() { served <- s.ServeTLS(l, "", "") }()

		c := tls.Client(here, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err := c.Handshake(); err != nil || c.ConnectionState().NegotiatedProtocol != "h2" {
			t.Fatal(err, c.ConnectionState().NegotiatedProtocol)
		}
		began := time.Now()
		_ = c.SetWriteDeadline(began.Add(10 * timeout))
		const (
			preface  = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
			settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
			ping     = "\x00\x00\x08\x06\x00\x00\x00\x00\x00" + "12345678"
		)
		_, err := io.WriteString(c, preface+settings)
		for ; err == nil; time.Sleep(timeout / 10) {
			_, err = io.WriteString(c, ping)
		}
		const alert = 5 * time.Second // that TLS takes to say goodbye
		if took := time.Since(began); took < timeout || took > timeout+alert+time.Second {
			t.Errorf("cut after %v: %v", took, err)
		}
		close(l.conn)
		<-served
		_ = s.Close()
	})
}
