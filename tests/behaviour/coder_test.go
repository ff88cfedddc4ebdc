package behaviour

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

// coderSocket is a connection of coder/websocket.
type coderSocket struct {
	*websocket.Conn
	tcp net.Conn
	in  inbox
}

func dialCoder(v variant, n *node, in inbox) (socket, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := &coderSocket{in: in}
	mode := websocket.CompressionDisabled
	if v.compression {
		mode = websocket.CompressionContextTakeover
	}
	var err error
	s.Conn, _, err = websocket.Dial(ctx, n.url+"/v1/ws", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: &http.Transport{
			TLSClientConfig: n.trust,
			DialContext: func(ctx context.Context, network, addr string) (c net.Conn, err error) {
				s.tcp, err = new(net.Dialer).DialContext(ctx, network, addr)
				return s.tcp, err
			},
		}},
		Subprotocols: []string{"pulse.v1." + v.codec.String()}, CompressionMode: mode, CompressionThreshold: 64,
	})
	if err != nil {
		return nil, err
	}
	s.SetReadLimit(1 << 20)
	go s.read() // ends with the connection
	return s, nil
}

func (s *coderSocket) read() {
	for {
		kind, b, err := s.Read(context.Background())
		if err != nil {
			code := websocket.CloseStatus(err)
			if code < 0 {
				code = 1006
			}
			s.in.ended <- int(code)
			return
		}
		s.in.messages <- received{b, kind == websocket.MessageBinary}
	}
}

func kind(binary bool) websocket.MessageType {
	if binary {
		return websocket.MessageBinary
	}
	return websocket.MessageText
}

func (s *coderSocket) send(message []byte, binary bool) error {
	return s.fragments([][]byte{message}, binary)
}

func (s *coderSocket) fragments(parts [][]byte, binary bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if len(parts) == 1 {
		return s.Write(ctx, kind(binary), parts[0])
	}
	w, err := s.Writer(ctx, kind(binary))
	for i := 0; err == nil && i < len(parts); i++ {
		_, err = w.Write(parts[i])
	}
	if err != nil {
		return err
	}
	return w.Close()
}

func (s *coderSocket) ping(string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.Ping(ctx)
}

func (s *coderSocket) close(code int) error { return s.Close(websocket.StatusCode(code), "") }

func (s *coderSocket) cut() error {
	return errors.Join(s.tcp.(*net.TCPConn).SetLinger(0), s.tcp.Close())
}
