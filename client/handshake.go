package client

import (
	"context"
	"fmt"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/codec"
)

// stage runs one step of the handshake under its deadline; Close ends it too.
func (l *link) stage(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(l.c.ctx, l.c.o.Timeout)
	defer cancel()
	return f(ctx)
}

func (l *link) dial() (ending, bool) {
	name := "pulse.v1." + l.c.o.Codec.String()
	var e ending
	err := l.stage(func(ctx context.Context) error {
		ws, response, err := websocket.Dial(ctx, l.c.o.URL, &websocket.DialOptions{
			HTTPClient: l.c.o.HTTPClient, HTTPHeader: l.c.o.Header, Subprotocols: []string{name},
			OnPingReceived: func(context.Context, []byte) bool { l.touch(); return true },
		})
		l.ws = ws
		if err != nil {
			e = refusedBy(response, err)
		}
		return err
	})
	if err == nil && l.ws.Subprotocol() != name {
		l.ws.CloseNow()
		return ending{err: fmt.Errorf("client: the server does not speak %s", name)}, false
	}
	return e, err == nil
}

// hello says hello and waits for the welcome.
func (l *link) hello(token string) (w *codec.Welcome, size int, e ending, ok bool) {
	l.ws.SetReadLimit(largest)
	hello, greeted := l.c.greeting(token)
	l.greeted = greeted
	err := l.stage(func(ctx context.Context) error {
		if err := l.ws.Write(ctx, l.kind(), codec.AppendRequest(nil, l.c.o.Codec, hello)); err != nil {
			return err
		}
		for w == nil {
			message, err := l.read(ctx)
			if err != nil {
				return err
			}
			doc, err := l.decode(message)
			if err != nil {
				return err
			}
			w, _ = doc.(*codec.Welcome)
			size = len(message)
		}
		return nil
	})
	if err != nil {
		return nil, 0, endedBy(err), false
	}
	if w.MaxFrameBytes > 0 {
		l.ws.SetReadLimit(int64(min(w.MaxFrameBytes, largest)))
	}
	return w, size, ending{}, true
}
