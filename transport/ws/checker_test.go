package ws

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/yaza-dev/pulse/codec"
)

const testLimit = 1000

// run feeds b in steps of the given size and returns what came of it.
func run(b []byte, step int) (passed int, v *verdict) {
	c := checker{max: testLimit}
	for len(b) > 0 && v == nil {
		n := min(step, len(b))
		var ok int
		ok, v = c.Step(b[:n])
		passed += ok
		b = b[n:]
	}
	return passed, v
}

func replyCode(v *verdict) uint16 {
	if len(v.reply) < 4 {
		return 0
	}
	return binary.BigEndian.Uint16(v.reply[2:])
}

func checkAgainst(t *testing.T, b []byte, step int, want story) {
	t.Helper()
	passed, v := run(b, step)
	if passed != want.passed {
		t.Errorf("in steps of %d: %d bytes passed, want %d", step, passed, want.passed)
	}
	switch {
	case v == nil && want.cause != 0:
		t.Errorf("in steps of %d: no verdict, want %v", step, want.cause)
	case v != nil && (v.cause != want.cause || replyCode(v) != want.code):
		t.Errorf("in steps of %d: %v with %d, want %v with %d", step, v.cause, replyCode(v), want.cause, want.code)
	}
}

func mask(b ...byte) []byte { return append(b, 0, 0, 0, 0) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// B002 (without compression): exasol/exasol-driver-go#139, brazilofmux/tinymux#792.
// B005: nats-io/nats-server#2519, dgrr/fastws#11. B007: oven-sh/bun#23832.
func TestB002_B005_B007_EveryRuleByteByByte(t *testing.T) {
	text := clientFrame(0x81, []byte("hi"))
	length16 := func(head byte, n uint16) []byte { return binary.BigEndian.AppendUint16([]byte{head, 0xFE}, n) }
	length64 := func(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{0x82, 0xFF}, n) }
	for _, test := range []struct {
		rule   string
		b      []byte
		passed int // -1: all
		cause  codec.Cause
		code   uint16
	}{
		{"a text, a binary, a ping and a pong pass", join(text, clientFrame(0x82, []byte{0xFF}), clientFrame(0x89, []byte("abcde")), clientFrame(0x8A, nil)), -1, 0, 0},
		{"an empty message passes", clientFrame(0x81, nil), -1, 0, 0},
		{"fragments with a ping between them pass", join(clientFrame(0x01, []byte("a")), clientFrame(0x89, nil), clientFrame(0x00, nil), clientFrame(0x80, []byte("b")), text), -1, 0, 0},
		{"the longest message passes", clientFrame(0x82, make([]byte, testLimit)), -1, 0, 0},
		{"the longest message in fragments passes", join(clientFrame(0x02, make([]byte, testLimit-1)), clientFrame(0x80, []byte{1}), text), -1, 0, 0},

		{"RSV1 on a text", []byte{0xC1}, 0, codec.CauseProtocol, 1002},
		{"RSV2 on a text", []byte{0xA1}, 0, codec.CauseProtocol, 1002},
		{"RSV3 on a text", []byte{0x91}, 0, codec.CauseProtocol, 1002},
		{"RSV1 on a ping", []byte{0xC9}, 0, codec.CauseProtocol, 1002},
		{"RSV1 on a continuation", join(clientFrame(0x01, []byte("h")), []byte{0xC0}), 7, codec.CauseProtocol, 1002},
		{"opcode 3", []byte{0x83}, 0, codec.CauseProtocol, 1002},
		{"opcode 11", []byte{0x8B}, 0, codec.CauseProtocol, 1002},
		{"a continuation of nothing", []byte{0x80}, 0, codec.CauseProtocol, 1002},
		{"a continuation after the last fragment", join(clientFrame(0x01, nil), clientFrame(0x80, nil), []byte{0x80}), 12, codec.CauseProtocol, 1002},
		{"a text within a message", join(clientFrame(0x02, nil), []byte{0x81}), 6, codec.CauseProtocol, 1002},
		{"a whole text within a message", join(clientFrame(0x02, nil), text), 6, codec.CauseProtocol, 1002},
		{"a frame without mask", []byte{0x81, 0x02}, 1, codec.CauseProtocol, 1002},
		{"a fragmented ping", []byte{0x09}, 0, codec.CauseProtocol, 1002},
		{"a ping of 126 bytes", []byte{0x89, 0xFE}, 1, codec.CauseProtocol, 1002},
		{"a close of 126 bytes", []byte{0x88, 0xFE}, 1, codec.CauseProtocol, 1002},
		{"125 in 16 bits", length16(0x81, 125), 3, codec.CauseProtocol, 1002},
		{"65535 in 64 bits", length64(65535), 9, codec.CauseProtocol, 1002},
		{"a length of 64 bits", length64(1 << 63), 9, codec.CauseProtocol, 1002},

		{"a byte too much, at the header", length16(0x82, testLimit+1), 3, codec.CauseTooLarge, 1009},
		{"2^63-1 bytes, at the header", length64(1<<63 - 1), 9, codec.CauseTooLarge, 1009},
		{"the sum of fragments, at the header", join(clientFrame(0x02, make([]byte, testLimit)), []byte{0x80, 0x81}), testLimit + 8 + 1, codec.CauseTooLarge, 1009},
		{"the limit of a message is not that of two", join(clientFrame(0x82, make([]byte, testLimit)), clientFrame(0x82, make([]byte, testLimit))), -1, 0, 0},

		{"a close without code", mask(0x88, 0x80), 5, codec.CauseAbrupt, 0},
		{"a close with half a code", append(mask(0x88, 0x81), 3), 6, codec.CauseProtocol, 1002},
		{"a close with 1000", clientClose(1000, ""), 7, codec.CauseNormal, 1000},
		{"a close with 1001 and a reason", clientClose(1001, "bye"), 10, codec.CauseGoingAway, 1001},
		{"a close with 4999", clientClose(4999, ""), 7, codec.CauseOf(4999), 4999},
		{"a close with a reason that is not UTF-8", clientClose(1000, "\xFF\xFE"), 9, codec.CauseInvalidText, 1007},
		{"nothing passes after a close", join(clientClose(1000, ""), text, clientClose(1000, ""), make([]byte, 1<<10)), 7, codec.CauseNormal, 1000},
	} {
		t.Run(test.rule, func(t *testing.T) {
			want := story{passed: test.passed, cause: test.cause, code: test.code}
			if want.passed < 0 {
				want.passed = len(test.b)
			}
			if got := tell(test.b, testLimit); got.passed != want.passed || got.cause != want.cause || got.code != want.code {
				t.Errorf("the naive reading says %d, %v, %d", got.passed, got.cause, got.code)
			}
			for _, step := range []int{1, 2, 3, 7, 1 << 20} {
				checkAgainst(t, test.b, step, want)
			}
		})
	}
}

