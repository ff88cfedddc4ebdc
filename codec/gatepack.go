package codec

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// packHead reads the head of the value at p, and returns the place behind it. What
// the head declares is there.
func (g *gate) packHead(p int) (head, int) {
	h, ok := packHead(g.in[p:])
	if !ok {
		return h, g.refuse("no msgpack value")
	}
	p += h.header
	if left := len(g.in) - p; h.body > left || h.children > left {
		return h, g.refuse("a declared length that the input does not have")
	}
	return h, p
}

// packValue walks one msgpack value that begins at p; see value.
func (g *gate) packValue(p, depth, data int) int {
	if p < len(g.in) {
		switch c := g.in[p]; {
		case c <= 0x7f || c >= 0xe0: // an integer, and all of it
			return p + 1
		case packKind(c) == textKind:
			_, p = g.packText(p)
			return p
		}
	}
	h, start := g.packHead(p)
	if start == stop {
		return stop
	}
	end := start + h.body
	switch h.kind {
	case numberKind:
		if data != outside && packIsFloat(g.in[p]) {
			if f := packFloat(g.in[start:end]); math.IsNaN(f) || math.IsInf(f, 0) {
				g.blame("data has a number that is not finite")
			}
		}
	case extKind:
		if data != outside {
			g.blame("data has an extension type")
		}
	case arrayKind:
		depth++
		if !g.open(depth, data) {
			return stop
		}
		for range h.children {
			if end = g.packValue(end, depth, data); end == stop {
				return stop
			}
		}
	case objectKind:
		return g.packObject(start, h.children/2, depth+1, data)
	}
	return end
}

// A text of up to 31 bytes, which most are, has its length in its first byte.
const (
	fixTextLength = 0x1f
	fixTextEnd    = 0xbf
)

// packText walks a text, of which only the kind is known. It returns where it
// stands without its head, and where it ends.
func (g *gate) packText(p int) (span, int) {
	start := p + 1
	end := start + int(g.in[p]&fixTextLength)
	if g.in[p] > fixTextEnd || end > len(g.in) {
		h, at := g.packHead(p)
		if at == stop {
			return span{}, stop
		}
		start, end = at, at+h.body
	}
	if !g.shortASCII(start, end) && !utf8.Valid(g.in[start:end]) {
		return span{}, g.refuse("invalid UTF-8")
	}
	return span{uint32(start), uint32(end)}, end
}

// shortASCII reports whether a piece of the message is ASCII of up to 8 bytes, with
// one look at 8 bytes of the message; where there are not so many it says no.
func (g *gate) shortASCII(start, end int) bool {
	const high = 0x8080808080808080
	return end-start <= 8 && start+8 <= len(g.in) &&
		binary.LittleEndian.Uint64(g.in[start:])&(1<<(8*(end-start))-1)&high == 0
}

func (g *gate) packObject(p, n, depth, data int) int {
	if !g.open(depth, data) {
		return stop
	}
	base := len(g.keys)
	for range n {
		if p < len(g.in) && packKind(g.in[p]) == textKind {
			var k span
			if k, p = g.packText(p); p == stop {
				return stop
			}
			if data == outside {
				p = g.field(Msgpack, k, p, depth)
			} else {
				g.keys = append(g.keys, k)
				p = g.packValue(p, depth, data)
			}
		} else {
			p = g.packOddMember(p, depth, data)
		}
		if p == stop {
			return stop
		}
	}
	return g.unique(base, p)
}

// packOddMember walks a key that is no text and its value. In data it refuses the
// request only.
func (g *gate) packOddMember(p, depth, data int) int {
	if data == outside && p < len(g.in) {
		return g.refuse("a key that is not text")
	}
	g.blame("data has a key that is not text")
	if p = g.packValue(p, depth, data); p == stop {
		return stop
	}
	return g.packValue(p, depth, data)
}
