package ws

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/yaza-dev/pulse/codec"
)

// clientFrame is a client's frame in the shortest form; fin belongs to head.
func clientFrame(head byte, payload []byte) []byte {
	key := [4]byte{0x11, 0x22, 0x33, 0x44}
	b := []byte{head}
	switch n := len(payload); {
	case n <= 125:
		b = append(b, bitMask|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, bitMask|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, bitMask|127), uint64(n))
	}
	b = append(b, key[:]...)
	for i, c := range payload {
		b = append(b, c^key[i&3])
	}
	return b
}

func clientClose(code uint16, reason string) []byte {
	return clientFrame(bitFin|opClose, append(binary.BigEndian.AppendUint16(nil, code), reason...))
}

// story is all that a client's bytes mean.
type story struct {
	passed   int // bytes that are in order, before the one that ended it
	messages []message
	pings    []string
	cause    codec.Cause // 0: the bytes just end
	code     uint16      // of the close frame that answers; 0: it has no code
}

type message struct {
	text    string
	binary  bool
	invalid bool // text that is not UTF-8
}

// tell reads bytes in the most direct way: whole, with the rules of RFC 6455 in
// the order of the bytes that break them. It is what checker and reader are
// compared with.
func tell(b []byte, limit int) (s story) {
	var open bool
	var parts []byte
	var kind byte
	end := func(at int, cause codec.Cause, code uint16) story {
		s.passed, s.cause, s.code = at, cause, code
		return s
	}
	protocol := func(at int) story { return end(at, codec.CauseProtocol, 1002) }
	for i := 0; i < len(b); {
		op, fin := b[i]&15, b[i]&128 != 0
		known := op <= 2 || op >= 8 && op <= 10
		if b[i]&0x70 != 0 || !known || op >= 8 && !fin || op == 0 && !open || (op == 1 || op == 2) && open {
			return protocol(i)
		}
		if i+1 >= len(b) {
			break
		}
		n, head := uint64(b[i+1]&127), 2
		if b[i+1]&128 == 0 || op >= 8 && n > 125 {
			return protocol(i + 1)
		}
		last := i + 1 // the byte that completes the length
		switch n {
		case 126:
			if i+3 >= len(b) {
				return end(len(b), 0, 0)
			}
			n, head, last = uint64(b[i+2])<<8|uint64(b[i+3]), 4, i+3
			if n < 126 {
				return protocol(last)
			}
		case 127:
			if i+9 >= len(b) {
				return end(len(b), 0, 0)
			}
			n, head, last = binary.BigEndian.Uint64(b[i+2:]), 10, i+9
			if n < 65536 || n > 1<<63-1 {
				return protocol(last)
			}
		}
		if op < 8 && uint64(len(parts))+n > uint64(limit) {
			return end(last, codec.CauseTooLarge, 1009)
		}
		if len(b)-i-head < 4 || uint64(len(b)-i-head-4) < n {
			break
		}
		payload := make([]byte, n)
		for j := range payload {
			payload[j] = b[i+head+4+j] ^ b[i+head+j%4]
		}
		i += head + 4 + int(n)
		switch {
		case op == opPing:
			s.pings = append(s.pings, string(payload))
		case op == opClose && n == 0:
			return end(i-1, codec.CauseAbrupt, 0)
		case op == opClose:
			if n == 1 {
				return protocol(i - 1)
			}
			code := binary.BigEndian.Uint16(payload)
			allowed := code >= 1000 && code <= 1003 || code >= 1007 && code <= 1014 || code >= 3000 && code <= 4999
			if !allowed {
				return protocol(i - 1)
			}
			if !utf8.Valid(payload[2:]) {
				return end(i-1, codec.CauseInvalidText, 1007)
			}
			return end(i-1, codec.CauseOf(code), code)
		case op < 8:
			if op != 0 {
				kind = op
			}
			open, parts = !fin, append(parts, payload...)
			if fin {
				m := message{string(parts), kind == opBinary, kind == opText && !utf8.Valid(parts)}
				s.messages = append(s.messages, m)
				parts = nil
			}
		}
	}
	s.passed = len(b)
	return s
}
