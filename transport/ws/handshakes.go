package ws

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Gate lets few handshakes be computed at once, and those who wait in fairly by
// source. Release is called once for each Acquire without an error.
type Gate interface {
	Acquire(ctx context.Context, source string) error
	Release()
}

// Handshakes is what holds for connections before their first request is there.
type Handshakes struct {
	// Timeout is for everything from accept to the end of the handshake, of TLS and of
	// the protocol. It needs ConnContext in the server, and Arrived in its handler.
	// 0: no limit.
	Timeout time.Duration

	// Gate bounds what is computed at once: handshakes of TLS, by a Listener, and of
	// WebSocket, by a Handler. Nil: nothing does.
	Gate Gate
	// Source says who an address, host:port, counts as for Gate.
	Source func(address string) string
}

// Listener holds the connections of l to h, and makes those under TLS writable without
// blocking: it goes below TLS, as in
//
//	server.ServeTLS(h.Listener(l), certFile, keyFile)
//
// Without it, or with anything in between, TLS works as well but costs a goroutine for
// every write.
func (h *Handshakes) Listener(l net.Listener) net.Listener { return listener{l, h} }

// upgrading lets an upgrade begin; false: not within the request's time.
func (h *Handshakes) upgrading(r *http.Request) (done func(), ok bool) {
	if h.Gate == nil {
		return func() {}, true
	}
	if h.Gate.Acquire(r.Context(), h.Source(r.RemoteAddr)) != nil {
		return nil, false
	}
	return h.Gate.Release, true
}

type connKey struct{}

// ConnContext is for http.Server: it lets Arrived find the connection of a request.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if h, ok := c.(*heldConn); ok {
		return context.WithValue(ctx, connKey{}, h.arrival)
	}
	return ctx
}

// Arrived says that a request is there whole but for its body; ctx is the request's.
// The first of a connection gets the instant at which its handshake has to be done;
// false: there is none.
func Arrived(ctx context.Context) (due time.Time, ok bool) {
	if a, _ := ctx.Value(connKey{}).(*arrival); a != nil {
		return a.end()
	}
	return time.Time{}, false
}

// arrival is a connection between accept and its first request. Its reads fail when it
// is due, whatever deadlines the server sets meanwhile, and what TLS computes of a
// record of the client's handshake is computed with a place at the gate: from when the
// record has been read until something more is read or written. So no place is held
// while the network or the client is waited for.
type arrival struct {
	// immutable
	conn net.Conn
	h    *Handshakes
	due  time.Time // zero: never

	scan recordScan // the reader's

	// guarded by mu; over is read without it too
	mu     sync.Mutex
	over   atomic.Bool
	inside bool               // has a place
	wanted time.Time          // deadline of reads that the server has set
	cancel context.CancelFunc // of who waits for a place; nil: nobody does
}

func newArrival(c net.Conn, h *Handshakes) *arrival {
	a := &arrival{conn: c, h: h}
	if h.Timeout > 0 {
		a.due = time.Now().Add(h.Timeout)
		_ = c.SetReadDeadline(a.due) // fails for what is closed already
	}
	return a
}

// end ends it: a request is there, or the connection is closed.
func (a *arrival) end() (due time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over.Swap(true) {
		return time.Time{}, false
	}
	a.leave()
	if a.cancel != nil {
		a.cancel()
	}
	if !a.due.IsZero() {
		_ = a.conn.SetReadDeadline(a.wanted)
	}
	return a.due, !a.due.IsZero()
}

// deadline is what becomes of one that the server sets for reads.
func (a *arrival) deadline(t time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over.Load() || a.due.IsZero() {
		return t
	}
	if a.wanted = t; t.IsZero() || t.After(a.due) {
		return a.due
	}
	return t
}

// moved gives the place back: what was computed is, since more is read or written.
func (a *arrival) moved() {
	if a.h.Gate != nil {
		a.mu.Lock()
		a.leave()
		a.mu.Unlock()
	}
}

// leave is moved, with mu held.
func (a *arrival) leave() {
	if a.inside {
		a.inside = false
		a.h.Gate.Release()
	}
}

// read waits for a place if the client's handshake has gone on with b.
func (a *arrival) read(b []byte) error {
	if a.h.Gate == nil || !a.scan.step(b) {
		return nil
	}
	a.mu.Lock()
	if a.over.Load() {
		a.mu.Unlock()
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	if !a.due.IsZero() {
		ctx, cancel = context.WithDeadline(context.Background(), a.due)
	}
	defer cancel()
	a.cancel = cancel
	a.mu.Unlock()

	err := a.h.Gate.Acquire(ctx, a.h.Source(a.conn.RemoteAddr().String()))

	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel = nil
	if err == nil {
		if a.inside = !a.over.Load(); !a.inside {
			a.h.Gate.Release()
		}
	}
	return err
}

// recordScan follows the records of TLS that a client sends. Pure.
type recordScan struct {
	head  [5]byte
	have  int // of head
	left  int // of the record
	begun bool
	none  bool // this is no TLS
}

// handshakeRecord is the type of records of a handshake that are not encrypted: those
// of a client which cost the server something.
const handshakeRecord = 22

// step passes b on; true: a record of a handshake has ended in it.
func (s *recordScan) step(b []byte) (handshake bool) {
	for len(b) > 0 && !s.none {
		if s.have < len(s.head) {
			n := copy(s.head[s.have:], b)
			s.have += n
			b = b[n:]
			if !s.begun {
				s.begun, s.none = true, s.head[0] != handshakeRecord
			}
			if s.have < len(s.head) {
				break
			}
			s.left = int(s.head[3])<<8 | int(s.head[4])
		}
		n := min(s.left, len(b))
		s.left -= n
		b = b[n:]
		if s.left == 0 {
			handshake = handshake || s.head[0] == handshakeRecord
			s.have = 0
		}
	}
	return handshake
}
