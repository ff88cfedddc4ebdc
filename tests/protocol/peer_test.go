package protocol

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/transport/ws"
)

// maxMessage is the node's limit of a client's message.
const maxMessage = 64 << 10

// node is a running node.
type node struct {
	addr  string
	tls   bool
	rooms atomic.Int32
}

type anyone struct{}

func (anyone) Authenticate(context.Context, auth.Credentials) (*auth.Identity, error) {
	return &auth.Identity{Tenant: "acme", Subject: "alice", Grants: auth.AllowAll()}, nil
}

// onBoth runs a test against a node over TCP and one over TLS.
func onBoth(t *testing.T, test func(t *testing.T, n *node)) {
	for _, secure := range []bool{false, true} {
		name := "tcp"
		if secure {
			name = "tls"
		}
		t.Run(name, func(t *testing.T) { test(t, start(t, secure)) })
	}
}

func start(t *testing.T, secure bool) *node {
	t.Helper()
	before := goleak.IgnoreCurrent()
	e, err := engine.Start(t.Context(), engine.Config{
		Kinds:          []room.Kind{{Name: room.Any}, {Name: "vault", Events: map[string]room.EventPolicy{"*": {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive, Secret: true}}}},
		Authenticator:  anyone{},
		Limits:         engine.Limits{MaxMessageBytes: maxMessage, WriteTimeout: 5 * time.Second, MaxUnauthenticated: 10_000, MaxUnauthenticatedPerAddress: 10_000},
		TenantDefaults: engine.TenantLimits{SessionRate: backpressure.Rate{Messages: -1, Bytes: -1}},
		Compression:    ws.Compression{Enabled: true, Threshold: 64},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: e.Handler(), ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if secure {
			server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate(t)}, NextProtos: []string{"http/1.1"}}
			_ = server.ServeTLS(new(ws.Handshakes).Listener(l), "", "") // says that it was closed
		} else {
			_ = server.Serve(l)
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
	return &node{addr: l.Addr().String(), tls: secure}
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pulse"}, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// peer is a client that writes what bytes it likes.
type peer struct {
	t testing.TB
	net.Conn
	r       *bufio.Reader
	deflate bool // was agreed
	msgpack bool
	room    string
	id      int
}

func (n *node) connect(t testing.TB) *peer {
	t.Helper()
	c, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	if n.tls {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &peer{t: t, Conn: c, r: bufio.NewReader(c)}
}

const request = "GET /v1/ws HTTP/1.1\r\nHost: pulse.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// handshake connects and shakes hands with an offer of compression (empty: none).
func (n *node) handshake(t testing.TB, subprotocol, offer string) *peer {
	t.Helper()
	p := n.connect(t)
	head := request + "Sec-WebSocket-Protocol: " + subprotocol + "\r\n"
	if offer != "" {
		head += "Sec-WebSocket-Extensions: " + offer + "\r\n"
	}
	p.send([]byte(head + "\r\n"))
	response, err := http.ReadResponse(p.r, &http.Request{Method: http.MethodGet})
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("handshake: %v, %v", response, err)
	}
	if got := response.Header.Get("Sec-Websocket-Accept"); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" { // of RFC 6455, section 1.3
		t.Fatalf("Sec-WebSocket-Accept: %q", got)
	}
	p.deflate = response.Header.Get("Sec-Websocket-Extensions") != ""
	p.msgpack = strings.HasSuffix(subprotocol, "msgpack")
	return p
}

// open connects, shakes hands and says hello.
func (n *node) open(t testing.TB, subprotocol, offer string) *peer {
	t.Helper()
	p := n.handshake(t, subprotocol, offer)
	p.room = fmt.Sprintf("echo:%04d", n.rooms.Add(1)) // its own: it hears nobody else
	hello := []byte(`{"t":"hello","rooms":[{"room":"` + p.room + `"}]}`)
	op := byte(text)
	if p.msgpack {
		op = bin
		hello = []byte("\x82\xa1t\xa5hello\xa5rooms\x91\x81\xa4room\xa9" + p.room)
	}
	p.send(frame(fin|op, hello))
	if f := p.read(); f.op != op || !bytes.Contains(f.payload, []byte("welcome")) {
		t.Fatalf("no welcome: %+v", f)
	}
	return p
}

func (p *peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatalf("write: %v", err)
	}
}

// Bits and opcodes of a frame's first byte.
const (
	fin  = 0x80
	rsv1 = 0x40
	rsv2 = 0x20
	rsv3 = 0x10

	cont  = 0
	text  = 1
	bin   = 2
	cls   = 8
	ping  = 9
	pong  = 10
	noFin = 0
)

var mask = [4]byte{0x37, 0xFA, 0x21, 0x3D}

// frame is one frame of a client, in its shortest form.
func frame(head byte, payload []byte) []byte {
	n := len(payload)
	var length []byte
	switch {
	case n < 126:
		length = []byte{byte(n)}
	case n < 1<<16:
		length = binary.BigEndian.AppendUint16([]byte{126}, uint16(n))
	default:
		length = binary.BigEndian.AppendUint64([]byte{127}, uint64(n))
	}
	return frameWith(head, length, payload)
}

