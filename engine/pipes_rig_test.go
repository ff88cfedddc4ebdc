package engine

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/yaza-dev/pulse/transport/ws"
)

// pipes is a listener whose connections are pipes, so that in a bubble what a server
// does in time it does in virtual time.
type pipes struct {
	t      *testing.T
	coming chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// overPipes serves an engine's public handler over pipes; under TLS with a certificate.
func (e *Engine) overPipes(t *testing.T, certificate ...tls.Certificate) *pipes {
	t.Helper()
	return servePipes(t, e.Listener, e.Handler(), certificate...)
}

// servePipes serves h over pipes, with what wrap makes of their listener.
func servePipes(t *testing.T, wrap func(net.Listener) net.Listener, h http.Handler, certificate ...tls.Certificate) *pipes {
	t.Helper()
	p := &pipes{t: t, coming: make(chan net.Conn), closed: make(chan struct{})}
	l := wrap(p)
	if certificate != nil {
		l = tls.NewListener(l, &tls.Config{Certificates: certificate})
	}
	s := &http.Server{Handler: h, ConnContext: ws.ConnContext, ErrorLog: log.New(io.Discard, "", 0)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { _ = s.Close(); serving.Wait() })
	return p
}

// certificate is one for tests. It is made outside of bubbles.
func certificate() tls.Certificate {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return s.TLS.Certificates[0]
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.coming:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return pipeEnd{}.LocalAddr() }

// pipeEnd is the server's, whose peer has an address.
type pipeEnd struct {
	net.Conn
	from string
}

func (pipeEnd) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (c pipeEnd) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1} }

// dial is the client's end of a new connection, which ends with the test.
func (p *pipes) dial() net.Conn { return p.dialFrom("127.0.0.1") }

func (p *pipes) dialFrom(address string) net.Conn {
	near, far := net.Pipe()
	p.coming <- pipeEnd{far, address}
	p.t.Cleanup(func() { _ = near.Close() })
	return near
}

// raw is dial for who reads answers.
func (p *pipes) raw(text string) *raw {
	p.t.Helper()
	c := p.dial()
	r := &raw{c, p.t, bufio.NewReader(c)}
	r.say(text)
	return r
}
