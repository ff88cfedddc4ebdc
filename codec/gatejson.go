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

func (g *gate) space(p int) int {
	for p < len(g.in) {
		switch g.in[p] {
		case ' ', '\t', '\n', '\r':
			p++
		default:
			return p
		}
	}
	return p
}

// peek is the byte at p, 0 at the end.
func (g *gate) peek(p int) byte {
	if p < len(g.in) {
		return g.in[p]
	}
	return 0
}

// jsonValue walks one value that begins at p; see value.
func (g *gate) jsonValue(p, depth, data int) int {
	switch c := g.peek(p); {
	case c == '"':
		_, p = g.jsonString(p)
		return p
	case c == '{':
		return g.jsonObject(p, depth+1, data)
	case c == '[':
		return g.jsonArray(p, depth+1, data)
	case c == '-' || c >= '0' && c <= '9':
		return g.jsonNumber(p, data != outside)
	case c == 't':
		return g.literal(p, "true")
	case c == 'f':
		return g.literal(p, "false")
	case c == 'n':
		return g.literal(p, "null")
	}
	return g.refuse("no JSON value")
}

func (g *gate) literal(p int, word string) int {
	end := p + len(word)
	if end > len(g.in) || string(g.in[p:end]) != word {
		return g.refuse("no JSON value")
	}
	return end
}

func (g *gate) jsonArray(p, depth, data int) int {
	if !g.open(depth, data) {
		return stop
	}
	p = g.space(p + 1)
	if g.peek(p) == ']' {
		return p + 1
	}
	for {
		if p = g.jsonValue(p, depth, data); p == stop {
			return stop
		}
		p = g.space(p)
		switch g.peek(p) {
		case ',':
			p = g.space(p + 1)
		case ']':
			return p + 1
		default:
			return g.refuse("array without an end")
		}
	}
}

func (g *gate) jsonObject(p, depth, data int) int {
	if !g.open(depth, data) {
		return stop
	}
	p = g.space(p + 1)
	if g.peek(p) == '}' {
		return p + 1
	}
	base := len(g.keys)
	for {
		var k span
		if k, p = g.jsonKey(p); p == stop {
			return stop
		}
		p = g.space(p)
		if g.peek(p) != ':' {
			return g.refuse("key without a value")
		}
		p = g.space(p + 1)
		if data == outside {
			p = g.field(JSON, k, p, depth)
		} else {
			g.keys = append(g.keys, k)
			p = g.jsonValue(p, depth, data)
		}
		if p == stop {
			return stop
		}
		p = g.space(p)
		switch g.peek(p) {
		case ',':
			p = g.space(p + 1)
		case '}':
			return g.unique(base, p+1)
		default:
			return g.refuse("object without an end")
		}
	}
}

// jsonKey walks a key. The span is how it reads without escapes.
func (g *gate) jsonKey(p int) (span, int) {
	if g.peek(p) != '"' {
		return span{}, g.refuse("no key")
	}
	escaped, end := g.jsonString(p)
	if end == stop {
		return span{}, stop
	}
	k := span{uint32(p + 1), uint32(end - 1)}
	if escaped {
		base := len(g.in) + 1
		at := len(g.text)
		g.text = appendUnescaped(g.text, g.in[k.at:k.end])
		k = span{uint32(base + at), uint32(base + len(g.text))}
	}
	return k, end
}

// jsonString walks a string from its opening quote and reports whether it has
// escapes.
func (g *gate) jsonString(p int) (escaped bool, end int) {
	in := g.in
	start := p + 1
	wide := false
	for p = start; p < len(in); {
		c := in[p]
		switch {
		case plain[c]:
			p++
		case c == '"':
			if wide && !utf8.Valid(in[start:p]) {
				return false, g.refuse("invalid UTF-8")
			}
			return escaped, p + 1
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
func (g *gate) jsonNumber(p int, inData bool) int {
	start := p
	if g.peek(p) == '-' {
		p++
	}
	first := p
	p = g.digits(p)
	whole := p - first
	if whole == 0 || whole > 1 && g.in[first] == '0' {
		return g.refuse("no JSON number")
	}
	fraction, exponent := false, false
	if g.peek(p) == '.' {
		fraction = true
		first, p = p+1, g.digits(p+1)
		if p == first {
			return g.refuse("no JSON number")
		}
	}
	if c := g.peek(p); c == 'e' || c == 'E' {
		exponent = true
		first = p + 1
		if c := g.peek(first); c == '+' || c == '-' {
			first++
		}
		if p = g.digits(first); p == first {
			return g.refuse("no JSON number")
		}
	}
	if !inData || g.fault != "" {
		return p
	}
	text := alias(g.in[start:p])
	if !fraction && !exponent {
		if whole >= 19 && !fitsInteger(text, whole) {
			g.blame("data has an integer beyond 64 bits")
		}
	} else if exponent || whole > 308 {
		if math.IsInf(parseFloat(text), 0) {
			g.blame("data has a number beyond float64")
		}
	}
	return p
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

// digits walks decimal digits, if there are any.
func (g *gate) digits(p int) int {
	for p < len(g.in) && g.in[p]-'0' <= 9 {
		p++
	}
	return p
}
