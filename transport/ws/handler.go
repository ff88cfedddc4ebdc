package ws

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/lxzan/gws"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// Config of a Handler.
type Config struct {
	// Acceptor decides about connections. Required.
	Acceptor transport.Acceptor

	// Protocols that clients may name. The first is also that of clients that name
	// none. Default: codec.Protocols().
	Protocols []codec.Protocol

	// MaxMessageBytes is the longest message of a client. A longer one closes its
	// connection as soon as a header, or the sum of fragments, says so. A message in
	// progress takes up to twice its declared length in memory. Default: 64 KiB.
	MaxMessageBytes int

	// WriteTimeout is how long a peer may take to read one parked write, or to
	// answer a close. Default: 10 s.
	WriteTimeout time.Duration

	// ReadBuffer is the size in bytes of each connection's read buffer, which is
	// memory of idle connections too. What is larger is read around it. Default: 512.
	ReadBuffer int

	// Compression of messages.
	Compression Compression

	// Handshakes is what holds for them; the zero value: nothing.
	Handshakes Handshakes

	// Logger is told of panics in a Receiver. Default: none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Protocols == nil {
		c.Protocols = codec.Protocols()
	}
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = 64 << 10
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = 10 * time.Second
	}
	if c.ReadBuffer == 0 {
		c.ReadBuffer = 512
	}
	if c.Compression.Threshold == 0 {
		c.Compression.Threshold = 1 << 10
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Handler serves the WebSocket endpoint, and owns the connections that came from
// it.
type Handler struct {
	// Immutable.
	config    Config
	framings  map[string]*codec.Framing // by the protocol's name
	deflated  map[string]*codec.Framing // likewise, of connections with compression
	upgraders map[flavour]*gws.Upgrader

	mu     sync.Mutex
	conns  map[*conn]struct{} // guarded by mu
	closed bool               // guarded by mu

	readers sync.WaitGroup // incremented with mu held and not closed
}

// NewHandler makes a Handler. It panics without an Acceptor or a protocol.
func NewHandler(c Config) *Handler {
	c = c.withDefaults()
	if c.Acceptor == nil || len(c.Protocols) == 0 {
		panic("ws: a Handler needs an Acceptor and a protocol")
	}
	h := &Handler{
		config:    c,
		framings:  map[string]*codec.Framing{},
		deflated:  map[string]*codec.Framing{},
		upgraders: map[flavour]*gws.Upgrader{},
		conns:     map[*conn]struct{}{},
	}
	var names []string
	packer := &deflater{threshold: c.Compression.Threshold}
	for _, p := range c.Protocols {
		names = append(names, p.Name())
		h.framings[p.Name()] = framingOf(p)
		h.deflated[p.Name()] = newDeflatedFraming(p, packer)
	}
	for _, f := range []flavour{{false, false}, {true, false}, {false, true}, {true, true}} {
		if !f.deflate || c.Compression.Enabled {
			h.upgraders[f] = newUpgrader(c, names, f)
		}
	}
	return h
}

// flavour is what gws has to know beforehand of an answer to a handshake: whether
// it names the protocol, since the client did, and agrees to compression.
type flavour struct{ named, deflate bool }

func newUpgrader(c Config, names []string, f flavour) *gws.Upgrader {
	if !f.named {
		names = nil
	}
	option := &gws.ServerOption{
		SubProtocols:       names,
		ReadMaxPayloadSize: c.MaxMessageBytes,
		CheckUtf8Enabled:   true,
		HandshakeTimeout:   c.WriteTimeout,
		NewSession:         func() gws.SessionStorage { return nil },
	}
	if f.deflate {
		// The limit of what is inflated is kept by events, exactly.
		option.ReadMaxPayloadSize += slack(c.MaxMessageBytes)
		option.PermessageDeflate = inflating()
	}
	return gws.NewUpgrader(events{}, option)
}

// ServeHTTP answers a handshake. It returns as soon as the connection is made, so
// that nothing of the HTTP server stays in memory for it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u, refusal := checkHandshake(r, h.config.Protocols)
	if h.config.Compression.Enabled {
		u.packing = negotiate(r.Header)
	}
	if refusal != nil {
		if refusal.header[0] != "" {
			w.Header().Set(refusal.header[0], refusal.header[1])
		}
		transport.RefuseStatus(w, codec.NewError(codec.CodeBadRequest, refusal.text), refusal.status)
		return
	}
	if h.isClosed() {
		transport.Refuse(w, codec.Retry(codec.CodeDraining, codec.ScopeNode, time.Second, "node is closing"))
		return
	}
	if err := h.config.Acceptor.Admit(r); err != nil {
		transport.Refuse(w, err)
		return
	}
	done, ok := h.config.Handshakes.upgrading(r)
	if !ok {
		h.config.Acceptor.Abandon(r)
		transport.Refuse(w, codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "too many handshakes at once"))
		return
	}
	defer done()
	if !h.open(w, r, u) {
		h.config.Acceptor.Abandon(r)
	}
}

