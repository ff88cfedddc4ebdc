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
func packHead(b []byte) (head, bool) {
	if len(b) == 0 {
		return head{}, false
	}
	c := b[0]
	switch {
	case c <= 0x7f || c >= 0xe0:
		return head{kind: numberKind, body: 1}, true
	case c <= 0x8f:
		return head{kind: objectKind, header: 1, children: 2 * int(c&0x0f)}, true
	case c <= 0x9f:
		return head{kind: arrayKind, header: 1, children: int(c & 0x0f)}, true
	case c <= 0xbf:
		return head{kind: textKind, header: 1, body: int(c & 0x1f)}, true
	}
	k := packKinds[c-0xc0]
	if k.kind == noKind {
		return head{}, false
	}
	h := head{kind: k.kind, header: 1 + int(k.length), body: int(k.body)}
	if len(b) < h.header {
		return head{}, false
	}
	n := int(bigEndian(b[1:h.header]))
	switch k.kind {
	case textKind, binKind:
		h.body = n
	case extKind:
		h.body += n
	case arrayKind:
		h.children = n
	case objectKind:
		h.children = 2 * n
	}
	return h, true
}

// packKinds describes the first bytes from 0xc0 to 0xdf: kind, bytes of length
// after it, fixed bytes of body. nil and the booleans keep their byte as header.
var packKinds = [...]struct {
	kind         kind
	length, body uint8
}{
	{nullKind, 0, 0}, {noKind, 0, 0}, {boolKind, 0, 0}, {boolKind, 0, 0},
	{binKind, 1, 0}, {binKind, 2, 0}, {binKind, 4, 0},
	{extKind, 1, 1}, {extKind, 2, 1}, {extKind, 4, 1},
	{numberKind, 0, 4}, {numberKind, 0, 8},
	{numberKind, 0, 1}, {numberKind, 0, 2}, {numberKind, 0, 4}, {numberKind, 0, 8},
	{numberKind, 0, 1}, {numberKind, 0, 2}, {numberKind, 0, 4}, {numberKind, 0, 8},
	{extKind, 0, 2}, {extKind, 0, 3}, {extKind, 0, 5}, {extKind, 0, 9}, {extKind, 0, 17},
	{textKind, 1, 0}, {textKind, 2, 0}, {textKind, 4, 0},
	{arrayKind, 2, 0}, {arrayKind, 4, 0},
	{objectKind, 2, 0}, {objectKind, 4, 0},
}

// packKind is the kind of a value that begins with c.
func packKind(c byte) kind {
	switch {
	case c <= 0x7f || c >= 0xe0:
		return numberKind
	case c <= 0x8f:
		return objectKind
	case c <= 0x9f:
		return arrayKind
	case c <= 0xbf:
		return textKind
	}
	return packKinds[c-0xc0].kind
}

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
