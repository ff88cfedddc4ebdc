package codec

// Codec is one of the two codings of the document model.
type Codec uint8

const (
	JSON Codec = iota
	Msgpack
)

// String is the codec's name on the wire.
func (c Codec) String() string {
	if c == Msgpack {
		return "msgpack"
	}
	return "json"
}

// Data is one value of the document model, validated, in the codec of whoever
// made it. It is immutable; the zero value is "absent", which differs from null.
type Data struct {
	codec Codec
	raw   []byte
}

// IsZero reports whether there is no value at all.
func (d Data) IsZero() bool { return d.raw == nil }

// Codec is the codec of Raw.
func (d Data) Codec() Codec { return d.codec }

// Raw is the value as it was made. The caller must not change it.
func (d Data) Raw() []byte { return d.raw }

// Len is the length of Raw in bytes.
func (d Data) Len() int { return len(d.raw) }
