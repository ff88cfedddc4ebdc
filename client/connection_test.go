package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

func TestCloseCodes(t *testing.T) {
	for _, code := range []int{0, 1001, 1011, 1012, 1013, 3000, 4000, 4500, 4529, 4555} {
		t.Run(fmt.Sprint(code, " comes back"), func(t *testing.T) {
			s := play(t, codec.JSON)
			c := start(t, s.url, "alice", nil)
			a, hello := s.greet(nil)
			if hello.Resume != "" || hello.Token != "acme/alice" {
				t.Errorf("%+v", hello)
			}
			if code == 1012 {
				a.close(code, "1-3")
			} else {
				a.close(code, "because")
			}
			b, hello := s.greet(nil)
			if hello.Resume != "sealed" {
				t.Errorf("%+v", hello)
			}
			b.event("chat", 1) // of no room of ours
			if session, err := c.Session(soon(t)); err != nil || !session.Resumed {
				t.Errorf("%+v, %v", session, err)
			}
		})
	}
	for _, code := range []int{1000, 1002, 1003, 1007, 1008, 1009, 1010, 4400, 4403, 4409, 4444} {
		t.Run(fmt.Sprint(code, " stays closed"), func(t *testing.T) {
			s := play(t, codec.JSON)
			c := start(t, s.url, "alice", nil)
			a, _ := s.greet(nil)
			if _, err := c.Session(soon(t)); err != nil {
				t.Fatal(err)
			}
			a.close(code, "because")
			err := closedFor(t, c)
			var end *client.CloseError
			if !errors.As(err, &end) || end.Code != code || end.Reason != "because" || !errors.Is(err, client.ErrClosed) {
				t.Errorf("%v", err)
			}
			if _, err := c.Publish(soon(t), client.Publish{Room: "chat", Event: "e"}); !errors.Is(err, client.ErrClosed) || !errors.As(err, &end) {
				t.Errorf("publish: %v", err)
			}
			if _, err := c.Join(soon(t), client.Join{Room: "chat"}); !errors.Is(err, client.ErrClosed) {
				t.Errorf("join: %v", err)
			}
			if _, err := c.Session(soon(t)); !errors.Is(err, client.ErrClosed) {
				t.Errorf("session: %v", err)
			}
		})
	}
}

func TestRefusedBeforeTheUpgrade(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect was followed")
	}))
	defer elsewhere.Close()
	var status atomic.Int64
	status.Store(503)
	s := playWith(t, codec.JSON, func(w http.ResponseWriter, _ *http.Request) bool {
		now := status.Load()
		switch now {
		case 503:
			status.Store(404)
		case 404:
			status.Store(302)
			w.Header().Set("Location", elsewhere.URL)
		case 302:
			status.Store(0)
		case 0:
			return false
		}
		w.WriteHeader(int(now))
		return true
	})
	c := start(t, s.url, "alice", nil)
	s.greet(nil)
	if _, err := c.Session(soon(t)); err != nil {
		t.Error(err)
	}
	for _, final := range []int64{400, 403} {
		status.Store(final)
		if err := closedFor(t, start(t, s.url, "alice", nil)); err == nil {
			t.Errorf("%d", final)
		}
	}
}

// quick makes a welcome after which silence is noticed soon.
func quick(w *codec.Welcome) { w.Ping, w.Pong = 40*time.Millisecond, 20*time.Millisecond }

