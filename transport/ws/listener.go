package ws

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// listener is what Handshakes.Listener makes.
type listener struct {
	net.Listener
	handshakes *Handshakes
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &heldConn{Conn: c, arrival: newArrival(c, l.handshakes)}, nil
}

// heldConn is the connection below a tls.Conn. Once held, it keeps what TLS
// writes instead of writing it, so that a write of TLS never blocks.
type heldConn struct {
	// immutable
	net.Conn
	arrival *arrival

	some atomic.Bool // kept is not nil; for the reader, who asks with each read

	mu    sync.Mutex // never held over I/O
	held  bool       // guarded by mu
	kept  *[]byte    // guarded by mu; nil: nothing
	allow int        // guarded by mu; how much may be kept
}

// maxOwnRecords is how much TLS may write of its own accord (answers to key
// updates, alerts) while the socket takes nothing.
const maxOwnRecords = 16 << 10

var errHeld = errors.New("ws: too many TLS records of its own")

func (h *heldConn) Read(b []byte) (int, error) {
	if h.arrival.over.Load() {
		return h.Conn.Read(b)
	}
	h.arrival.moved()
	n, err := h.Conn.Read(b)
	if n > 0 {
		if refused := h.arrival.read(b[:n]); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

func (h *heldConn) Close() error {
	h.arrival.end()
	return h.Conn.Close()
}

// SetReadDeadline and SetDeadline cannot put off what is due.
func (h *heldConn) SetReadDeadline(t time.Time) error {
	return h.Conn.SetReadDeadline(h.arrival.deadline(t))
}

func (h *heldConn) SetDeadline(t time.Time) error {
	return errors.Join(h.SetWriteDeadline(t), h.SetReadDeadline(t))
}

func (h *heldConn) Write(b []byte) (int, error) {
	if !h.arrival.over.Load() {
		h.arrival.moved()
	}
	h.mu.Lock()
	if !h.held {
		h.mu.Unlock()
		return h.Conn.Write(b)
	}
	defer h.mu.Unlock()
	if h.kept == nil {
		h.kept = records.get()
	}
	if len(*h.kept)+len(b) > h.allow {
		return 0, errHeld
	}
	*h.kept = append(*h.kept, b...)
	h.some.Store(true)
	return len(b), nil
}

// SetWriteDeadline is for what TLS writes itself. Once held that takes no time, and
// the deadline that TLS leaves behind when it says goodbye would fail the writing
// of what was kept.
func (h *heldConn) SetWriteDeadline(t time.Time) error {
	h.mu.Lock()
	held := h.held
	h.mu.Unlock()
	if held {
		return nil
	}
	return h.Conn.SetWriteDeadline(t)
}

// hold begins the keeping. No write may be going on.
func (h *heldConn) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held, h.allow = true, maxOwnRecords
}

// permit lets n bytes of payload through as records, beside TLS's own.
func (h *heldConn) permit(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// The smallest record that TLS chooses carries about a kilobyte.
	h.allow = n + n/8 + maxOwnRecords
}

// take hands over what was kept, in order; nil: nothing. The caller gives it back
// to records.
func (h *heldConn) take() *[]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.kept
	h.kept, h.allow = nil, maxOwnRecords
	h.some.Store(false)
	return kept
}

func (h *heldConn) waiting() bool { return h.some.Load() }

// sealer makes TLS records of bytes. Only the owner of the writing side calls it,
// while TLS may add records of its own when it reads.
type sealer struct {
	tls  *tls.Conn
	held *heldConn
}

// seal returns the records of b behind those that TLS wrote of its own accord.
func (s *sealer) seal(b []byte) (*[]byte, error) {
	if len(b) > 0 {
		s.held.permit(len(b))
		if _, err := s.tls.Write(b); err != nil {
			return nil, err
		}
	}
	return s.held.take(), nil
}

// goodbye returns the record that ends a TLS stream, so that the peer can tell
// the end from a cut.
func (s *sealer) goodbye() *[]byte {
	_ = s.tls.CloseWrite() // fails only where the stream has ended anyway
	return s.held.take()
}
