package ws

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yaza-dev/pulse/codec"
)

// inflate is the text of a compressed payload, read by the standard library; ok means
// that it is deflated in order.
func inflate(payload, window []byte) (text []byte, ok bool) {
	const tail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff" // RFC 7692, section 7.2.2, and an end
	text, err := io.ReadAll(flate.NewReaderDict(io.MultiReader(bytes.NewReader(payload), strings.NewReader(tail)), window))
	return text, err == nil
}

// FuzzInflate compares what two compressed messages do to a connection with what
// the standard library makes of them. The second one may refer to the first where
// the client has not renounced that.
func FuzzInflate(f *testing.F) {
	long := bytes.Repeat([]byte("x"), testLimit)
	for _, pair := range [][2][]byte{
		{packed(f, []byte("hi")), packed(f, []byte(`{"t":"ping"}`))},
		{packed(f, long), packed(f, append(long, 'x'))},
		{packed(f, []byte("\xC3\x28")), nil},
		{packed(f, append(long, 'x')), packed(f, []byte("\xC3\x28"))}, // the first fault counts
		{{0xFF, 0xFF, 0xFF, 0xFF}, nil},
		{packed(f, make([]byte, 1<<20)), nil},
		{referring(f, "hello, hello"), referring(f, "hello, hello", "hello, hello")},
		{{0x4A, 0x4C, 0x02, 0x00}, {0x02, 0x00}},
		{{0x01, 0x02, 0x00, 0xFD, 0xFF, 'h', 'i'}, {0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00}},
		{{0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00}, {0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00}},
	} {
		f.Add(pair[0], pair[1], true, true)
		f.Add(pair[0], pair[1], false, false)
	}
	h := NewHandler(Config{Acceptor: new(witness), MaxMessageBytes: testLimit, Compression: Compression{Enabled: true}})
	f.Fuzz(func(t *testing.T, first, second []byte, isText, takeover bool) {
		most := testLimit + slack(testLimit) // how far gws inflates
		if len(first) > most || len(second) > most {
			return // refused at its header, which FuzzReader looks at
		}
		head, want := byte(bitFin|bitRsv1|opBinary), story{cause: codec.CauseAbrupt}
		if isText {
			head = bitFin | bitRsv1 | opText
		}
		var window []byte
		orTooLarge := false
		for _, payload := range [][]byte{first, second} {
			text, ok := inflate(payload, window)
			switch {
			case !ok:
				// How much comes before the fault is each library's own matter.
				want.cause, want.code, orTooLarge = codec.CauseProtocol, 1002, true
			case len(text) > most:
				want.cause, want.code = codec.CauseTooLarge, 1009
			case isText && !utf8.Valid(text):
				want.cause, want.code = codec.CauseInvalidText, 1007
			case len(text) > testLimit:
				want.cause, want.code = codec.CauseTooLarge, 1009
			default:
				want.messages = append(want.messages, message{text: string(text), binary: !isText})
				if takeover {
					window = append(window, text...)
				}
				continue
			}
			break
		}
		s := &script{in: join(clientFrame(head, first), clientFrame(head, second)), step: 64}
		got, sent := playTo(t, h, s, agreement{deflate: true, noTakeover: !takeover})
		if !slices.Equal(got.messages, want.messages) {
			t.Errorf("messages %+v, want %+v", got.messages, want.messages)
		}
		if orTooLarge && slices.Equal(got.closed, []codec.Cause{codec.CauseTooLarge}) {
			want.cause, want.code = codec.CauseTooLarge, 1009
		}
		if !slices.Equal(got.closed, []codec.Cause{want.cause}) {
			t.Errorf("Closed %v, want %v once", got.closed, want.cause)
		}
		checkSent(t, sent, want)
	})
}

// referring compresses the last of a client's messages so that it refers to those
// before it.
func referring(t testing.TB, messages ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, 9)
	for _, m := range messages {
		out.Reset()
		_, more := w.Write([]byte(m))
		err = errors.Join(err, more, w.Flush())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()[:out.Len()-4]
}
