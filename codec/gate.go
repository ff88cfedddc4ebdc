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
// The walk is functions that are given the place where something begins and return
// the one where it ends, or stop.
//
// Owned by one decode at a time; its scratch is reused.
type gate struct {
	in  []byte
	why string // what makes the message malformed

	fields  fields // of the frame, when a frame is walked
	inRooms bool   // below the frame's rooms, whose entries have data too
	fault   string // first fault of the data that is being walked
	inFault string // first fault of the frame's data

	keys  []span   // keys of all objects that are open, innermost last, but for the frame's known ones; see key
	text  []byte   // unescaped forms of the keys that have escapes
	table []uint64 // hash set of one large object at a time
	seed  maphash.Seed
}

func (g *gate) reset(in []byte) {
	g.in, g.why = in, ""
	g.inRooms, g.fault, g.inFault = false, "", ""
	g.keys, g.text = g.keys[:0], g.text[:0]
}

// frame walks a whole message that must be one object.
func (g *gate) frame(c Codec, message []byte) bool {
	g.fields = fields{}
	return g.whole(c, message, outside)
}

// data walks a whole message that is data and nothing else.
func (g *gate) data(c Codec, raw []byte) bool {
	return g.whole(c, raw, 0)
}

func (g *gate) whole(c Codec, in []byte, data int) bool {
	g.reset(in)
	if len(in) > maxInput {
		return g.refuse("larger than any message can be") != stop
	}
	p := 0
	if c == JSON {
		p = g.space(p)
	}
	if data == outside && (value{c, in[p:]}).kind() != objectKind {
		return g.refuse("no object") != stop
	}
	if p = g.value(c, p, 0, data); p == stop {
		return false
	}
	if c == JSON {
		p = g.space(p)
	}
	if p != len(in) {
		return g.refuse("bytes left over") != stop
	}
	return true
}

// maxInput keeps every place in a message and its unescaped keys within a key.
const maxInput = 1 << 30

// stop is no place in a message: the walk has ended with a refusal.
const stop = -1

func (g *gate) refuse(why string) int {
	g.why = why
	return stop
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
		return g.refuse("nested too deep") != stop
	}
	if data != outside && depth-data > maxDataDepth {
		g.blame("data is nested too deep")
	}
	return true
}

// field walks the value at p of a field that is not within data; depth is that of
// its object. Keys are kept until their object is closed, but for the frame's known
// ones: where their values are is noted, and tells whether there was one before.
func (g *gate) field(c Codec, k span, p, depth int) int {
	f := fieldUnknown
	if depth == 1 {
		f = fieldOf(alias(g.key(k)))
	}
	data := outside
	switch {
	case f == fieldUnknown:
		g.keys = append(g.keys, k)
		if g.inRooms && depth == 3 && string(g.key(k)) == "data" {
			data = depth
		}
		return g.value(c, p, depth, data)
	case g.fields[f].end != 0:
		return g.refuse("repeated key")
	case f == fieldData:
		data = 1
	}
	g.inRooms = f == fieldRooms
	end := g.value(c, p, 1, data)
	if end == stop {
		return stop
	}
	g.fields[f] = span{uint32(p), uint32(end)}
	switch f {
	case fieldData:
		g.inFault = g.fault
	case fieldRooms:
		g.inRooms, g.fault = false, ""
	}
	return end
}

// value walks the value at p. depth counts the containers around it, data those
// around the data that it belongs to.
func (g *gate) value(c Codec, p, depth, data int) int {
	if c == Msgpack {
		return g.packValue(p, depth, data)
	}
	return g.jsonValue(p, depth, data)
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

// unique closes the object whose keys begin at base and which ends at p, and sees
// to it that they differ. It is called once per object, so one set serves all of
// them, and the whole message costs a time linear in its keys: the seed is secret,
// so nobody can choose keys that collide.
func (g *gate) unique(base, p int) int {
	keys := g.keys[base:]
	g.keys = g.keys[:base]
	if len(keys) > fewKeys {
		return g.uniqueMany(keys, p)
	}
	for i, k := range keys {
		text := g.key(k)
		for _, other := range keys[:i] {
			if int(other.end-other.at) == len(text) && bytes.Equal(g.key(other), text) {
				return g.refuse("repeated key")
			}
		}
	}
	return p
}

func (g *gate) uniqueMany(keys []span, p int) int {
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
	return p
}
