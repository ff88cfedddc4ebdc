package ws

import (
	"encoding/binary"

	"github.com/yaza-dev/pulse/codec"
)

// Opcodes of RFC 6455, section 5.2.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
)

// Bits of a frame's first two bytes.
const (
	bitFin  = 0x80
	bitsRsv = 0x70
	bitRsv1 = 0x40
	bitMask = 0x80
)

// maxControl is the longest payload of a control frame.
const maxControl = 125

// TextJSON and BinaryMsgpack are the framings of the protocols of package codec:
// one document is one unfragmented message. Immutable.
var (
	TextJSON      = newFraming(protocolOf(codec.JSON))
	BinaryMsgpack = newFraming(protocolOf(codec.Msgpack))
)

func protocolOf(c codec.Codec) codec.Protocol {
	for _, p := range codec.Protocols() {
		if p.Codec() == c {
			return p
		}
	}
	panic("ws: no protocol for codec " + c.String())
}

// framingOf is the framing of connections that speak p, shared where it can be.
func framingOf(p codec.Protocol) *codec.Framing {
	for _, f := range [...]*codec.Framing{TextJSON, BinaryMsgpack} {
		if f.Protocol == p {
			return f
		}
	}
	return newFraming(p)
}

func newFraming(p codec.Protocol) *codec.Framing {
	op := opcodeOf(p)
	return &codec.Framing{
		Name:     "websocket/" + p.Name(),
		Protocol: p,
		Wrap:     func(dst, doc []byte) []byte { return appendFrame(dst, op, doc) },
	}
}

// newDeflatedFraming is the framing of connections that have agreed to compression.
func newDeflatedFraming(p codec.Protocol, d *deflater) *codec.Framing {
	op := opcodeOf(p)
	return &codec.Framing{
		Name:     "websocket/" + p.Name() + "/deflate",
		Protocol: p,
		Wrap:     func(dst, doc []byte) []byte { return d.appendFrame(dst, op, doc) },
		Plain:    framingOf(p),
	}
}

func opcodeOf(p codec.Protocol) byte {
	if p.Binary() {
		return opBinary
	}
	return opText
}

// appendFrame appends one whole server frame, unmasked as servers' frames are.
func appendFrame(dst []byte, op byte, payload []byte) []byte {
	dst = append(dst, bitFin|op)
	switch n := len(payload); {
	case n <= maxControl:
		dst = append(dst, byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, 126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, 127), uint64(n))
	}
	return append(dst, payload...)
}

// closeFrame is a close frame with this code. The reason is cut to what fits, and
// at its first byte that is not printable ASCII: half a rune would make a browser
// report 1006 instead of the code.
func closeFrame(code uint16, reason string) []byte {
	payload := binary.BigEndian.AppendUint16(make([]byte, 0, maxControl), code)
	for i := 0; i < len(reason) && len(payload) < maxControl; i++ {
		if reason[i] < ' ' || reason[i] > '~' {
			break
		}
		payload = append(payload, reason[i])
	}
	return appendFrame(nil, opClose, payload)
}
