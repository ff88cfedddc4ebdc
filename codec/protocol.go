package codec

import "errors"

// ErrMalformed is wrapped by Decode's error: the message is no frame, nothing of
// it takes effect, and the connection is closed with CauseMalformed.
var ErrMalformed = errors.New("codec: malformed message")

// ErrUnknownType is returned by DecodeDocument for a frame that this build does
// not know; clients ignore it.
var ErrUnknownType = errors.New("codec: unknown frame type")

// Protocol translates between the bytes of one client protocol and requests and
// documents. A session sees nothing of a protocol but this.
type Protocol interface {
	// Name is the WebSocket subprotocol.
	Name() string
	Codec() Codec
	// Binary says which type of WebSocket message carries it.
	Binary() bool
	// Decode appends the requests of one message. An error wraps ErrMalformed.
	// The result keeps message: the caller gives it away and never changes it.
	Decode(dst []Request, message []byte) ([]Request, error)
	// Append writes one document.
	Append(dst []byte, d Document) []byte
}

// Protocols are all client protocols. Of several that a client offers, its own
// first known one counts.
func Protocols() []Protocol { return []Protocol{pulseV1(JSON), pulseV1(Msgpack)} }

// pulseV1 is pulse.v1 in one codec.
type pulseV1 Codec

func (p pulseV1) Name() string { return "pulse.v1." + p.Codec().String() }
func (p pulseV1) Codec() Codec { return Codec(p) }
func (p pulseV1) Binary() bool { return p.Codec() == Msgpack }

func (p pulseV1) Decode(dst []Request, message []byte) ([]Request, error) {
	r, err := decodeRequest(p.Codec(), message)
	if err != nil {
		return dst, err
	}
	return append(dst, r), nil
}

func (p pulseV1) Append(dst []byte, d Document) []byte {
	return d.encode(dst, p.Codec())
}
