package codec

import (
	"math"
	"unicode/utf8"
)

// packValue walks one msgpack value that begins at the place; see jsonValue.
// Lengths are checked against what is left before anything is done with them.
func (g *gate) packValue(depth, data int) bool {
	h, ok := packHead(g.in[g.pos:])
	if !ok {
		return g.refuse("no msgpack value")
	}
	left := len(g.in) - g.pos - h.header
	if h.body > left || h.children > left {
		return g.refuse("a declared length that the input does not have")
	}
	start := g.pos + h.header
	g.pos = start + h.body
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
		start := g.pos
		if start < len(g.in) && packKind(g.in[start]) != textKind {
			if data == outside {
				return g.refuse("a key that is not text")
			}
			g.blame("data has a key that is not text")
			if !g.packValue(depth, data) || !g.packValue(depth, data) {
				return false
			}
			continue
		}
		if !g.packValue(depth, data) {
			return false
		}
		h, _ := packHead(g.in[start:])
		k := key{uint32(start + h.header), uint32(h.body)}
		g.keys = append(g.keys, k)
		if !g.member(Msgpack, g.key(k), depth, data) {
			return false
		}
	}
	return g.unique(base)
}
