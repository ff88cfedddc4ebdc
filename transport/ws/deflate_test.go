package ws

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/codec"
)

// RFC 7692, section 7.1. B015: boostorg/beast#2671; B017:
// python-websockets/websockets#1109.
func TestB015_B017_OffersOfCompression(t *testing.T) {
	for _, test := range []struct {
		offer string
		want  string // of the answer; empty: no compression
	}{
		{"permessage-deflate", "permessage-deflate; server_no_context_takeover"},
		{"permessage-deflate; client_max_window_bits", "permessage-deflate; server_no_context_takeover"},
		{"permessage-deflate; client_max_window_bits=10", "permessage-deflate; server_no_context_takeover"},
		{`permessage-deflate; client_max_window_bits="10"`, "permessage-deflate; server_no_context_takeover"},
		{"permessage-deflate;server_no_context_takeover ; client_no_context_takeover", "permessage-deflate; server_no_context_takeover; client_no_context_takeover"},
		{"permessage-deflate; foo=bar, permessage-deflate", "permessage-deflate; server_no_context_takeover"},
		{"x-webkit-deflate-frame, permessage-deflate; client_no_context_takeover", "permessage-deflate; server_no_context_takeover; client_no_context_takeover"},
		{"permessage-deflate; server_max_window_bits=10, permessage-deflate", "permessage-deflate; server_no_context_takeover"},
		{"permessage-deflate; foo=bar", ""},
		{`permessage-deflate; foo=",permessage-deflate"`, ""},
		{"permessage-deflate; server_max_window_bits=10", ""},
		{"permessage-deflate; server_max_window_bits", ""},
		{"permessage-deflate; client_max_window_bits=16", ""},
		{"permessage-deflate; client_max_window_bits=7", ""},
		{"permessage-deflate; client_max_window_bits=08", ""},
		{"permessage-deflate; client_max_window_bits=", ""},
		{"permessage-deflate; server_no_context_takeover=1", ""},
		{"permessage-deflate; client_no_context_takeover; client_no_context_takeover", ""},
		{"permessage-deflate=1", ""},
		{"permessage-deflates", ""},
		{";", ""},
		{"", ""},
	} {
		for _, enabled := range []bool{true, false} {
			site := serve(t, sides[0], Config{Acceptor: newHall(), Compression: Compression{Enabled: enabled}})
			w := site.wire(t)
			w.send([]byte(handshake + "Sec-WebSocket-Extensions: " + test.offer + "\r\n\r\n"))
			want := test.want
			if !enabled {
				want = ""
			}
			if r := w.response(); r.StatusCode != http.StatusSwitchingProtocols || r.Header.Get("Sec-Websocket-Extensions") != want {
				t.Errorf("enabled %t, offer %q: status %d, answer %q, want %q", enabled, test.offer, r.StatusCode, r.Header.Get("Sec-Websocket-Extensions"), want)
			}
		}
	}
}

// packed is what a client sends compressed, each message by itself.
func packed(t testing.TB, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, 9)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(text)
	_ = w.Flush()
	return out.Bytes()[:out.Len()-4]
}

func openPacked(t testing.TB, limit int) (*wire, *guest) {
	t.Helper()
	a := newHall()
	site := serve(t, sides[0], Config{Acceptor: a, MaxMessageBytes: limit, Compression: Compression{Enabled: true}})
	w := site.wire(t)
	w.send([]byte(handshake + "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"))
	if r := w.response(); r.Header.Get("Sec-Websocket-Extensions") == "" {
		t.Fatal("no compression was agreed")
	}
	return w, soon(t, a.guests, "Accept")
}

// B002: exasol/exasol-driver-go#139, brazilofmux/tinymux#792.
func TestB002_ReservedBitsWithCompression(t *testing.T) {
	for name, frames := range map[string][]byte{
		"RSV2":                   clientFrame(0xA1, []byte("hi")),
		"RSV3":                   clientFrame(0x91, []byte("hi")),
		"RSV1 and RSV2":          clientFrame(0xE1, []byte("hi")),
		"RSV1 on a ping":         clientFrame(0xC9, nil),
		"RSV1 on a close":        clientFrame(0xC8, nil),
		"RSV1 on a continuation": join(clientFrame(0x01, []byte("h")), clientFrame(0xC0, []byte("i"))),
	} {
		t.Run(name, func(t *testing.T) {
			w, g := openPacked(t, 1<<10)
			w.send(frames)
			if head, payload := w.frame(); head != 0x88 || payload[0] != 1002>>8 || payload[1] != 1002&0xFF {
				t.Errorf("frame %X % X, want a close 1002", head, payload)
			}
			soon(t, g.closed, "Closed")
			if len(g.messages) != 0 {
				t.Error("the message was handled")
			}
		})
	}
}

