package codec

import (
	"bytes"
	"iter"
	"math"
	"strconv"
	"unsafe"
)

// value is one validated value, read where it lies. All decoding is written over
// it, once for both codecs. The zero value is absent.
type value struct {
	codec Codec
	raw   []byte // exactly the value's bytes, without space around
}

// alias is b as a string that shares its memory. Whoever uses it relies on b
// never changing, which Decode asks of its callers.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// kind is told by the first byte, so it may be asked of what only begins with a
// value.
func (v value) kind() kind {
	if len(v.raw) == 0 {
		return noKind
	}
	if v.codec == Msgpack {
		return packKind(v.raw[0])
	}
	switch v.raw[0] {
	case '{':
		return objectKind
	case '[':
		return arrayKind
	case '"':
		return textKind
	case 'n':
		return nullKind
	case 't', 'f':
		return boolKind
	}
	return numberKind
}

// nothing: absent, or null.
func (v value) nothing() bool { k := v.kind(); return k == noKind || k == nullKind }

// text is a text's meaning; it shares the value's memory where it can.
func (v value) text() (string, bool) {
	if v.kind() != textKind {
		return "", false
	}
	if v.codec == Msgpack {
		return alias(v.body()), true
	}
	inside := v.raw[1 : len(v.raw)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return alias(inside), true
	}
	return alias(appendUnescaped(make([]byte, 0, len(inside)), inside)), true
}

// body is what follows the head of a msgpack value.
func (v value) body() []byte {
	h, _ := packHead(v.raw)
	return v.raw[h.header:]
}

func (v value) boolean() (b, ok bool) {
	if v.kind() != boolKind {
		return false, false
	}
	if v.codec == Msgpack {
		return v.raw[0] == 0xc3, true
	}
	return v.raw[0] == 't', true
}

// integer is an integer or a float without a fraction. What does not fit comes
// as the nearest int64, which is outside of every range on the wire.
func (v value) integer() (n int64, ok bool) {
	x, ok := v.number()
	switch {
	case !ok:
		return 0, false
	case !x.float && x.negative:
		return int64(x.u), true
	case !x.float:
		return int64(min(x.u, math.MaxInt64)), true
	case x.f != math.Trunc(x.f): // NaN too
		return 0, false
	case x.f >= 1<<63:
		return math.MaxInt64, true
	case x.f < -1<<63:
		return math.MinInt64, true
	}
	return int64(x.f), true
}

// number is a number without loss: a float f, or else an integer whose two's
// complement is u.
type number struct {
	float    bool
	negative bool // an integer below zero
	u        uint64
	f        float64
}

func signed(i int64) number { return number{negative: i < 0, u: uint64(i)} }

// number reads an integer or float. Outside of data a JSON integer may be beyond
// 64 bits; it then comes as the nearest within.
func (v value) number() (number, bool) {
	if v.kind() != numberKind {
		return number{}, false
	}
	if v.codec == Msgpack {
		if packIsFloat(v.raw[0]) {
			return number{float: true, f: packFloat(v.body())}, true
		}
		return packInteger(v.raw), true
	}
	text := alias(v.raw)
	switch {
	case !isInteger(v.raw):
		return number{float: true, f: parseFloat(text)}, true
	case text[0] == '-':
		i, _ := strconv.ParseInt(text, 10, 64)
		return signed(i), true
	}
	u, _ := strconv.ParseUint(text, 10, 64)
	return number{u: u}, true
}

// isInteger reports whether a JSON number has neither fraction nor exponent.
func isInteger(literal []byte) bool {
	for _, c := range literal {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}

// elements yields an array's values; nothing for another kind.
func (v value) elements() iter.Seq[value] {
	return func(yield func(value) bool) {
		if v.kind() != arrayKind {
			return
		}
		s := source(v)
		for n := s.open(); s.more(&n); {
			if !yield(s.take()) {
				return
			}
		}
	}
}

// members yields an object's fields; nothing for another kind.
func (v value) members() iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		if v.kind() != objectKind {
			return
		}
		s := source(v)
		for n := s.open(); s.more(&n); {
			name, _ := s.take().text()
			if !yield(name, s.take()) {
				return
			}
		}
	}
}
