package ws

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/lxzan/gws"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// reader is the reading half of a connection, and the net.Conn that gws is given:
// gws reads what checker has passed, and what it writes after the 101 is dropped.
// From run on everything is the reader goroutine's.
type reader struct {
	conn     *conn
	gws      *gws.Conn
	receiver transport.Receiver

	check    checker
	early    []byte   // came with the handshake, and is read first
	verdict  *verdict // of checker: nothing more is read
	broken   error    // of the socket: nothing more can be read
	fault    error    // of gws, in what checker does not look at
	open     bool     // the 101 has gone out
	overfull bool     // a message was larger than allowed once it was inflated
}

// After the close frames the peer has this much to be gone.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 4 << 20
)

// upgraded ends the handshake: from now on only conn writes.
func (r *reader) upgraded() {
	r.open = true
	if s := r.conn.socket.tls; s != nil {
		s.held.hold()
	}
}

// run is the reader goroutine.
func (r *reader) run(a transport.Acceptor, request transport.Request, log *slog.Logger) {
	defer r.conn.release()
	r.contained(log, func() {
		r.receiver = a.Accept(r.conn, request)
		r.gws.ReadLoop()
		r.judge()
	})
	if r.receiver != nil {
		r.contained(log, func() { r.receiver.Closed(r.conn.firstCause()) })
	}
	if r.broken == nil {
		r.linger()
	}
}

// contained keeps a panic, of a Receiver or in the reading, within its connection.
func (r *reader) contained(log *slog.Logger, f func()) {
	defer func() {
		if fault := recover(); fault != nil {
			log.Error("ws: panic in the reader of a connection", "panic", fault, "stack", string(debug.Stack()))
			r.end(violation(codec.CauseInternal, "internal error"))
		}
	}()
	f()
}

// judge finds out why the reading ended.
func (r *reader) judge() {
	switch {
	case r.overfull:
		r.end(r.verdict) // gws has gone on with what it had read behind that message
	case errors.Is(r.fault, gws.ErrTextEncoding):
		// First, since gws sees only what came before a verdict of checker.
		r.end(violation(codec.CauseInvalidText, "text is not UTF-8"))
	case inflatesTooFar(r.fault):
		r.end(violation(codec.CauseTooLarge, "message too large"))
	case r.verdict != nil:
		r.end(r.verdict)
	case r.broken != nil:
		r.conn.end(codec.CauseAbrupt, nil)
	default:
		r.end(violation(codec.CauseProtocol, "frame not understood"))
	}
}

// inflatesTooFar: gws gave up inflating a message at its limit.
func inflatesTooFar(fault error) bool {
	var code interface{ Uint16() uint16 }
	return errors.As(fault, &code) && code.Uint16() == codec.CauseTooLarge.CloseCode()
}

func (r *reader) end(v *verdict) { r.conn.end(v.cause, v.reply) }

// linger waits for the close frame to go out, and throws away what still comes
// until the peer is gone: closing the socket over unread bytes would reset it.
func (r *reader) linger() {
	r.conn.flushed()
	s := &r.conn.socket
	s.shutWrite()
	if err := s.bottom.SetReadDeadline(time.Now().Add(lingerTime)); err != nil {
		return // closed already
	}
	_, _ = io.CopyN(io.Discard, s.bottom, lingerBytes) // ends by an error, of whatever kind
}

// Read implements net.Conn for gws.
func (r *reader) Read(p []byte) (int, error) {
	if r.verdict != nil {
		return 0, io.EOF
	}
	n, err := r.fill(p)
	if n == 0 {
		r.broken = err
		return 0, err
	}
	r.receiver.Alive()
	n, r.verdict = r.check.Step(p[:n])
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// fill reads from the socket. An error beside bytes is left for the next time.
func (r *reader) fill(p []byte) (int, error) {
	if len(r.early) > 0 {
		n := copy(p, r.early)
		if r.early = r.early[n:]; len(r.early) == 0 {
			r.early = nil
		}
		return n, nil
	}
	n, err := r.conn.socket.Read(p)
	if s := r.conn.socket.tls; s != nil && s.held.waiting() {
		r.conn.flushRecords()
	}
	return n, err
}

// Write implements net.Conn for gws.
func (r *reader) Write(p []byte) (int, error) {
	if r.open {
		return len(p), nil
	}
	return r.conn.socket.Write(p)
}

// Close implements net.Conn for gws; ending a connection is run's business.
func (r *reader) Close() error { return nil }

func (r *reader) LocalAddr() net.Addr                { return r.conn.socket.LocalAddr() }
func (r *reader) RemoteAddr() net.Addr               { return r.conn.socket.RemoteAddr() }
func (r *reader) SetDeadline(t time.Time) error      { return r.conn.socket.SetDeadline(t) }
func (r *reader) SetReadDeadline(t time.Time) error  { return r.conn.socket.SetReadDeadline(t) }
func (r *reader) SetWriteDeadline(t time.Time) error { return r.conn.socket.SetWriteDeadline(t) }

// events are gws's calls, all from ReadLoop. The connection is found through the
// net.Conn that gws was given, since one handler serves all.
type events struct{ gws.BuiltinEventHandler }

func (events) OnMessage(socket *gws.Conn, m *gws.Message) {
	defer m.Close()
	r := socket.NetConn().(*reader)
	if r.conn.over.Load() || r.overfull {
		return // the session is gone; only the peer's close is waited for
	}
	if len(m.Bytes()) > r.check.max { // inflated
		r.overfull = true
		r.verdict = violation(codec.CauseTooLarge, "message too large")
		return
	}
	// A copy of its exact size: gws's buffer has up to twice that, which would stay
	// in memory as long as anything of the message does.
	r.receiver.Message(append([]byte(nil), m.Bytes()...), m.Opcode == gws.OpcodeBinary)
}

func (events) OnPing(socket *gws.Conn, payload []byte) {
	socket.NetConn().(*reader).conn.pong(payload)
}

func (events) OnPong(*gws.Conn, []byte) {}

func (events) OnClose(socket *gws.Conn, err error) {
	socket.NetConn().(*reader).fault = err
}
