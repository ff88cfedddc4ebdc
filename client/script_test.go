package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/codec"
)

// script is a server that does what its test says, one function a connection.
type script struct {
	t    testing.TB
	in   codec.Codec
	url  string
	acts chan *act
	deaf bool // reads nothing
}

// act is one connection to a script. Its test plays the server's side.
type act struct {
	t    testing.TB
	in   codec.Codec
	ws   *websocket.Conn
	sent chan read
	done chan struct{}
}

// read is what the client sent, or how it ended.
type read struct {
	kind    websocket.MessageType
	message []byte
	err     error
}

// play runs a server until the test ends, and checks then that no goroutine is left.
func play(t testing.TB, in codec.Codec) *script {
	t.Helper()
	return playWith(t, in, nil)
}

// playWith runs a server whose upgrades before may refuse.
func playWith(t testing.TB, in codec.Codec, before func(http.ResponseWriter, *http.Request) (refused bool)) *script {
	t.Helper()
	left := goleak.IgnoreCurrent()
	s := &script{t: t, in: in, acts: make(chan *act, 100)}
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && before(w, r) {
			return
		}
		if r.URL.Path != "/v1/ws" || r.URL.RawQuery != "" {
			t.Errorf("asked for %s", r.URL)
		}
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"pulse.v1." + in.String()}})
		if err != nil {
			t.Error(err)
			return
		}
		a := &act{t: t, in: in, ws: ws, sent: make(chan read, 1000), done: make(chan struct{})}
		s.acts <- a
		if !s.deaf {
			go a.reads()
		}
		select {
		case <-a.done:
		case <-ended:
		}
		ws.CloseNow()
	}))
	s.url = "ws" + strings.TrimPrefix(server.URL, "http")
	t.Cleanup(func() {
		close(ended)
		server.Close()
		if err := goleak.Find(left); err != nil {
			t.Error(err)
		}
	})
	return s
}

// next is the next connection.
func (s *script) next() *act {
	s.t.Helper()
	select {
	case a := <-s.acts:
		return a
	case <-soon(s.t).Done():
		s.t.Fatal("nobody connects")
		return nil
	}
}

// greet takes the hello of the next connection and welcomes it, with every room
// that it names joined at its position, or at (ep, 0).
func (s *script) greet(change func(*codec.Welcome)) (*act, *codec.Hello) {
	s.t.Helper()
	a := s.next()
	hello := expect[*codec.Hello](a)
	a.welcome(hello, change)
	return a, hello
}

func (a *act) welcome(hello *codec.Hello, change func(*codec.Welcome)) {
	w := &codec.Welcome{
		Session: "s1", Resume: "sealed", Tenant: "acme", Subject: "alice", Node: "n1", Codec: a.in, Live: true,
		Ping: 25e9, Pong: 10e9, MaxMessageBytes: 64 << 10, MaxFrameBytes: 512 << 10, Resumed: hello.Resume == "sealed",
	}
	for _, r := range hello.Rooms {
		w.Rooms = append(w.Rooms, codec.WelcomeRoom{Room: r.Room, OK: joinedAt(&r.Join)})
	}
	if change != nil {
		change(w)
	}
	a.say(w)
}

func joinedAt(j *codec.Join) *codec.JoinResult {
	r := &codec.JoinResult{Room: j.Room, Position: j.Position, Recovered: j.HasPosition}
	if !j.HasPosition {
		r.Position = codec.Position{Epoch: "ep"}
	}
	return r
}

func (a *act) kind() websocket.MessageType {
	if a.in == codec.Msgpack {
		return websocket.MessageBinary
	}
	return websocket.MessageText
}

func (a *act) say(d codec.Document) { a.t.Helper(); a.raw(codec.Protocols()[a.in].Append(nil, d)) }

func (a *act) raw(message []byte) {
	a.t.Helper()
	if err := a.ws.Write(soon(a.t), a.kind(), message); err != nil {
		a.t.Error(err)
	}
}

// ok answers a request.
func (a *act) ok(id uint64, r codec.Result) { a.t.Helper(); a.say(&codec.Reply{ID: id, OK: r}) }

// event says a buffered event of a room at (ep, offset), or with 0 another one.
func (a *act) event(room string, offset uint64) {
	a.t.Helper()
	e := codec.NewEvent(codec.Topic{Room: room}, "said", codec.Data{}, codec.Origin{EID: fmt.Sprint("e", offset)})
	if offset > 0 {
		e = e.At(codec.Position{Epoch: "ep", Offset: offset})
	}
	a.say(e)
}

// expect takes the next request, which must be of type R.
func expect[R codec.Request](a *act) R {
	a.t.Helper()
	request, err := a.request()
	if err != nil {
		a.t.Fatal(err)
	}
	r, ok := request.(R)
	if !ok {
		a.t.Fatalf("%T: %+v", request, request)
	}
	return r
}

// reads answers closes and pings too.
func (a *act) reads() {
	for {
		kind, message, err := a.ws.Read(context.Background())
		a.sent <- read{kind, message, err}
		if err != nil {
			return
		}
	}
}

func (a *act) request() (codec.Request, error) {
	var r read
	select {
	case r = <-a.sent:
	case <-soon(a.t).Done():
		a.t.Fatal("the client says nothing")
	}
	if r.err != nil {
		return nil, r.err
	}
	if r.kind != a.kind() {
		return nil, errors.New("a message of the other kind")
	}
	list, err := codec.Protocols()[a.in].Decode(nil, r.message)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// close ends the connection with a code, or with 0 by cutting it.
func (a *act) close(code int, reason string) {
	a.t.Helper()
	if code != 0 {
		// The client may answer, or be gone already.
		_ = a.ws.Close(websocket.StatusCode(code), reason)
	}
	a.ws.CloseNow()
	close(a.done)
}

// closed waits for the client's close, and returns its code; -1 when it just went.
func (a *act) closed() int {
	a.t.Helper()
	for {
		if _, err := a.request(); err != nil {
			return int(websocket.CloseStatus(err))
		}
	}
}
