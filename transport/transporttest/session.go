package transporttest

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// limit is how long anything may take that must happen at all.
const limit = 20 * time.Second

// acceptor admits everybody and hands the sessions out.
type acceptor struct {
	sessions chan *session
	prepare  func(*session) // sees the session before anything is read
}

func newAcceptor(prepare func(*session)) *acceptor {
	return &acceptor{sessions: make(chan *session, 16), prepare: prepare}
}

func (a *acceptor) Admit(*http.Request) *codec.Error { return nil }
func (a *acceptor) Abandon(*http.Request)            {}

func (a *acceptor) Accept(c transport.Conn, r transport.Request) transport.Receiver {
	s := &session{
		conn:    c,
		request: r,
		inbox:   make(chan []byte, 1<<14),
		closed:  make(chan codec.Cause, 2),
		ready:   make(chan error, 1<<14),
	}
	c.OnReady(func(err error) { s.readies.Add(1); s.ready <- err })
	if a.prepare != nil {
		a.prepare(s)
	}
	a.sessions <- s
	return s
}

// session records what a connection does, as the engine's end of it.
type session struct {
	conn    transport.Conn
	request transport.Request
	inbox   chan []byte
	closed  chan codec.Cause
	ready   chan error
	alive   atomic.Int64
	readies atomic.Int64
	parks   int64 // of write's caller

	onMessage func([]byte) // set in prepare, instead of inbox
}

func (s *session) Message(b []byte, binary bool) {
	if binary {
		panic("transporttest: binary message on a text protocol")
	}
	if s.onMessage != nil {
		s.onMessage(b)
		return
	}
	s.inbox <- b
}

func (s *session) Alive()                   { s.alive.Add(1) }
func (s *session) Closed(cause codec.Cause) { s.closed <- cause }

// frame encodes documents as the connection's framing does.
func (s *session) frame(docs ...[]byte) []byte {
	var b []byte
	for _, doc := range docs {
		b = s.conn.Framing().Wrap(b, doc)
	}
	return b
}

// write writes and waits until it is written, as a drain does that parks.
func (s *session) write(t *testing.T, b []byte) {
	t.Helper()
	done, err := s.conn.Write(b)
	if err != nil {
		t.Fatalf("write: %v", err)
	}
	if done {
		return
	}
	s.parks++
	if err := within(t, s.ready, "ready"); err != nil {
		t.Fatalf("parked write: %v", err)
	}
}

// buffered is more than a connection may hold between its ends.
const buffered = 2 << 20

// park writes more than the connection can hold, so that the write stays parked until
// the peer reads. It returns the documents that were written.
func (s *session) park(t *testing.T) (docs [][]byte) {
	t.Helper()
	for size := 0; size < buffered; size += 60 << 10 {
		docs = append(docs, document(len(docs), 60<<10))
	}
	if done, err := s.conn.Write(s.frame(docs...)); done || err != nil {
		t.Fatalf("a write of %d bytes: %v, %v; want it parked", buffered, done, err)
	}
	s.parks++
	return docs
}

// end waits for Closed and checks its cause.
func (s *session) end(t *testing.T, want codec.Cause) {
	t.Helper()
	if got := within(t, s.closed, "Closed"); got != want {
		t.Errorf("Closed(%v), want %v", got, want)
	}
}

// within waits for what must come.
func within[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(limit):
		t.Fatalf("%s did not come within %v", what, limit)
		panic("unreachable")
	}
}

// group waits for goroutines of a test, within the limit.
func group(t *testing.T, wg *sync.WaitGroup, what string) {
	t.Helper()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	within(t, done, what)
}
