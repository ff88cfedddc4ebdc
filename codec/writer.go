package codec

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// writer appends values in one codec. All encoding is written over it, once for
// both codecs. It cannot fail and allocates nothing but what b grows by.
type writer struct {
	codec Codec
	b     []byte
}

// container is an array or object that is being written.
type container struct {
	at int // of its head
	n  int // elements, or fields
}

func (w *writer) openObject() container { return w.open('{') }
func (w *writer) openArray() container  { return w.open('[') }

// open leaves one byte for a msgpack head; close makes room where it takes more.
func (w *writer) open(c byte) container {
	w.b = append(w.b, c)
	return container{at: len(w.b) - 1}
}

// field begins the next field of an object. name is one of the protocol's: short
// and without anything to escape.
func (w *writer) field(o *container, name string) {
	w.item(o)
	if w.codec == Msgpack {
		w.b = append(append(w.b, 0xa0|byte(len(name))), name...)
		return
	}
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

// item begins the next element of an array.
func (w *writer) item(c *container) {
	if w.codec == JSON && c.n > 0 {
		w.b = append(w.b, ',')
	}
	c.n++
}

func (w *writer) closeObject(c container) {
	if w.codec == JSON {
		w.b = append(w.b, '}')
		return
	}
	w.head(c.at, c.n, 0x80, 15, 0, 0xde)
}

func (w *writer) closeArray(c container) {
	if w.codec == JSON {
		w.b = append(w.b, ']')
		return
	}
	w.head(c.at, c.n, 0x90, 15, 0, 0xdc)
}

// head writes a msgpack head over the one byte left for it, moving what follows
// where it takes more. fix with up to most is the short form; then come the
// forms with one (if wide1 is not 0), two and four bytes of length.
func (w *writer) head(at, n int, fix byte, most int, wide1, wide2 byte) {
	switch {
	case n <= most:
		w.b[at] = fix | byte(n)
	case n <= math.MaxUint8 && wide1 != 0:
		w.b[at] = wide1
		w.b = slices.Insert(w.b, at+1, byte(n))
	case n <= math.MaxUint16:
		w.b[at] = wide2
		w.b = slices.Insert(w.b, at+1, byte(n>>8), byte(n))
	default:
		w.b[at] = wide2 + 1
		w.b = slices.Insert(w.b, at+1, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
}

func (w *writer) null() {
	if w.codec == Msgpack {
		w.b = append(w.b, 0xc0)
		return
	}
	w.b = append(w.b, "null"...)
}

func (w *writer) boolean(b bool) {
	switch {
	case w.codec == JSON:
		w.b = strconv.AppendBool(w.b, b)
	case b:
		w.b = append(w.b, 0xc3)
	default:
		w.b = append(w.b, 0xc2)
	}
}

// text writes s; what is not UTF-8 in it is replaced, for a client would drop the
// connection over it.
func (w *writer) text(s string) {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if w.codec == JSON {
		w.b = appendQuoted(w.b, s)
		return
	}
	w.b = append(w.b, 0)
	w.head(len(w.b)-1, len(s), 0xa0, 31, 0xd9, 0xda)
	w.b = append(w.b, s...)
}

// escaped writes a text that is given as the inside of a validated JSON string.
func (w *writer) escaped(inside []byte) {
	w.b = append(w.b, 0)
	at := len(w.b) - 1
	w.b = appendUnescaped(w.b, inside)
	w.head(at, len(w.b)-at-1, 0xa0, 31, 0xd9, 0xda)
}

// bin writes bytes as the base64 text that JSON has for them. msgpack takes bin
// from msgpack only, as it is.
func (w *writer) bin(p []byte) {
	w.b = append(w.b, '"')
	w.b = base64.StdEncoding.AppendEncode(w.b, p)
	w.b = append(w.b, '"')
}

func (w *writer) uint(u uint64) { w.number(number{u: u}) }
func (w *writer) int(i int64)   { w.number(signed(i)) }

// ms writes a duration in whole milliseconds.
func (w *writer) ms(d time.Duration) { w.int(millis(d)) }

// millis rounds up, so that a short wait never becomes none, and a negative
// duration counts as none.
func millis(d time.Duration) int64 {
	return int64(max(0, d)/time.Millisecond) + min(1, int64(max(0, d)%time.Millisecond))
}

func (w *writer) number(x number) {
	if w.codec == JSON {
		switch {
		case x.float:
			w.b = appendFloat(w.b, x.f)
		case x.negative:
			w.b = strconv.AppendInt(w.b, int64(x.u), 10)
		default:
			w.b = strconv.AppendUint(w.b, x.u, 10)
		}
		return
	}
	b := w.b
	switch i := int64(x.u); {
	case x.float:
		b = binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(x.f))
	case x.negative && i >= -32 || !x.negative && x.u <= math.MaxInt8:
		b = append(b, byte(i))
	case !x.negative && x.u <= math.MaxUint8:
		b = append(b, 0xcc, byte(i))
	case !x.negative && x.u <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(i))
	case !x.negative && x.u <= math.MaxUint32:
		b = binary.BigEndian.AppendUint32(append(b, 0xce), uint32(i))
	case !x.negative:
		b = binary.BigEndian.AppendUint64(append(b, 0xcf), x.u)
	case i >= math.MinInt8:
		b = append(b, 0xd0, byte(i))
	case i >= math.MinInt16:
		b = binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(i))
	case i >= math.MinInt32:
		b = binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(i))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0xd3), x.u)
	}
	w.b = b
}

// appendFloat writes the fewest digits that read back equal. From 2^53
// on it has an exponent: without one it would read as an integer, and the digits
// that the shortest form leaves out would be wrong. Negative zero keeps its sign
// only with a fraction.
func appendFloat(b []byte, f float64) []byte {
	abs := math.Abs(f)
	switch {
	case f == 0 && math.Signbit(f):
		return append(b, "-0.0"...)
	case f == 0 || abs >= 1e-6 && abs < 1<<53:
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'e', -1, 64)
}

// appendQuoted writes valid UTF-8 as a JSON string, escaping only what must be.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if plain[c] || c >= utf8.RuneSelf {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}

// data writes data as it is, or transcoded; absent data as null.
func (w *writer) data(d Data) {
	switch {
	case d.IsZero():
		w.null()
	case d.codec == w.codec:
		w.b = append(w.b, d.raw...)
	default:
		w.copy(&source{d.codec, d.raw})
	}
}

// copy writes the next value of s in the writer's codec, in its shortest form.
func (w *writer) copy(s *source) {
	switch s.kind() {
	case arrayKind:
		a := w.openArray()
		for n := s.open(); s.more(&n); {
			w.item(&a)
			w.copy(s)
		}
		w.closeArray(a)
	case objectKind:
		o := w.openObject()
		for n := s.open(); s.more(&n); {
			w.item(&o)
			w.copy(s)
			if w.codec == JSON {
				w.b = append(w.b, ':')
			}
			w.copy(s)
		}
		w.closeObject(o)
	default:
		w.scalar(s.take())
	}
}

func (w *writer) scalar(v value) {
	switch v.kind() {
	case boolKind:
		b, _ := v.boolean()
		w.boolean(b)
	case numberKind:
		x, _ := v.number()
		w.number(x)
	case textKind:
		if v.codec == JSON && w.codec == Msgpack {
			w.escaped(v.raw[1 : len(v.raw)-1])
			return
		}
		s, _ := v.text()
		w.text(s)
	case binKind:
		w.bin(v.body())
	default:
		w.null()
	}
}