// open takes the HTTP connection over and starts its reader.
func (h *Handler) open(w http.ResponseWriter, r *http.Request, u upgrade) bool {
	netConn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		h.config.Logger.Error("ws: the HTTP server does not give its connection", "err", err)
		transport.Refuse(w, codec.NewError(codec.CodeInternal, "no upgrade possible"))
		return false
	}
	rd := h.newReader(netConn, buffered.Reader, u)
	upgrader := h.upgraders[flavour{u.named, u.packing.deflate}]
	if rd.gws, err = upgrader.UpgradeFromConn(rd, bufio.NewReaderSize(rd, h.config.ReadBuffer), u.request()); err != nil {
		rd.conn.socket.cut() // the client has gone
		return false
	}
	rd.upgraded()
	if !h.register(rd.conn) {
		rd.conn.socket.cut()
		return false
	}
	request := transport.NewRequest(r)
	if u.packing.deflate && !u.packing.noTakeover {
		request.Held = Window
	}
	go func() {
		defer h.forget(rd.conn)
		rd.run(h.config.Acceptor, request, h.config.Logger)
	}()
	return true
}

func (h *Handler) newReader(c net.Conn, buffered *bufio.Reader, u upgrade) *reader {
	rd := &reader{
		conn: &conn{
			framing: h.framings[u.protocol.Name()],
			timeout: h.config.WriteTimeout,
			socket:  newSocket(c),
		},
		check: checker{max: h.config.MaxMessageBytes, deflate: u.packing.deflate},
	}
	if u.packing.deflate {
		rd.conn.framing = h.deflated[u.protocol.Name()]
	}
	if n := buffered.Buffered(); n > 0 {
		// The buffer itself, of 4 KiB, goes: only what a hasty client sent behind its
		// request is kept.
		early, _ := buffered.Peek(n) // cannot fail for what is buffered
		rd.early = append([]byte(nil), early...)
	}
	return rd
}

func (h *Handler) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func (h *Handler) register(c *conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.conns[c] = struct{}{}
	h.readers.Add(1)
	return true
}

func (h *Handler) forget(c *conn) {
	h.mu.Lock()
	delete(h.conns, c)
	h.mu.Unlock()
	h.readers.Done()
}

// Shutdown refuses new connections and waits until those that there are have
// ended; ending them in good order is their sessions' business. When ctx is done
// it cuts what is left. It returns when no goroutine of the Handler is left, with
// ctx's error if it had to cut.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	ended := make(chan struct{})
	go func() { h.readers.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	for _, c := range h.live() {
		c.Close(codec.CauseAbrupt, "")
	}
	<-ended
	return ctx.Err()
}

func (h *Handler) live() []*conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*conn, 0, len(h.conns))
	for c := range h.conns {
		all = append(all, c)
	}
	return all
}

// Close refuses new connections, cuts those that there are, and returns when no
// goroutine of the Handler is left.
func (h *Handler) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = h.Shutdown(ctx) // says only that it had to cut
}
