package codec

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// plain marks the bytes that may stand in a JSON string as they are and are
// ASCII.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func (g *gate) space() {
	for g.pos < len(g.in) {
		switch g.in[g.pos] {
		case ' ', '\t', '\n', '\r':
			g.pos++
		default:
			return
		}
	}
}

// peek is the byte at the place, 0 at the end.
func (g *gate) peek() byte {
	if g.pos < len(g.in) {
		return g.in[g.pos]
	}
	return 0
}

// jsonValue walks one value that begins at the place. depth counts the
// containers around it, data those around the data that it belongs to.
func (g *gate) jsonValue(depth, data int) bool {
	switch c := g.peek(); {
	case c == '"':
		_, ok := g.jsonString()
		return ok
	case c == '{':
		return g.jsonObject(depth+1, data)
	case c == '[':
		return g.jsonArray(depth+1, data)
	case c == '-' || c >= '0' && c <= '9':
		return g.jsonNumber(data != outside)
	case c == 't':
		return g.literal("true")
	case c == 'f':
		return g.literal("false")
	case c == 'n':
		return g.literal("null")
	}
	return g.refuse("no JSON value")
}

func (g *gate) literal(word string) bool {
	if len(g.in)-g.pos < len(word) || string(g.in[g.pos:g.pos+len(word)]) != word {
		return g.refuse("no JSON value")
	}
	g.pos += len(word)
	return true
}

func (g *gate) jsonArray(depth, data int) bool {
	if !g.open(depth, data) {
		return false
	}
	g.pos++
	g.space()
	if g.peek() == ']' {
		g.pos++
		return true
	}
	for {
		if !g.jsonValue(depth, data) {
			return false
		}
		g.space()
		switch g.peek() {
		case ',':
			g.pos++
			g.space()
		case ']':
			g.pos++
			return true
		default:
			return g.refuse("array without an end")
		}
	}
}

func (g *gate) jsonObject(depth, data int) bool {
	if !g.open(depth, data) {
		return false
	}
	g.pos++
	g.space()
	if g.peek() == '}' {
		g.pos++
		return true
	}
	base := len(g.keys)
	for {
		k, ok := g.jsonKey()
		if !ok {
			return false
		}
		g.space()
		if g.peek() != ':' {
			return g.refuse("key without a value")
		}
		g.pos++
		g.space()
		if !g.member(JSON, g.key(k), depth, data) {
			return false
		}
		g.space()
		switch g.peek() {
		case ',':
			g.pos++
			g.space()
		case '}':
			g.pos++
			return g.unique(base)
		default:
			return g.refuse("object without an end")
		}
	}
}

// jsonKey walks a key and remembers it as it reads without escapes.
func (g *gate) jsonKey() (span, bool) {
	if g.peek() != '"' {
		return span{}, g.refuse("no key")
	}
	start := g.pos + 1
	escaped, ok := g.jsonString()
	if !ok {
		return span{}, false
	}
	k := span{uint32(start), uint32(g.pos - 1)}
	if escaped {
		base := len(g.in) + 1
		at := len(g.text)
		g.text = appendUnescaped(g.text, g.in[k.at:k.end])
		k = span{uint32(base + at), uint32(base + len(g.text))}
	}
	g.keys = append(g.keys, k)
	return k, true
}

// jsonString walks a string from its opening quote and reports whether it has
// escapes.
func (g *gate) jsonString() (escaped, ok bool) {
	in := g.in
	start := g.pos + 1
	wide := false
	for p := start; p < len(in); {
		c := in[p]
		switch {
		case plain[c]:
			p++
		case c == '"':
			g.pos = p + 1
			if wide && !utf8.Valid(in[start:p]) {
				return false, g.refuse("invalid UTF-8")
			}
			return escaped, true
		case c == '\\':
			n := escapeLen(in[p:])
			if n == 0 {
				return false, g.refuse("invalid escape or unpaired surrogate")
			}
			escaped = true
			p += n
		case c < 0x20:
			return false, g.refuse("control character in a string")
		default:
			wide = true
			p++
		}
	}
	return false, g.refuse("string without an end")
}

// escapeLen is the length of the escape sequence that b begins with, a
// surrogate pair being one; 0 when it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		r, ok := hex4(b[2:])
		if !ok {
			return 0
		}
		if !utf16.IsSurrogate(r) {
			return 6
		}
		if len(b) < 12 || b[6] != '\\' || b[7] != 'u' {
			return 0
		}
		low, ok := hex4(b[8:])
		if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
			return 0
		}
		return 12
	}
	return 0
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendUnescaped appends what the inside of a validated string means.
func appendUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			dst = append(dst, s[i])
			i++
			continue
		}
		n := escapeLen(s[i:])
		switch c := s[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(s[i+2:])
			if n == 12 {
				low, _ := hex4(s[i+8:])
				r = utf16.DecodeRune(r, low)
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		i += n
	}
	return dst
}

// jsonNumber walks a number; in data it must be one that msgpack can say.
func (g *gate) jsonNumber(inData bool) bool {
	start := g.pos
	if g.peek() == '-' {
		g.pos++
	}
	whole := g.digits()
	if whole == 0 || whole > 1 && g.in[g.pos-whole] == '0' {
		return g.refuse("no JSON number")
	}
	fraction, exponent := false, false
	if g.peek() == '.' {
		g.pos++
		fraction = true
		if g.digits() == 0 {
			return g.refuse("no JSON number")
		}
	}
	if c := g.peek(); c == 'e' || c == 'E' {
		g.pos++
		exponent = true
		if c := g.peek(); c == '+' || c == '-' {
			g.pos++
		}
		if g.digits() == 0 {
			return g.refuse("no JSON number")
		}
	}
	if !inData || g.fault != "" {
		return true
	}
	text := alias(g.in[start:g.pos])
	if !fraction && !exponent {
		if whole >= 19 && !fitsInteger(text, whole) {
			g.blame("data has an integer beyond 64 bits")
		}
	} else if exponent || whole > 308 {
		if f, _ := strconv.ParseFloat(text, 64); math.IsInf(f, 0) {
			g.blame("data has a number beyond float64")
		}
	}
	return true
}

// fitsInteger reports whether an integer literal is an int64 or uint64. Its
// length is looked at first, so that no error ever copies a long one.
func fitsInteger(text string, digits int) bool {
	if digits > 20 {
		return false
	}
	if text[0] == '-' {
		_, err := strconv.ParseInt(text, 10, 64)
		return err == nil
	}
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

// digits walks decimal digits and counts them.
func (g *gate) digits() int {
	start := g.pos
	for g.pos < len(g.in) && g.in[g.pos]-'0' <= 9 {
		g.pos++
	}
	return g.pos - start
}
