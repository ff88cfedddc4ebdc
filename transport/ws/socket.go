package ws

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// socket is the network connection below a conn, in one of three kinds: written
// to without blocking, the same under TLS of our own, or foreign.
type socket struct {
	// Immutable.
	net.Conn            // what is read from, and written to until the upgrade is done
	bottom   net.Conn   // what is cut, half closed and in the end written to
	raw      *rawWriter // nothing blocks with it; nil for a foreign connection
	tls      *sealer    // makes TLS records; nil without TLS, or with one not of ours
}

func newSocket(c net.Conn) socket {
	s := socket{Conn: c, bottom: c}
	switch top := c.(type) {
	case *heldConn:
		s.Conn, s.bottom = top.Conn, top.Conn // nothing of it is needed any more
	case *tls.Conn:
		if held, ok := top.NetConn().(*heldConn); ok {
			if raw := newRawWriter(held.Conn); raw != nil {
				s.bottom, s.raw, s.tls = held.Conn, raw, &sealer{top, held}
			}
		}
		return s
	}
	s.raw = newRawWriter(s.bottom)
	return s
}

// leftover is what an attempt has left over, in memory of its own.
type leftover struct {
	b      []byte
	pooled *[]byte // goes back to records; nil: nothing does
}

// attempt writes b as far as the socket takes it without blocking. It returns a
// copy of the rest, nil when there is none. The caller owns the writing side.
func (s *socket) attempt(b []byte) (*leftover, error) {
	if s.raw == nil {
		return &leftover{b: append([]byte(nil), b...)}, nil
	}
	if s.tls == nil {
		n, err := s.raw.write(b)
		if err != nil || n == len(b) {
			return nil, err
		}
		return &leftover{b: append([]byte(nil), b[n:]...)}, nil
	}
	sealed, err := s.tls.seal(b)
	if err != nil || sealed == nil {
		return nil, err
	}
	n, err := s.raw.write(*sealed)
	if err != nil || n == len(*sealed) {
		records.put(sealed)
		return nil, err
	}
	return &leftover{(*sealed)[n:], sealed}, nil
}

// prepare makes a leftover of a piece that will be written by finish. b is given
// away.
func (s *socket) prepare(b []byte) (*leftover, error) {
	if s.tls == nil {
		return &leftover{b: b}, nil
	}
	sealed, err := s.tls.seal(b)
	if err != nil || sealed == nil {
		return nil, err
	}
	return &leftover{*sealed, sealed}, nil
}

// finish writes what is left and waits for the socket, no longer than timeout for
// each time that it takes some. It leaves no deadline behind, which would fail later
// attempts.
func (s *socket) finish(rest *leftover, timeout time.Duration) error {
	if rest == nil {
		return nil
	}
	err := s.finishBytes(rest.b, timeout)
	if rest.pooled != nil {
		records.put(rest.pooled)
	}
	if err != nil {
		return err
	}
	return s.bottom.SetWriteDeadline(time.Time{})
}

func (s *socket) finishBytes(b []byte, timeout time.Duration) error {
	for {
		if err := s.bottom.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		n, err := s.bottom.Write(b)
		// A foreign connection may be broken by a deadline, as TLS is.
		if b = b[n:]; n == 0 || s.raw == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// cut closes the socket. It is for anyone at any time, and idempotent.
func (s *socket) cut() {
	c := s.bottom
	if t, ok := c.(*tls.Conn); ok {
		// Its own Close would first write an alert, and wait for a stuck peer.
		c = t.NetConn()
	}
	// The peer may have closed it already: either way it is closed now.
	_ = c.Close()
}

// shutWrite tells the peer that nothing more comes. The caller owns the writing
// side, and everything was written.
func (s *socket) shutWrite() {
	if s.tls != nil {
		if sealed := s.tls.goodbye(); sealed != nil {
			_, _ = s.raw.write(*sealed) // a courtesy: the close frame has gone out
			records.put(sealed)
		}
	}
	if c, ok := s.bottom.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // fails only where the connection has ended anyway
	}
}

// records are buffers for the TLS records of one write.
var records recordPool

type recordPool struct{ pool sync.Pool }

// maxPooledRecords bounds what one pooled buffer holds on to.
const maxPooledRecords = 128 << 10

func (r *recordPool) get() *[]byte {
	if b, ok := r.pool.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

func (r *recordPool) put(b *[]byte) {
	if cap(*b) <= maxPooledRecords {
		*b = (*b)[:0]
		r.pool.Put(b)
	}
}
