package ws

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// script is a client whose bytes are all known beforehand: a net.Conn that reads
// them in steps and keeps what is written.
type script struct {
	in      []byte
	step    int
	out     bytes.Buffer // written by the one owner at a time; read after the end
	drained func()       // called once when everything was read
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.in) == 0 {
		if s.drained != nil {
			s.drained()
			s.drained = nil
		}
		return 0, io.EOF
	}
	n := copy(p, s.in[:min(s.step, len(s.in))])
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error)      { return s.out.Write(p) }
func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return nil }
func (s *script) RemoteAddr() net.Addr             { return nil }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// witness is an Acceptor and Receiver that remembers.
type witness struct {
	messages []message
	closed   []codec.Cause
}

func (w *witness) Admit(*http.Request) *codec.Error                            { return nil }
func (w *witness) Abandon(*http.Request)                                       {}
func (w *witness) Accept(transport.Conn, transport.Request) transport.Receiver { return w }
func (w *witness) Message(b []byte, binary bool) {
	w.messages = append(w.messages, message{text: string(b), binary: binary})
}
func (w *witness) Alive()                   {}
func (w *witness) Closed(cause codec.Cause) { w.closed = append(w.closed, cause) }

// read plays a script to a reader and gws, and returns what the Receiver saw and
// what the client was sent after the handshake.
func read(t *testing.T, b []byte, step int) (*witness, []byte) {
	t.Helper()
	return play(t, &script{in: b, step: step})
}

func play(t *testing.T, s *script) (*witness, []byte) {
	t.Helper()
	h := NewHandler(Config{Acceptor: new(witness), MaxMessageBytes: testLimit})
	return playTo(t, h, s, agreement{})
}

// playTo plays a script to a connection of h on which packing was agreed.
func playTo(t *testing.T, h *Handler, s *script, packing agreement) (*witness, []byte) {
	t.Helper()
	w := new(witness)
	u := upgrade{key: "AAAAAAAAAAAAAAAAAAAAAA==", protocol: h.config.Protocols[0], packing: packing}
	r := h.newReader(s, bufio.NewReader(bytes.NewReader(nil)), u)
	var err error
	if r.gws, err = h.upgraders[flavour{deflate: packing.deflate}].UpgradeFromConn(r, bufio.NewReaderSize(r, 64), u.request()); err != nil {
		t.Fatal(err)
	}
	r.upgraded()
	s.drained = r.conn.flushed // so that no pong is dropped for the next
	handshake := s.out.Len()
	r.run(w, transport.Request{}, slog.New(slog.DiscardHandler))
	return w, s.out.Bytes()[handshake:]
}

// FuzzReader compares all that a client's bytes do to a connection, through the
// checker and gws, with a naive reading of them.
func FuzzReader(f *testing.F) {
	for _, b := range corpus() {
		f.Add(b, uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		want := tell(b, testLimit)
		if i := slices.IndexFunc(want.messages, func(m message) bool { return m.invalid }); i >= 0 {
			want.messages = want.messages[:i]
			want.cause, want.code = codec.CauseInvalidText, 1007
		}
		if want.cause == 0 {
			want.cause = codec.CauseAbrupt
		}
		got, sent := read(t, b, int(step)+1)
		if !slices.Equal(got.messages, want.messages) {
			t.Errorf("messages %+v, want %+v", got.messages, want.messages)
		}
		if !slices.Equal(got.closed, []codec.Cause{want.cause}) {
			t.Errorf("Closed %v, want %v once", got.closed, want.cause)
		}
		checkSent(t, sent, want)
	})
}

