package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// closedFor waits until the client is closed for good, and returns why.
func closedFor(t testing.TB, c *client.Client) error {
	t.Helper()
	for {
		if s := c.Status(); s.State == client.Closed {
			return s.Err
		}
		select {
		case <-soon(t).Done():
			t.Fatalf("not closed: %+v", c.Status())
		case <-time.After(time.Millisecond):
		}
	}
}

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

// 4401 asks for a new token, once per welcome; while the old one is good it is not
// asked for.
func TestTokenIsAskedForOncePerWelcome(t *testing.T) {
	s := play(t, codec.JSON)
	var asked atomic.Int64
	c := start(t, s.url, "", func(o *client.Options) {
		o.Token = func(context.Context) (string, error) { return fmt.Sprint("t", asked.Add(1)), nil }
	})
	step := func(want string) *act {
		t.Helper()
		a := s.next()
		hello := expect[*codec.Hello](a)
		if hello.Token != want {
			t.Errorf("token %s, want %s", hello.Token, want)
		}
		a.welcome(hello, nil)
		return a
	}
	step("t1").close(1011, "")
	step("t1").close(4401, "ended")
	step("t2").close(0, "")
	step("t2").close(4401, "ended")
	a := s.next()
	if hello := expect[*codec.Hello](a); hello.Token != "t3" {
		t.Errorf("%+v", hello)
	}
	a.close(4401, "not this one either")
	var end *client.CloseError
	if err := closedFor(t, c); !errors.As(err, &end) || end.Code != 4401 || asked.Load() != 3 {
		t.Errorf("%v after %d", err, asked.Load())
	}
}

func TestTokenIsRenewedWhenItEnds(t *testing.T) {
	s := play(t, codec.Msgpack)
	var asked atomic.Int64
	c := start(t, s.url, "", func(o *client.Options) {
		o.Codec = codec.Msgpack
		o.Token = func(context.Context) (string, error) { return fmt.Sprint("t", asked.Add(1)), nil }
	})
	// The server's clock is an hour behind.
	now := time.Now().Add(-time.Hour)
	a, _ := s.greet(func(w *codec.Welcome) { w.Now, w.Exp = now.UnixMilli(), now.Add(30*time.Second).UnixMilli() })
	session, err := c.Session(soon(t))
	if left := time.Until(session.Expires); err != nil || left < 20*time.Second || left > 31*time.Second {
		t.Errorf("%+v, %v", session, err)
	}
	a.say(&codec.Expiring{In: 30 * time.Second})
	a.say(&codec.Expiring{In: 30 * time.Second})
	r := expect[*codec.Token](a)
	if r.Token != "t2" {
		t.Errorf("%+v", r)
	}
	a.ok(r.ID, &codec.TokenResult{Exp: now.Add(time.Minute).UnixMilli(), Resume: "sealed again"})
	a.close(0, "")
	if _, hello := s.greet(nil); hello.Token != "t2" || hello.Resume != "sealed again" {
		t.Errorf("%+v", hello)
	}
}

// A refused token is asked for until the callback has another one, and credentials
// that have ended meanwhile are not shown again.
func TestTokenThatIsBadIsNotShownAgain(t *testing.T) {
	s := play(t, codec.JSON)
	var asked atomic.Int64
	start(t, s.url, "", func(o *client.Options) {
		o.Token = func(context.Context) (string, error) {
			if n := asked.Add(1); n == 1 || n > 3 {
				return fmt.Sprint("t", n), nil
			}
			return "", errors.New("the issuer is away")
		}
	})
	a, _ := s.greet(nil)
	a.close(4401, "ended")
	b := s.next()
	hello := expect[*codec.Hello](b)
	if hello.Token != "t4" {
		t.Errorf("%+v", hello)
	}
	now := time.Now().UnixMilli()
	b.welcome(hello, func(w *codec.Welcome) { w.Now, w.Exp = now, now-1 })
	b.close(0, "")
	if _, hello := s.greet(nil); hello.Token != "t5" {
		t.Errorf("%+v", hello)
	}
}