// B005: nats-io/nats-server#2519, dgrr/fastws#11.
func TestB005_CloseCodesThatMustNotBeSent(t *testing.T) {
	for _, code := range []uint16{0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535} {
		checkAgainst(t, clientClose(code, ""), 3, story{passed: 7, cause: codec.CauseProtocol, code: 1002})
	}
}

func FuzzChecker(f *testing.F) {
	for _, b := range corpus() {
		f.Add(b, uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		checkAgainst(t, b, int(step)+1, tell(b, testLimit))
	})
}

// corpus are bytes from which a fuzzer gets far.
func corpus() [][]byte {
	return [][]byte{
		join(clientFrame(0x81, []byte("hi")), clientFrame(0x89, []byte("ping")), clientClose(1000, "bye")),
		join(clientFrame(0x01, []byte("\xC3")), clientFrame(0x89, nil), clientFrame(0x80, []byte("\xA9"))),
		join(clientFrame(0x01, []byte("\xC3")), clientFrame(0x80, []byte("\x28"))),
		join(clientFrame(0x82, make([]byte, 200)), clientFrame(0x82, make([]byte, 1001))),
		join(clientFrame(0x02, make([]byte, 600)), clientFrame(0x00, make([]byte, 600))),
		clientClose(1005, ""), clientClose(4400, "\xFF"), mask(0x88, 0x80), append(mask(0x88, 0x81), 3),
		{0x81, 0xFE, 0, 2}, {0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0}, {0xC1, 0x80}, {0x81, 0x02},
	}
}
