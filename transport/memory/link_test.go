package memory_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
	"github.com/yaza-dev/pulse/transport/memory"
)

// server is the simplest engine: one connection, recorded.
type server struct {
	refusal *codec.Error
	conn    transport.Conn
	request transport.Request
	read    []string
	binary  []bool
	ready   []error
	closed  []codec.Cause
}

func (s *server) Admit(*http.Request) *codec.Error { return s.refusal }
func (s *server) Abandon(*http.Request)            {}
func (s *server) Accept(c transport.Conn, r transport.Request) transport.Receiver {
	s.conn, s.request = c, r
	c.OnReady(func(err error) { s.ready = append(s.ready, err) })
	return s
}
func (s *server) Message(b []byte, binary bool) {
	s.read, s.binary = append(s.read, string(b)), append(s.binary, binary)
}
func (s *server) Alive()                   {}
func (s *server) Closed(cause codec.Cause) { s.closed = append(s.closed, cause) }

func (s *server) frame(doc string) []byte { return s.conn.Framing().Wrap(nil, []byte(doc)) }

func TestRefusalIsTheClientsError(t *testing.T) {
	refusal := codec.NewError(codec.CodeForbidden, "no")
	c := memory.Dial(&server{refusal: refusal}, codec.Protocols()[0], memory.Options{})
	<-c.Done()
	if _, err := c.Recv(context.Background()); err != error(refusal) {
		t.Errorf("Recv: %v", err)
	}
	if err := c.Send(nil); err != error(refusal) {
		t.Errorf("Send: %v", err)
	}
	c.Close(1000)
	c.Cut()
}

func TestRequestIsSeenByTheAcceptor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		p := codec.Protocols()[1]
		c := memory.Dial(s, p, memory.Options{Header: http.Header{"Authorization": {"Bearer x"}}})
		if err := c.SendKind([]byte("x"), false); err != nil {
			t.Fatal(err)
		}
		if err := c.Send([]byte("y")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := s.request; got.Header.Get("Authorization") != "Bearer x" || !got.Remote.IsLoopback() {
			t.Errorf("request %+v", got)
		}
		if s.conn.Framing() != memory.FramingOf(p) || s.conn.Framing().Protocol != p {
			t.Error("the framing is not the protocol's shared one")
		}
		if len(s.binary) != 2 || s.binary[0] || !s.binary[1] {
			t.Errorf("kinds %v", s.binary)
		}
		c.Cut()
		<-c.Done()
	})
}

// The clock of a bubble stands still while anything runs, so that timeouts are
// exact and a test of minutes takes none.
func TestTimeoutsAreExactInABubble(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*server)
		want codec.Cause
	}{
		{"parked write", func(s *server) {
			if done, err := s.conn.Write(s.frame("longer than the window")); done || err != nil {
				t.Errorf("Write: %v, %v", done, err)
			}
		}, codec.CauseOverload},
		{"unanswered close", func(s *server) { s.conn.Close(codec.CauseTimeout, "") }, codec.CauseTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(server)
				c := memory.Dial(s, codec.Protocols()[0], memory.Options{Window: 8, WriteTimeout: time.Minute})
				synctest.Wait()
				start := time.Now()
				test.do(s)
				<-c.Done()
				if took := time.Since(start); took != time.Minute {
					t.Errorf("cut after %v", took)
				}
				if len(s.closed) != 1 || s.closed[0] != test.want {
					t.Errorf("Closed %v, want %v once", s.closed, test.want)
				}
			})
		})
	}
}

func TestWindowParksAtTheByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		c := memory.Dial(s, codec.Protocols()[0], memory.Options{Window: 10})
		synctest.Wait()
		if done, err := s.conn.Write(s.frame("123456")); !done || err != nil {
			t.Fatalf("a write that fills the window: %v, %v", done, err)
		}
		if done, err := s.conn.Write(s.frame("")); done || err != nil {
			t.Fatalf("a write beyond the window: %v, %v", done, err)
		}
		if len(s.ready) != 0 {
			t.Fatal("ready before anything was read")
		}
		for _, want := range []string{"123456", ""} {
			if got, err := c.Recv(t.Context()); err != nil || string(got) != want {
				t.Fatalf("received %q, %v; want %q", got, err, want)
			}
		}
		if len(s.ready) != 1 || s.ready[0] != nil {
			t.Fatalf("ready %v, want once without error", s.ready)
		}
		c.Cut()
		<-c.Done()
		var closed *memory.CloseError
		if _, err := c.Recv(t.Context()); !errors.As(err, &closed) || closed.Code != 1006 {
			t.Errorf("Recv of a cut link: %v", err)
		}
	})
}