// What the callback's error means: it is asked again, unless it closes the client.
func TestTokenThatCannotBeHad(t *testing.T) {
	s := play(t, codec.JSON)
	var asked atomic.Int64
	c := start(t, s.url, "", func(o *client.Options) {
		o.Token = func(context.Context) (string, error) {
			if asked.Add(1) < 3 {
				return "", errors.New("the issuer is away")
			}
			return "good", nil
		}
	})
	a, hello := s.greet(nil)
	if hello.Token != "good" {
		t.Errorf("%+v", hello)
	}
	a.close(4409, "")
	closedFor(t, c)

	signedOut := errors.New("signed out")
	c = start(t, s.url, "", func(o *client.Options) {
		o.Token = func(context.Context) (string, error) { return "", fmt.Errorf("%w: %w", client.ErrClosed, signedOut) }
	})
	if err := closedFor(t, c); !errors.Is(err, signedOut) {
		t.Errorf("%v", err)
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

// Source: zachowj/node-red-contrib-home-assistant-websocket#2028. Every stage of a
// handshake that stops half way ends by its own deadline, and is tried again.
func TestB152_HalfOpenHandshakes(t *testing.T) {
	t.Run("a connection that is accepted and never answered", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c := start(t, "ws://"+l.Addr().String(), "alice", func(o *client.Options) { o.Timeout = 50 * time.Millisecond })
		defer c.Close()
		for range 3 {
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		if err := c.Status().Err; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
	t.Run("an upgrade without a welcome", func(t *testing.T) {
		s := play(t, codec.JSON)
		c := start(t, s.url, "alice", func(o *client.Options) { o.Timeout = 50 * time.Millisecond })
		for range 3 {
			expect[*codec.Hello](s.next())
		}
		s.greet(nil)
		if _, err := c.Session(soon(t)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a token that never comes", func(t *testing.T) {
		s := play(t, codec.JSON)
		var asked atomic.Int64
		start(t, s.url, "", func(o *client.Options) {
			o.Timeout = 20 * time.Millisecond
			o.Token = func(ctx context.Context) (string, error) {
				if asked.Add(1) < 3 {
					<-ctx.Done()
				}
				return "late", ctx.Err()
			}
		})
		s.greet(nil)
	})
}

func TestSilentServerIsLeft(t *testing.T) {
	s := play(t, codec.JSON)
	c := start(t, s.url, "alice", nil)
	quick := func(w *codec.Welcome) { w.Ping, w.Pong = 40*time.Millisecond, 20*time.Millisecond }
	a, _ := s.greet(quick)
	if code := a.closed(); code != -1 {
		t.Errorf("it said %d; a session that goes on says nothing", code)
	}
	b, hello := s.greet(quick)
	if hello.Resume != "sealed" {
		t.Errorf("%+v", hello)
	}
	// Pings keep it, ours as frames and those of the WebSocket layer, which nobody
	// else hears of.
	for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); {
		b.say(&codec.Ping{})
		expect[*codec.Pong](b)
	}
	for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); {
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
	c := start(t, s.url, "alice", func(o *client.Options) { o.Timeout = 200 * time.Millisecond })
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
	a.say(&codec.Drain{ReconnectMin: time.Millisecond, ReconnectMax: 2 * time.Millisecond, Deadline: time.Second})
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

func TestOddFrames(t *testing.T) {
	t.Run("unknown ones are counted", func(t *testing.T) {
		for _, in := range codecs {
			s := play(t, in)
			c := start(t, s.url, "alice", func(o *client.Options) { o.Codec = in })
			a := s.next()
			hello := expect[*codec.Hello](a)
			unknown, err := codec.MakeData(codec.JSON, []byte(`{"t":"dance","steps":[1,{"left":null}]}`))
			if err != nil {
				t.Fatal(err)
			}
			a.raw(unknown.In(in))
			a.welcome(hello, nil)
			a.raw(unknown.In(in))
			a.say(&codec.ErrorFrame{Err: codec.NewError(codec.CodeForbidden, "no"), Re: "publish"})
			a.say(&codec.Reply{ID: 99, OK: &codec.LeaveResult{Room: "chat"}})
			a.say(&codec.Pong{ID: 4})
			a.say(&codec.Status{Live: false, Reason: "bridge"})
			a.say(&codec.Ping{})
			expect[*codec.Pong](a)
			if st := c.Stats(); st.Unknown != 2 || st.Refused != 1 || st.Connections != 1 {
				t.Errorf("%+v", st)
			}
			if st := c.Status(); st.Live || st.State != client.Connected {
				t.Errorf("%+v", st)
			}
		}
	})
	for rule, message := range map[string]string{
		"no object": `[]`, "no JSON": `{"t":`, "a repeated key": `{"t":"ping","t":"ping"}`, "a field of the wrong type": `{"t":"left","room":1}`,
	} {
		t.Run("malformed: "+rule, func(t *testing.T) {
			s := play(t, codec.JSON)
			c := start(t, s.url, "alice", nil)
			a, _ := s.greet(nil)
			a.raw([]byte(message))
			if code := a.closed(); code != -1 {
				t.Errorf("%d", code)
			}
			s.greet(nil)
			if _, err := c.Session(soon(t)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a frame over max_frame_bytes", func(t *testing.T) {
		s := play(t, codec.JSON)
		c := start(t, s.url, "alice", nil)
		a, _ := s.greet(func(w *codec.Welcome) { w.MaxFrameBytes = 1000 })
		a.say(&codec.Status{Reason: string(make([]byte, 2000))})
		if err := closedFor(t, c); err == nil {
			t.Error("nothing")
		}
	})
	t.Run("a message of the other kind", func(t *testing.T) {
		s := play(t, codec.JSON)
		start(t, s.url, "alice", nil)
		a, _ := s.greet(nil)
		if err := a.ws.Write(soon(t), websocket.MessageBinary, []byte(`{"t":"ping"}`)); err != nil {
			t.Error(err)
		}
		if code := a.closed(); code != -1 {
			t.Errorf("%d", code)
		}
		s.greet(nil)
	})
	t.Run("another subprotocol", func(t *testing.T) {
		s := play(t, codec.Msgpack)
		start(t, s.url, "alice", nil)
		if r := <-s.next().sent; r.err == nil {
			t.Errorf("a server that does not speak the protocol is told %s", r.message)
		}
	})
}

func TestCloseIsOrderlyAndOnce(t *testing.T) {
	s := play(t, codec.JSON)
	var c *client.Client
	states := make(chan client.State, 10)
	c = start(t, s.url, "alice", func(o *client.Options) {
		o.OnStatus = func(st client.Status) { states <- st.State }
	})
	a, _ := s.greet(nil)
	if _, err := c.Session(soon(t)); err != nil {
		t.Fatal(err)
	}
	command := make(chan error, 1)
	go func() {
		_, err := c.Command(soon(t), client.Command{Name: "roll"})
		command <- err
	}()
	expect[*codec.Command](a)
	for i := range 60 {
		if err := c.TryPublish(client.Publish{Room: "chat", Event: "e", Data: i}); err != nil {
			t.Error(err)
		}
	}
	ended := make(chan struct{})
	go func() { c.Close(); c.Close(); close(ended) }()
	c.Close()
	for i := range 60 { // what was handed over is still sent
		if p := expect[*codec.Publish](a); string(p.Data.In(codec.JSON)) != fmt.Sprint(i) || p.ID != 0 || p.DedupKey != "" {
			t.Errorf("%+v", p)
		}
	}
	if code := a.closed(); code != 1000 {
		t.Errorf("closed with %d", code)
	}
	<-ended
	if err := <-command; !errors.Is(err, client.ErrClosed) || !errors.Is(err, client.ErrUnknown) {
		t.Errorf("in flight: %v", err)
	}
	for st := range states {
		if st == client.Closed {
			break
		}
	}
}

// OnStatus hears of what happens, in order, and may close the client.
func TestOnStatus(t *testing.T) {
	s := play(t, codec.JSON)
	heard := make(chan client.Status, 10)
	closing := make(chan struct{})
	var c *client.Client
	begin := make(chan struct{})
	c = start(t, s.url, "alice", func(o *client.Options) {
		o.OnStatus = func(st client.Status) {
			<-begin
			heard <- st
			if st.State == client.Connected && st.Session.Resumed {
				c.Close()
				close(closing)
			}
		}
	})
	close(begin)
	// What is passed over meanwhile is not what happened last.
	want := func(rule string, fits func(client.Status) bool) {
		t.Helper()
		for {
			select {
			case st := <-heard:
				if fits(st) {
					return
				}
			case <-soon(t).Done():
				t.Fatal("not heard: ", rule)
			}
		}
	}
	a, _ := s.greet(nil)
	want("connected", func(st client.Status) bool {
		return st.State == client.Connected && st.Session.ID == "s1" && !st.Session.Resumed && st.Live && st.Err == nil
	})
	a.close(1011, "fault")
	want("lost", func(st client.Status) bool {
		var end *client.CloseError
		return errors.As(st.Err, &end) && end.Code == 1011 && (st.State == client.Waiting || st.State == client.Connecting)
	})
	s.greet(nil)
	want("connected again", func(st client.Status) bool { return st.State == client.Connected })
	<-closing
	want("closed", func(st client.Status) bool { return st.State == client.Closed && errors.Is(st.Err, client.ErrClosed) })
}

// Close ends in every stage of a connection, and a server that does not answer does
// not hold it up.
func TestCloseInEveryStage(t *testing.T) {
	t.Run("while a token is fetched", func(t *testing.T) {
		s := play(t, codec.JSON)
		asked := make(chan struct{})
		c := start(t, s.url, "", func(o *client.Options) {
			o.Token = func(ctx context.Context) (string, error) { close(asked); <-ctx.Done(); return "", ctx.Err() }
		})
		<-asked
		c.Close()
	})
	t.Run("before the welcome", func(t *testing.T) {
		s := play(t, codec.JSON)
		c := start(t, s.url, "alice", nil)
		expect[*codec.Hello](s.next())
		c.Close()
	})
	t.Run("between two attempts", func(t *testing.T) {
		s := playWith(t, codec.JSON, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "1000")
			w.WriteHeader(503)
			return true
		})
		before := goleak.IgnoreCurrent()
		c, err := client.New(client.Options{URL: s.url})
		if err != nil {
			t.Fatal(err)
		}
		for c.Status().State != client.Waiting {
			time.Sleep(time.Millisecond)
		}
		if wait := c.Status().Wait; wait < 1000*time.Second {
			t.Errorf("waits %v", wait)
		}
		c.Close()
		if err := goleak.Find(before); err != nil { // of a refused attempt neither
			t.Error(err)
		}
	})
	t.Run("with a server that does not answer", func(t *testing.T) {
		s := play(t, codec.JSON)
		s.deaf = true
		c := start(t, s.url, "alice", nil)
		s.next().welcome(&codec.Hello{}, nil)
		if _, err := c.Session(soon(t)); err != nil {
			t.Error(err)
		}
		began := time.Now()
		c.Close()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("%v", took)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for rule, o := range map[string]client.Options{
		"no URL":                 {},
		"a scheme":               {URL: "ftp://example.com"},
		"no host":                {URL: "ws:///v1/ws"},
		"credentials in the URL": {URL: "ws://a:secret@example.com"},
		"no URL at all":          {URL: "ws://a b:secret"},
		"a name":                 {URL: "ws://example.com", Name: string(make([]byte, 129))},
		"a bound":                {URL: "ws://example.com", Events: client.Bound{Items: -1}},
		"a codec":                {URL: "ws://example.com", Codec: 7},
	} {
		c, err := client.New(o)
		if err == nil {
			c.Close()
			t.Errorf("%s is taken", rule)
		} else if s := err.Error(); len(s) > 200 || strings.Contains(s, "secret") {
			t.Errorf("%s: %s", rule, s)
		}
	}
}