// checkSent checks that a client was sent pongs of its pings, in order though
// perhaps not all, and after them the one close that is due.
func checkSent(t *testing.T, sent []byte, want story) {
	t.Helper()
	pings := want.pings
	for len(sent) > 0 && sent[0] == bitFin|opPong {
		n := int(sent[1])
		payload := string(sent[2 : 2+n])
		at := slices.Index(pings, payload)
		if at < 0 {
			t.Fatalf("pong %q without a ping", payload)
		}
		pings, sent = pings[at+1:], sent[2+n:]
	}
	if want.code == 0 && want.cause == codec.CauseAbrupt && len(sent) == 0 {
		return // the bytes just ended
	}
	if len(sent) < 2 || sent[0] != bitFin|opClose || int(sent[1]) != len(sent)-2 {
		t.Fatalf("sent % X, want one close", sent)
	}
	if code := replyCode(&verdict{reply: sent}); code != want.code {
		t.Errorf("closed with %d, want %d", code, want.code)
	}
}

// B009: brazilofmux/tinymux#792.
func TestB009_TextIsCheckedAsAMessageNotAsFragments(t *testing.T) {
	for _, test := range []struct {
		name     string
		b        []byte
		messages []message
		cause    codec.Cause
	}{
		{"a rune over two fragments", join(clientFrame(0x01, []byte("\xC3")), clientFrame(0x80, []byte("\xA9"))), []message{{text: "é"}}, codec.CauseAbrupt},
		{"no rune over two fragments", join(clientFrame(0x01, []byte("\xC3")), clientFrame(0x80, []byte("\x28"))), nil, codec.CauseInvalidText},
		{"binary is not text", clientFrame(0x82, []byte("\xFF\xFE")), []message{{text: "\xFF\xFE", binary: true}}, codec.CauseAbrupt},
		{"text before a close in the same segment", join(clientFrame(0x81, []byte("\xFF")), clientClose(1000, "")), nil, codec.CauseInvalidText},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, step := range []int{1, 1 << 10} {
				got, sent := read(t, test.b, step)
				if !slices.Equal(got.messages, test.messages) {
					t.Errorf("messages %+v, want %+v", got.messages, test.messages)
				}
				if !slices.Equal(got.closed, []codec.Cause{test.cause}) {
					t.Errorf("Closed %v, want %v once", got.closed, test.cause)
				}
				if test.cause == codec.CauseInvalidText && (len(sent) < 4 || replyCode(&verdict{reply: sent}) != 1007) {
					t.Errorf("sent % X, want a close 1007", sent)
				}
			}
		})
	}
}

// B004: http-kit/http-kit#259, brazilofmux/tinymux#792 (F1). Unread bytes would
// make a reset of the closing, and the reset could overtake the close frame.
func TestB004_WhatComesAfterTheEndIsThrownAway(t *testing.T) {
	for _, end := range [][]byte{clientClose(1000, ""), {0xFF}, clientFrame(0x81, []byte("\xFF"))} {
		c := &script{in: append(end, make([]byte, 1<<20)...), step: 1 << 10}
		play(t, c)
		if len(c.in) > 0 {
			t.Errorf("after % X %d bytes were left unread", end, len(c.in))
		}
	}
	c := &script{in: append(clientClose(1000, ""), make([]byte, 2*lingerBytes)...), step: 1 << 10}
	play(t, c)
	if len(c.in) < lingerBytes-(64<<10) {
		t.Errorf("a peer that does not stop was read on: %d bytes left", len(c.in))
	}
}

// dated is a socket that keeps the last write deadline.
type dated struct {
	script
	deadlines []time.Time
}

func (d *dated) SetWriteDeadline(t time.Time) error {
	d.deadlines = append(d.deadlines, t)
	return nil
}

func TestParkedWriteLeavesNoDeadlineBehind(t *testing.T) {
	d := new(dated)
	s := newSocket(d)
	rest, err := s.attempt([]byte("x"))
	if err != nil || rest == nil {
		t.Fatalf("attempt on a foreign connection: %v, %v", rest, err)
	}
	if err := s.finish(rest, time.Hour); err != nil {
		t.Fatal(err)
	}
	if len(d.deadlines) != 2 || d.deadlines[0].IsZero() || !d.deadlines[1].IsZero() {
		t.Errorf("deadlines %v, want one, then none", d.deadlines)
	}
}