func TestSilentServerIsLeft(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(quick)
	if code := a.closed(); code != -1 {
		t.Errorf("it said %d; a session that goes on says nothing", code)
	}
	const ping, pong = 600 * time.Millisecond, 600 * time.Millisecond
	b, hello := s.greet(func(w *codec.Welcome) { w.Ping, w.Pong = ping, pong })
	if hello.Resume != "sealed" {
		t.Errorf("%+v", hello)
	}
	// Pings keep it, ours as frames and those of the WebSocket layer, which nobody
	// else hears of.
	for end := time.Now().Add(ping + 2*pong); time.Now().Before(end); {
		b.say(&codec.Ping{})
		expect[*codec.Pong](b)
	}
	for end := time.Now().Add(ping + 2*pong); time.Now().Before(end); {
		if err := b.ws.Ping(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Stats().Connections; got != 2 {
		t.Errorf("%d connections", got)
	}
}

// A write that a server does not take ends by its deadline, and the session goes on
// by another connection.
func TestServerThatTakesNothingIsLeft(t *testing.T) {
	s := play(t, codec.JSON)
	s.deaf = true
	c := start(t, s.url, "alice", func(o *client.Options) { o.Timeout = 2 * time.Second })
	s.next().welcome(&codec.Hello{}, func(w *codec.Welcome) { w.MaxMessageBytes = 1 << 20 })
	if _, err := c.Session(soon(t)); err != nil {
		t.Fatal(err)
	}
	large := client.Publish{Room: "chat", Event: "e", Data: string(make([]byte, 100<<10))}
	for c.TryPublish(large) == nil {
	}
	s.next().welcome(&codec.Hello{}, nil)
}

// A drain frame: the client goes at its moment, but not before replies have come,
// and resumes without having said goodbye.
func TestDrain(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	a, _ := s.greet(nil)
	answers := make(chan error, 1)
	go func() {
		_, err := c.Command(soon(t), client.Command{Name: "roll"})
		answers <- err
	}()
	r := expect[*codec.Command](a)
	a.say(&codec.Drain{ReconnectMin: time.Millisecond, ReconnectMax: 2 * time.Millisecond, Deadline: patience})
	for c.TryPublish(client.Publish{Room: "chat", Event: "e"}) != client.ErrOffline {
		time.Sleep(time.Millisecond)
	}
	a.ok(r.ID, &codec.CommandResult{})
	if err := <-answers; err != nil {
		t.Error(err)
	}
	if code := a.closed(); code != -1 {
		t.Errorf("it said %d", code)
	}
	if _, hello := s.greet(nil); hello.Resume != "sealed" {
		t.Errorf("%+v", hello)
	}
}

// Whatever a connection, or an attempt at one, ends by, the next attempt waits, and
// longer each time.
func TestEveryWayToLoseAConnectionIsBackedOff(t *testing.T) {
	refusing := func(status int) func(t *testing.T) (string, func()) {
		return func(t *testing.T) (string, func()) {
			s := playWith(t, codec.JSON, func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true })
			return s.url, nil
		}
	}
	greeting := func(change func(*codec.Welcome), then func(*act)) func(t *testing.T) (string, func()) {
		return func(t *testing.T) (string, func()) {
			s := play(t, codec.JSON)
			return s.url, func() {
				a, _ := s.greet(change)
				then(a)
			}
		}
	}
	closing := func(code int) func(t *testing.T) (string, func()) {
		return greeting(nil, func(a *act) { a.close(code, "") })
	}
	for way, begin := range map[string]func(t *testing.T) (url string, each func()){
		"nobody listens": func(t *testing.T) (string, func()) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			return "ws://" + l.Addr().String(), nil
		},
		"no token": refusing(500),
		"404":      refusing(404), "429": refusing(429), "502": refusing(502), "503": refusing(503),
		"no welcome":          func(t *testing.T) (string, func()) { return play(t, codec.JSON).url, nil },
		"another subprotocol": func(t *testing.T) (string, func()) { return play(t, codec.Msgpack).url, nil },
		"cut":                 closing(0), "1001": closing(1001), "1011": closing(1011), "1012": closing(1012), "1013": closing(1013),
		"4500": closing(4500), "4529": closing(4529), "4000": closing(4000),
		"a malformed frame": greeting(nil, func(a *act) { a.raw([]byte("[]")) }),
		"silence":           greeting(quick, func(*act) {}),
	} {
		t.Run(way, func(t *testing.T) {
			url, each := begin(t)
			noToken := error(nil)
			if way == "no token" {
				noToken = errors.New("the issuer is away")
			}
			timeout := patience
			if way == "no welcome" {
				timeout = 300 * time.Millisecond
			}
			watched := make(chan struct{})
			c, err := client.New(client.Options{URL: url, Timeout: timeout, Token: func(context.Context) (string, error) {
				<-watched
				return "token", noToken
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			bounds := client.Bounds(c)
			close(watched)
			for _, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
				if each != nil {
					each()
				}
				select {
				case got := <-bounds:
					if got != want {
						t.Errorf("waits up to %v, want %v", got, want)
					}
				case <-soon(t).Done():
					t.Fatal("it does not come back")
				}
			}
		})
	}
}
