package codec

import (
	"encoding/binary"
	"math"
)

// kind is what a value is in the document model. It is finer than JSON, coarser
// than msgpack.
type kind uint8

const (
	noKind kind = iota // absent, or the byte that msgpack reserves
	nullKind
	boolKind
	numberKind
	textKind
	binKind
	extKind
	arrayKind
	objectKind
)

// head is the first bytes of a msgpack value. body is the number of bytes that
// follow it, children that of values; a value has one or the other.
type head struct {
	kind                   kind
	header, body, children int
}

// packHead reads the head of the value that b begins with; false when b is too
// short for it or the byte is reserved.
func packHead(b []byte) (h head, ok bool) {
	if len(b) == 0 {
		return head{}, false
	}
	s := &packShapes[b[0]]
	h = head{kind: s.kind, header: 1 + int(s.length), body: int(s.body)}
	if s.kind == noKind || len(b) < h.header {
		return head{}, false
	}
	n := int(b[0] & s.low)
	if s.length > 0 {
		n = int(bigEndian(b[1:h.header]))
	}
	switch s.kind {
	case textKind, binKind, extKind:
		h.body += n
	case arrayKind:
		h.children = n
	case objectKind:
		h.children = 2 * n
	}
	return h, true
}

// packKind is the kind of a value that begins with c.
func packKind(c byte) kind { return packShapes[c].kind }

// packShape is what a value's first byte says: its kind, the bits of the byte that
// are a length, the bytes of length after it, and the bytes of body that there are
// whatever the length.
type packShape struct {
	kind              kind
	low, length, body uint8
}

var packShapes = func() (t [256]packShape) {
	for c := range t {
		switch {
		case c <= 0x7f || c >= 0xe0:
			t[c] = packShape{kind: numberKind}
		case c <= 0x8f:
			t[c] = packShape{kind: objectKind, low: 0x0f}
		case c <= 0x9f:
			t[c] = packShape{kind: arrayKind, low: 0x0f}
		case c <= 0xbf:
			t[c] = packShape{kind: textKind, low: 0x1f}
		}
	}
	copy(t[0xc0:], []packShape{
		{kind: nullKind}, {}, {kind: boolKind}, {kind: boolKind},
		{kind: binKind, length: 1}, {kind: binKind, length: 2}, {kind: binKind, length: 4},
		{kind: extKind, length: 1, body: 1}, {kind: extKind, length: 2, body: 1}, {kind: extKind, length: 4, body: 1},
		{kind: numberKind, body: 4}, {kind: numberKind, body: 8},
		{kind: numberKind, body: 1}, {kind: numberKind, body: 2}, {kind: numberKind, body: 4}, {kind: numberKind, body: 8},
		{kind: numberKind, body: 1}, {kind: numberKind, body: 2}, {kind: numberKind, body: 4}, {kind: numberKind, body: 8},
		{kind: extKind, body: 2}, {kind: extKind, body: 3}, {kind: extKind, body: 5}, {kind: extKind, body: 9}, {kind: extKind, body: 17},
		{kind: textKind, length: 1}, {kind: textKind, length: 2}, {kind: textKind, length: 4},
		{kind: arrayKind, length: 2}, {kind: arrayKind, length: 4},
		{kind: objectKind, length: 2}, {kind: objectKind, length: 4},
	})
	return t
}()

// packEnd is the length of the validated value that b begins with.
func packEnd(b []byte) int {
	at := 0
	for pending := 1; pending > 0; pending-- {
		h, _ := packHead(b[at:])
		at += h.header + h.body
		pending += h.children
	}
	return at
}

// packIsFloat reports whether a value that begins with c is a float32 or float64.
func packIsFloat(c byte) bool { return c == 0xca || c == 0xcb }

// packFloat reads the body of a float32 or float64.
func packFloat(body []byte) float64 {
	if len(body) == 4 {
		return float64(math.Float32frombits(binary.BigEndian.Uint32(body)))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(body))
}

// packInteger reads a validated integer of any width.
func packInteger(b []byte) number {
	c := b[0]
	if c <= 0x7f {
		return number{u: uint64(c)}
	}
	if c >= 0xe0 {
		return signed(int64(int8(c)))
	}
	u := bigEndian(b[1:])
	if c >= 0xd0 {
		shift := 64 - 8*(len(b)-1)
		return signed(int64(u<<shift) >> shift)
	}
	return number{u: u}
}

func bigEndian(b []byte) (n uint64) {
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}
