package ws

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/transport"
	"github.com/yaza-dev/pulse/transport/transporttest"
)

// side is one kind of connection that a Handler may be given.
type side struct {
	name string
	tls  bool
	wrap func(net.Listener) net.Listener // around the TCP listener, below TLS

	narrow bool // small buffers in the kernel, so that little data fills them
}

var sides = []side{
	{name: "tcp", wrap: func(l net.Listener) net.Listener { return l }},
	{name: "tls", tls: true, wrap: new(Handshakes).Listener},
	{name: "foreign", wrap: func(l net.Listener) net.Listener { return opaque{l} }},
	{name: "foreign tls", tls: true, wrap: func(l net.Listener) net.Listener { return l }},
}

func narrow(c net.Conn) error {
	tcp := c.(*net.TCPConn)
	return errors.Join(tcp.SetReadBuffer(64<<10), tcp.SetWriteBuffer(64<<10))
}

// narrowListener narrows what it accepts.
type narrowListener struct{ net.Listener }

func (l narrowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return c, narrow(c)
}

// opaque hides what its connections are.
type opaque struct{ net.Listener }

func (l opaque) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return struct{ net.Conn }{c}, err
}

// site is a Handler behind a real HTTP server on the loopback.
type site struct {
	side
	handler *Handler
	addr    string
}

func serve(t testing.TB, s side, config Config) *site {
	t.Helper()
	h := NewHandler(config)
	return serveHTTP(t, s, h, h)
}

// serveHTTP serves outer, which is h or something around it.
func serveHTTP(t testing.TB, s side, h *Handler, outer http.Handler) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if s.narrow {
		l = narrowListener{l}
	}
	server := &http.Server{Handler: outer, ErrorLog: log.New(io.Discard, "", 0)}
	var serving sync.WaitGroup
	serving.Go(func() {
		if s.tls {
			server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate(t)}, NextProtos: []string{"http/1.1"}}
			_ = server.ServeTLS(s.wrap(l), "", "")
		} else {
			_ = server.Serve(s.wrap(l))
		}
	})
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
		h.Close()
	})
	return &site{s, h, addr}
}

var certificate = func() func(testing.TB) tls.Certificate {
	var once sync.Once
	var made tls.Certificate
	return func(t testing.TB) tls.Certificate {
		once.Do(func() {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			template := &x509.Certificate{
				SerialNumber: big.NewInt(1),
				Subject:      pkix.Name{CommonName: "pulse test"},
				IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
				NotAfter:     time.Now().Add(time.Hour),
			}
			der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
			if err != nil {
				t.Fatal(err)
			}
			made = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
		})
		return made
	}
}()

// dial connects with coder/websocket, which is strict about what a server sends.
func (s *site) dial(t testing.TB, o *websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if o == nil {
		o = &websocket.DialOptions{Subprotocols: []string{"pulse.v1.json"}}
	}
	h := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err == nil && s.narrow {
				err = narrow(c)
			}
			return c, err
		},
	}
	t.Cleanup(h.CloseIdleConnections)
	o.HTTPClient = &http.Client{Transport: h}
	scheme := "ws://"
	if s.tls {
		scheme = "wss://"
	}
	c, response, err := websocket.Dial(ctx, scheme+s.addr+"/v1/ws", o)
	if err == nil {
		c.SetReadLimit(-1)
		t.Cleanup(func() { _ = c.CloseNow() })
	}
	return c, response, err
}

func TestConformance(t *testing.T) {
	for _, side := range sides {
		side.narrow = true
		t.Run(side.name, func(t *testing.T) {
			transporttest.Test(t, func(t *testing.T, a transport.Acceptor, o transporttest.Options) transporttest.Peer {
				site := serve(t, side, Config{
					Acceptor:        a,
					MaxMessageBytes: o.MaxMessageBytes,
					WriteTimeout:    o.WriteTimeout,
				})
				c, _, err := site.dial(t, nil)
				if err != nil {
					t.Fatal(err)
				}
				p := &peer{conn: c}
				t.Cleanup(p.closing.Wait)
				t.Cleanup(p.Cut) // before the waiting
				return p
			})
		})
	}
}

// peer is a client for the conformance suite.
type peer struct {
	conn    *websocket.Conn
	closing sync.WaitGroup
}

func (p *peer) Send(b []byte) error {
	return p.conn.Write(context.Background(), websocket.MessageText, b)
}

func (p *peer) Recv(ctx context.Context) ([]byte, error) {
	_, b, err := p.conn.Read(ctx)
	var closed websocket.CloseError
	switch {
	case err == nil:
		return b, nil
	case errors.As(err, &closed):
		return nil, &transporttest.CloseError{Code: uint16(closed.Code), Reason: closed.Reason}
	case ctx.Err() != nil:
		return nil, err
	}
	return nil, &transporttest.CloseError{Code: 1006, Reason: err.Error()}
}

// Close waits for the answer in the background: that is how the client does it.
func (p *peer) Close(code uint16) {
	p.closing.Go(func() { _ = p.conn.Close(websocket.StatusCode(code), "") })
}

func (p *peer) Cut() { _ = p.conn.CloseNow() }