// frameWith has its length as given.
func frameWith(head byte, length, payload []byte) []byte {
	b := append([]byte{head}, length...)
	b[1] |= 0x80
	b = append(b, mask[:]...)
	for i, c := range payload {
		b = append(b, c^mask[i%4])
	}
	return b
}

func closing(code uint16, reason string) []byte {
	return frame(fin|cls, append(binary.BigEndian.AppendUint16(nil, code), reason...))
}

// got is one frame of the server.
type got struct {
	op      byte
	packed  bool
	payload []byte
}

var errEnd = errors.New("the connection has ended")

// next reads a frame of the server, which must keep the RFC itself.
func (p *peer) next() (got, error) {
	p.t.Helper()
	var head [2]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		return got{}, errEnd
	}
	f := got{op: head[0] & 15, packed: head[0]&rsv1 != 0}
	n := uint64(head[1])
	switch n {
	case 126:
		var b [2]byte
		p.full(b[:])
		if n = uint64(binary.BigEndian.Uint16(b[:])); n < 126 {
			p.t.Fatal("the server's length is not minimal")
		}
	case 127:
		var b [8]byte
		p.full(b[:])
		if n = binary.BigEndian.Uint64(b[:]); n < 1<<16 {
			p.t.Fatal("the server's length is not minimal")
		}
	}
	switch {
	case head[0]&fin == 0, head[0]&(rsv2|rsv3) != 0, f.packed && (!p.deflate || f.op > bin), head[1]&0x80 != 0, f.op > bin && n > 125:
		p.t.Fatalf("the server's frame % X is not in order", head)
	}
	f.payload = make([]byte, n)
	p.full(f.payload)
	return f, nil
}

func (p *peer) full(b []byte) {
	p.t.Helper()
	if _, err := io.ReadFull(p.r, b); err != nil {
		p.t.Fatalf("a frame broke off: %v", err)
	}
}

func (p *peer) read() got {
	p.t.Helper()
	f, err := p.next()
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

// pinging is a message whose answer shows that it got through, n bytes long; 0: as
// short as can be.
func (p *peer) pinging(n int) []byte {
	p.id++
	doc := fmt.Sprintf(`{"t":"ping","id":%d}`, p.id)
	return append([]byte(doc), bytes.Repeat([]byte(" "), max(0, n-len(doc)))...)
}

// ponged reads up to the pong of the last pinging, and returns the frames before
// it.
func (p *peer) ponged() (before []got) {
	p.t.Helper()
	for {
		f, err := p.next()
		if err != nil || f.op == cls {
			p.t.Fatalf("closed instead of answered: %v % X, after %v", err, f.payload, before)
		}
		var doc struct {
			T  string
			ID int
		}
		if f.op == text && json.Unmarshal(p.inflated(f), &doc) == nil && doc.T == "pong" && doc.ID == p.id {
			return before
		}
		before = append(before, f)
	}
}

// alive sends a ping of its own and waits for its answer.
func (p *peer) alive() []got {
	p.t.Helper()
	p.send(frame(fin|text, p.pinging(0)))
	return p.ponged()
}

// ended reads up to the server's close frame, which must be its last, and the end
// of the connection. 0: without a code.
func (p *peer) ended() (code uint16, before []got) {
	p.t.Helper()
	for {
		f, err := p.next()
		if err != nil {
			p.t.Fatalf("%v without a close frame", err)
		}
		if f.op != cls {
			before = append(before, f)
			continue
		}
		if len(f.payload) >= 2 {
			code = binary.BigEndian.Uint16(f.payload)
		}
		if rest, err := io.ReadAll(p.r); len(rest) > 0 {
			p.t.Fatalf("% X after the close frame, %v", rest, err)
		}
		return code, before
	}
}

// script is one case: what is sent, and what must come of it.
type script struct {
	number string
	rule   string
	send   []byte
	chop   int    // bytes of a write; 0: all at once
	close  uint16 // 0: the connection goes on
	pongs  []string
}

func (n *node) run(t *testing.T, scripts []script) {
	for _, s := range scripts {
		t.Run(s.number+" "+s.rule, func(t *testing.T) {
			t.Parallel()
			p := n.open(t, "pulse.v1.json", "")
			p.play(s)
		})
	}
}

func (p *peer) play(s script) {
	p.t.Helper()
	step := len(s.send)
	if s.chop > 0 {
		step = s.chop
	}
	for b := s.send; len(b) > 0; {
		n := min(step, len(b))
		if _, err := p.Write(b[:n]); err != nil {
			break // the server has closed it: what it said is to be read
		}
		b = b[n:]
	}
	var frames []got
	if s.close != 0 {
		var code uint16
		if code, frames = p.ended(); code != s.close {
			p.t.Errorf("closed %d, want %d", code, s.close)
		}
	} else {
		frames = p.alive()
	}
	var pongs []string
	for _, f := range frames {
		if f.op == pong {
			pongs = append(pongs, string(f.payload))
		}
	}
	if fmt.Sprint(pongs) != fmt.Sprint(s.pongs) {
		p.t.Errorf("pongs %q, want %q", pongs, s.pongs)
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
