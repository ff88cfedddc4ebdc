package behaviour

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/http"
	"time"

	"github.com/lxzan/gws"
)

// gwsSocket is a connection of gws's own client.
type gwsSocket struct {
	gws.BuiltinEventHandler
	*gws.Conn
	in    inbox
	pongs chan string
}

func dialGWS(v variant, n *node, in inbox) (socket, error) {
	s := &gwsSocket{in: in, pongs: make(chan string, 1)}
	trust := n.trust
	if trust != nil {
		trust = trust.Clone() // gws writes the server's name into it
	}
	var err error
	s.Conn, _, err = gws.NewClient(s, &gws.ClientOption{
		Addr:              n.url + "/v1/ws",
		RequestHeader:     http.Header{"Sec-WebSocket-Protocol": {"pulse.v1." + v.codec.String()}},
		TlsConfig:         trust,
		HandshakeTimeout:  patience,
		CheckUtf8Enabled:  true,
		PermessageDeflate: gws.PermessageDeflate{Enabled: v.compression, ClientContextTakeover: true, Threshold: 64},
	})
	if err != nil {
		return nil, err
	}
	go s.ReadLoop() // ends with the connection
	return s, nil
}

func (s *gwsSocket) OnMessage(_ *gws.Conn, m *gws.Message) {
	s.in.messages <- received{append([]byte(nil), m.Bytes()...), m.Opcode == gws.OpcodeBinary}
	_ = m.Close()
}

func (s *gwsSocket) OnPing(_ *gws.Conn, payload []byte) { _ = s.WritePong(payload) }
func (s *gwsSocket) OnPong(_ *gws.Conn, payload []byte) { s.pongs <- string(payload) }

func (s *gwsSocket) OnClose(_ *gws.Conn, err error) {
	code := 1006
	if end := (*gws.CloseError)(nil); errors.As(err, &end) {
		code = int(end.Code)
	}
	s.in.ended <- code
}

func opcode(binary bool) gws.Opcode {
	if binary {
		return gws.OpcodeBinary
	}
	return gws.OpcodeText
}

func (s *gwsSocket) send(message []byte, binary bool) error {
	return s.WriteMessage(opcode(binary), message)
}

// fragments writes below gws, which has no fragments this small.
func (s *gwsSocket) fragments(parts [][]byte, isBinary bool) error {
	for i, part := range parts {
		head := byte(gws.OpcodeContinuation)
		if i == 0 {
			head = byte(opcode(isBinary))
		}
		if i == len(parts)-1 {
			head |= 0x80
		}
		frame := binary.BigEndian.AppendUint16([]byte{head, 0x80 | 126}, uint16(len(part)))
		var mask [4]byte
		_, _ = rand.Read(mask[:])
		frame = append(frame, mask[:]...)
		for j, c := range part {
			frame = append(frame, c^mask[j&3])
		}
		if _, err := s.NetConn().Write(frame); err != nil {
			return err
		}
	}
	return nil
}

func (s *gwsSocket) ping(payload string) error {
	if err := s.WritePing([]byte(payload)); err != nil {
		return err
	}
	select {
	case got := <-s.pongs:
		return same(payload, got)
	case <-time.After(patience):
		return errors.New("no pong")
	}
}

// close sends the close frame and does not wait for the answer: gws's client never
// does.
func (s *gwsSocket) close(code int) error { return s.WriteClose(uint16(code), nil) }

func (s *gwsSocket) cut() error { return s.NetConn().Close() }
