package memory

import (
	"encoding/binary"

	"github.com/yaza-dev/pulse/codec"
)

// headerSize is the length that precedes a document, since one write may carry
// many documents and end within one.
const headerSize = 4

// framings of all links whose protocol is one of codec's. They are shared, so
// that a frame is encoded once for all clients. Immutable.
var framings = func() []*codec.Framing {
	var all []*codec.Framing
	for _, p := range codec.Protocols() {
		all = append(all, newFraming(p))
	}
	return all
}()

// FramingOf returns the framing of links that speak p.
func FramingOf(p codec.Protocol) *codec.Framing {
	for _, f := range framings {
		if f.Protocol == p {
			return f
		}
	}
	return newFraming(p)
}

func newFraming(p codec.Protocol) *codec.Framing {
	return &codec.Framing{
		Name:     "memory/" + p.Name(),
		Protocol: p,
		Wrap: func(dst, doc []byte) []byte {
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(doc)))
			return append(dst, doc...)
		},
	}
}
