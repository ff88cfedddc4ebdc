package codec

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// Depths, in arrays and maps.
const (
	maxFrameDepth = 64 // the frame itself is 1
	maxDataDepth  = 48 // data counted by itself
)

// outside is the data depth of everything that is not data.
const outside = -1

// gate walks one message once and decides whether it is well formed, before
// anything is decoded or allocated for it. It notes where the frame's fields are
// on the way. Faults that concern data alone do not stop it: they refuse one
// request, not the connection.
//
// Owned by one decode at a time; its scratch is reused.
type gate struct {
	in  []byte
	pos int
	why string // what makes the message malformed

	fields  fields // of the frame, when a frame is walked
	inRooms bool   // below the frame's rooms, whose entries have data too
	fault   string // first fault of the data that is being walked
	inFault string // first fault of the frame's data

	keys  []span   // keys of all objects that are open, innermost last; see key
	text  []byte   // unescaped forms of the keys that have escapes
	table []uint64 // hash set of one large object at a time
	seed  maphash.Seed
}

func (g *gate) reset(in []byte) {
	g.in, g.pos, g.why = in, 0, ""
	g.inRooms, g.fault, g.inFault = false, "", ""
	g.keys, g.text = g.keys[:0], g.text[:0]
}

// frame walks a whole message that must be one object.
func (g *gate) frame(c Codec, message []byte) bool {
	return g.whole(c, message, outside)
}

// data walks a whole message that is data and nothing else.
func (g *gate) data(c Codec, raw []byte) bool {
	return g.whole(c, raw, 0)
}

func (g *gate) whole(c Codec, in []byte, data int) bool {
	g.reset(in)
	if len(in) > maxInput {
		return g.refuse("larger than any message can be")
	}
	if c == JSON {
		g.space()
	}
	if data == outside && (value{c, in[g.pos:]}).kind() != objectKind {
		return g.refuse("no object")
	}
	if !g.value(c, 0, data) {
		return false
	}
	if c == JSON {
		g.space()
	}
	if g.pos != len(in) {
		return g.refuse("bytes left over")
	}
	return true
}

// maxInput keeps every place in a message and its unescaped keys within a key.
const maxInput = 1 << 30

func (g *gate) refuse(why string) bool {
	g.why = why
	return false
}

// blame notes the first fault of the data being walked.
func (g *gate) blame(fault string) {
	if g.fault == "" {
		g.fault = fault
	}
}

// open checks the depth of a container; depth counts it.
func (g *gate) open(depth, data int) bool {
	if depth > maxFrameDepth {
		return g.refuse("nested too deep")
	}
	if data != outside && depth-data > maxDataDepth {
		g.blame("data is nested too deep")
	}
	return true
}

// member walks the value of an object's field; depth is the object's. It knows
// which fields are data and notes those of the frame.
func (g *gate) member(c Codec, k []byte, depth, data int) bool {
	if data != outside {
		return g.value(c, depth, data)
	}
	if depth != 1 {
		if g.inRooms && depth == 3 && string(k) == "data" {
			data = depth
		}
		return g.value(c, depth, data)
	}
	f := fieldOf(alias(k))
	if f == fieldData {
		data = depth
	}
	g.inRooms = f == fieldRooms
	start := g.pos
	if !g.value(c, depth, data) {
		return false
	}
	g.fields[f] = span{uint32(start), uint32(g.pos)}
	if f == fieldData {
		g.inFault = g.fault
	}
	g.inRooms, g.fault = false, ""
	return true
}

func (g *gate) value(c Codec, depth, data int) bool {
	if c == Msgpack {
		return g.packValue(depth, data)
	}
	return g.jsonValue(depth, data)
}

// key is the text of a key: a piece of the message, or, from len(in)+1 on, of the
// unescaped texts.
func (g *gate) key(k span) []byte {
	if n := uint32(len(g.in)); k.at > n {
		return g.text[k.at-n-1 : k.end-n-1]
	}
	return g.in[k.at:k.end]
}

// fewKeys is up to how many keys comparing each with each is cheaper than a set,
// even where all differ in their last byte only.
const fewKeys = 4

// unique closes the object whose keys begin at base and reports whether they
// differ. It is called once per object, so one set serves all of them, and the
// whole message costs a time linear in its keys: the seed is secret, so nobody
// can choose keys that collide.
func (g *gate) unique(base int) bool {
	keys := g.keys[base:]
	g.keys = g.keys[:base]
	if len(keys) > fewKeys {
		return g.uniqueMany(keys)
	}
	for i, a := range keys {
		for _, b := range keys[:i] {
			if a.end-a.at == b.end-b.at && bytes.Equal(g.key(a), g.key(b)) {
				return g.refuse("repeated key")
			}
		}
	}
	return true
}

func (g *gate) uniqueMany(keys []span) bool {
	size := 1 << bits.Len(uint(2*len(keys)-1))
	if cap(g.table) < size {
		g.table = make([]uint64, size)
	}
	table := g.table[:size]
	clear(table)
	mask := uint64(size - 1)
	for i, k := range keys {
		text := g.key(k)
		h := maphash.Bytes(g.seed, text)
		// A slot is the upper half of the hash and the key's number plus one.
		slot := h&^0xffffffff | uint64(i+1)
		at := h & mask
		for ; table[at] != 0; at = (at + 1) & mask {
			if table[at]>>32 != slot>>32 {
				continue
			}
			if other := keys[uint32(table[at])-1]; bytes.Equal(g.key(other), text) {
				return g.refuse("repeated key")
			}
		}
		table[at] = slot
	}
	return true
}