// B012: centrifugal/centrifuge#584, centrifugal/centrifugo#1162,
// nats-io/nats-server#7625.
func TestB012_InflatingStopsAtTheLimit(t *testing.T) {
	const limit = 1 << 20
	random := make([]byte, limit)
	_, _ = rand.Read(random)
	mebibyte := append(packed(t, make([]byte, 1<<20)), "\x00\x00\xff\xff"...)
	for _, test := range []struct {
		name    string
		text    string // of a message that is accepted
		message []byte
		code    int // 0: accepted
	}{
		{"exactly the limit", strings.Repeat("x", limit), packed(t, bytes.Repeat([]byte("x"), limit)), 0},
		{"exactly the limit, not to be compressed", string(random), packed(t, random), 0},
		{"one more", "", packed(t, bytes.Repeat([]byte("x"), limit+1)), 1009},
		{"a bomb of 64 MiB", "", bytes.Repeat(mebibyte, 64), 1009},
	} {
		for _, pieces := range []int{1, 3} {
			t.Run(fmt.Sprint(test.name, ", in ", pieces), func(t *testing.T) {
				w, g := openPacked(t, limit)
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range pieces {
					head := byte(opContinuation)
					if i == 0 {
						head = opBinary | bitRsv1
					}
					if i == pieces-1 {
						head |= bitFin
					}
					// Of a refused message the rest may find the connection closed.
					_, _ = w.Write(clientFrame(head, test.message[i*len(test.message)/pieces:(i+1)*len(test.message)/pieces]))
				}
				if test.code == 0 {
					if got := soon(t, g.messages, "the message"); got != test.text {
						t.Errorf("%d bytes, want %d", len(got), len(test.text))
					}
					return
				}
				if head, payload := w.frame(); head != 0x88 || int(payload[0])<<8|int(payload[1]) != test.code {
					t.Errorf("frame %X % X, want a close %d", head, payload, test.code)
				}
				if cause := soon(t, g.closed, "Closed"); cause != codec.CauseTooLarge || len(g.messages) != 0 {
					t.Errorf("cause %v, %d messages", cause, len(g.messages))
				}
				runtime.ReadMemStats(&after)
				if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 16*limit {
					t.Errorf("%d bytes were allocated for it", grown)
				}
			})
		}
	}
}

func TestBytesThatAreNotDeflatedAreAViolation(t *testing.T) {
	w, g := openPacked(t, 1<<10)
	w.send(clientFrame(0xC1, []byte{0xFF, 0xFF, 0xFF, 0xFF}))
	if head, payload := w.frame(); head != 0x88 || int(payload[0])<<8|int(payload[1]) != 1002 {
		t.Errorf("frame %X % X, want a close 1002", head, payload)
	}
	soon(t, g.closed, "Closed")
}

// What is inflated must be UTF-8 in a text message, like what is not.
func TestInflatedTextIsChecked(t *testing.T) {
	w, _ := openPacked(t, 1<<10)
	w.send(clientFrame(0xC1, packed(t, []byte{0xC3, 0x28})))
	if head, payload := w.frame(); head != 0x88 || int(payload[0])<<8|int(payload[1]) != 1007 {
		t.Errorf("frame %X % X, want a close 1007", head, payload)
	}
}

// A strict client gets every message as it was, whatever mixture of sizes and
// contents goes through, and may refer to its own earlier ones. B013:
// sockudo/sockudo-ws#14; B016: oven-sh/bun#33003, Kitura/Kitura-WebSocket-NIO#22.
func TestB013_B016_MixedMessagesBothWays(t *testing.T) {
	for _, mode := range []websocket.CompressionMode{websocket.CompressionContextTakeover, websocket.CompressionNoContextTakeover} {
		for _, side := range []side{sides[0], sides[1]} {
			t.Run(fmt.Sprint(mode, side.name), func(t *testing.T) {
				a := newHall()
				site := serve(t, side, Config{Acceptor: a, Compression: Compression{Enabled: true, Threshold: 64}})
				c, response, err := site.dial(t, &websocket.DialOptions{
					Subprotocols: []string{"pulse.v1.json"}, CompressionMode: mode, CompressionThreshold: 1,
				})
				if err != nil || response.Header.Get("Sec-Websocket-Extensions") == "" {
					t.Fatal("no compression was agreed: ", err)
				}
				g := soon(t, a.guests, "Accept")
				if held := g.request.Held; (held == Window) != (mode == websocket.CompressionContextTakeover) {
					t.Errorf("holds %d bytes", held)
				}
				random := make([]byte, 3<<10)
				_, _ = rand.Read(random)
				texts := []string{
					`{"t":"event","n":1}`, strings.Repeat(`{"t":"event","room":"chat:1"}`, 140), fmt.Sprintf("%x", random), "",
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for i := range 500 {
					text := fmt.Sprint(i, texts[i%len(texts)])
					frame := g.conn.Framing().Wrap(nil, []byte(text))
					if i%5 == 0 {
						frame = g.conn.Framing().Plain.Wrap(nil, []byte(text))
					}
					if _, err := g.conn.Write(frame); err != nil {
						t.Fatal(err)
					}
					if _, got, err := c.Read(ctx); err != nil || string(got) != text {
						t.Fatalf("message %d: %v, %.40q, want %.40q", i, err, got, text)
					}
					if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
						t.Fatal(err)
					}
					if got := soon(t, g.messages, "the message"); got != text {
						t.Fatalf("message %d came as %.40q, want %.40q", i, got, text)
					}
				}
			})
		}
	}
}

