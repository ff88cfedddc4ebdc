package codec

import "bytes"

// Size is the length of the member in a list, in the codec that needs more.
func (m *Member) Size() int {
	buf := encodeBuffers.Get().(*[]byte)
	size := 0
	for _, c := range [...]Codec{JSON, Msgpack} {
		o := nested(writer{c, (*buf)[:0]})
		o.member(m)
		*buf = o.end()
		size = max(size, len(*buf)+1) // with its comma
	}
	encodeBuffers.Put(buf)
	return size
}

// Same reports whether both are the same bytes in the same codec, or both absent.
func (d Data) Same(o Data) bool { return d.codec == o.codec && bytes.Equal(d.raw, o.raw) }
