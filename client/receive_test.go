package client_test

import (
	"testing"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

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