// A compressed frame stands by itself; what compression would not make smaller
// goes as it is.
func TestDeflatedFrames(t *testing.T) {
	d := &deflater{threshold: 100}
	random := make([]byte, 1000)
	_, _ = rand.Read(random)
	for name, test := range map[string]struct {
		doc    []byte
		packed bool
	}{
		"short":                {bytes.Repeat([]byte("a"), 99), false},
		"long":                 {bytes.Repeat([]byte("a"), 100), true},
		"not to be compressed": {random, false},
	} {
		t.Run(name, func(t *testing.T) {
			frame := d.appendFrame([]byte("before"), opText, test.doc)[len("before"):]
			if packed := frame[0]&bitRsv1 != 0; packed != test.packed {
				t.Fatalf("packed %t", packed)
			}
			payload := frame[2:]
			if frame[1] == 126 {
				payload = frame[4:]
			}
			if test.packed {
				if len(frame) > len(test.doc) {
					t.Errorf("%d bytes became %d", len(test.doc), len(frame))
				}
				r := flate.NewReader(io.MultiReader(bytes.NewReader(payload), strings.NewReader("\x00\x00\xff\xff\x01\x00\x00\xff\xff")))
				var err error
				if payload, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(payload, test.doc) {
				t.Error("not the same")
			}
		})
	}
}

// Whatever clients have agreed to about their own context, an event is compressed
// once for all of them, and what must not be compressed is not, for any.
func TestCompressedOnceForAllClients(t *testing.T) {
	a := newHall()
	site := serve(t, sides[0], Config{Acceptor: a, Compression: Compression{Enabled: true, Threshold: 64}})
	event := func(secret bool) *codec.Event {
		data, err := codec.MakeData(codec.JSON, []byte(`"`+strings.Repeat("so many words ", 50)+`"`))
		if err != nil {
			t.Fatal(err)
		}
		return codec.NewEvent(codec.Topic{Tenant: "acme", Room: "chat"}, "said", data, codec.Origin{EID: "e", Secret: secret})
	}
	open, secret := event(false), event(true)
	var first, plain []byte
	for i, offer := range []string{"permessage-deflate", "permessage-deflate; client_no_context_takeover", "permessage-deflate; client_max_window_bits=9"} {
		w := site.wire(t)
		w.send([]byte(handshake + "Sec-WebSocket-Extensions: " + offer + "\r\n\r\n"))
		if r := w.response(); r.Header.Get("Sec-Websocket-Extensions") == "" {
			t.Fatal("no compression was agreed")
		}
		framing := soon(t, a.guests, "Accept").conn.Framing()
		// Later bytes of an event are those of the one, whose frame is the same.
		b, s := open.Bytes(framing), secret.At(codec.Position{Epoch: "e", Offset: 1}).Bytes(framing)
		if i == 0 {
			first, plain = b, s
		}
		if &b[0] != &first[0] || b[0]&bitRsv1 == 0 {
			t.Errorf("%s: compressed anew, or not at all", offer)
		}
		if s[0]&bitRsv1 != 0 || !bytes.Equal(s, plain) {
			t.Errorf("%s: a secret event is compressed", offer)
		}
		both := codec.Bundle([]*codec.Frame{&open.Frame, &secret.Frame}).Bytes(framing)
		if want := append(bytes.Clone(b), secret.Bytes(framing)...); !bytes.Equal(both, want) {
			t.Errorf("%s: a bundle is not its frames", offer)
		}
	}
}
