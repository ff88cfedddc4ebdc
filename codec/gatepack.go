package codec

import (
	"math"
	"unicode/utf8"
)

// packHead reads the head of the value at the place and passes it. What the head
// declares is there when it returns true.
func (g *gate) packHead() (head, bool) {
	h, ok := packHead(g.in[g.pos:])
	if !ok {
		return h, g.refuse("no msgpack value")
	}
	g.pos += h.header
	if left := len(g.in) - g.pos; h.body > left || h.children > left {
		return h, g.refuse("a declared length that the input does not have")
	}
	return h, true
}

// packValue walks one msgpack value that begins at the place; see jsonValue.
func (g *gate) packValue(depth, data int) bool {
	h, ok := g.packHead()
	if !ok {
		return false
	}
	start := g.pos
	g.pos += h.body
	switch h.kind {
	case textKind:
		if !utf8.Valid(g.in[start:g.pos]) {
			return g.refuse("invalid UTF-8")
		}
	case numberKind:
		if data != outside && packIsFloat(g.in[start-h.header]) {
			if f := packFloat(g.in[start:g.pos]); math.IsNaN(f) || math.IsInf(f, 0) {
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
			return false
		}
		for range h.children {
			if !g.packValue(depth, data) {
				return false
			}
		}
	case objectKind:
		return g.packObject(h.children/2, depth+1, data)
	}
	return true
}

func (g *gate) packObject(n, depth, data int) bool {
	if !g.open(depth, data) {
		return false
	}
	base := len(g.keys)
	for range n {
		if g.pos < len(g.in) && packKind(g.in[g.pos]) != textKind {
			if data == outside {
				return g.refuse("a key that is not text")
			}
			g.blame("data has a key that is not text")
			for range 2 { // the key and its value
				if !g.packValue(depth, data) {
					return false
				}
			}
			continue
		}
		h, ok := g.packHead()
		if !ok {
			return false
		}
		k := span{uint32(g.pos), uint32(g.pos + h.body)}
		g.pos += h.body
		text := g.key(k)
		if !utf8.Valid(text) {
			return g.refuse("invalid UTF-8")
		}
		g.keys = append(g.keys, k)
		if !g.member(Msgpack, text, depth, data) {
			return false
		}
	}
	return g.unique(base)
}
