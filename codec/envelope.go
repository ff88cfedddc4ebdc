package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// ErrEnvelope is wrapped by the error for bytes that are no envelope, or one that
// this build cannot read.
var ErrEnvelope = errors.New("codec: no envelope")

// An envelope is, big-endian:
//
//	0   version: 1
//	1   flags: 1 buffered, 2 secret; others are passed over
//	2   codec of the data: 0 JSON, 1 msgpack
//	3   compression of the data: 0 none, 1 gzip
//	4   ts, 8 bytes
//	12  lengths of eid, event, from and session, 2 bytes each
//	20  length of the data as it is carried, 4 bytes; 0: absent
//	24  eid, event, from, session, data
//
// Fields that came later follow: a number above 0, a length in 2 bytes, and that many
// bytes. Those that are not known are passed over, and a 0, or what cannot be such a
// field, ends them. 1 is the trace: its id and its span. The version changes only with
// what an older reader must not read.
const (
	envelopeVersion = 1
	envelopeHead    = 24

	flagBuffered = 1
	flagSecret   = 2

	fieldHead   = 3
	fieldTrace  = 1
	lengthTrace = 16 + 8
)

// maxEID bounds the texts of an envelope that nodes make up themselves.
const maxEID = 128

// EnvelopeLimits are the deployment's, the same on every node.
type EnvelopeLimits struct {
	// CompressAbove is the length of data, in bytes, above which it is compressed
	// if that makes it smaller; 0: never.
	CompressAbove int
	// MaxData is the most bytes of data, before it is compressed and after.
	MaxData int
}

// Envelope is what a bridge carries of one event, between nodes and in what it
// keeps: everything but the topic, which names where it is, and the position,
// which the bridge gives. Kind and sender can be read without touching the data.
type Envelope struct {
	Origin
	Name        string
	Buffered    bool
	Codec       Codec       // of Data, once it is inflated
	Compression Compression // of Data
	Data        []byte
}

// AppendEnvelope writes e to dst. It allocates nothing but what dst grows by. The
// error is an *Error with CodeTooLarge when e has more data than limits allow.
func AppendEnvelope(dst []byte, e *Event, buffered bool, limits EnvelopeLimits) ([]byte, error) {
	raw := e.Data.raw
	if len(raw) > min(limits.MaxData, maxInput) {
		return dst, errTooMuchData()
	}
	if max(len(e.EID), len(e.Name), len(e.From), len(e.Session)) > math.MaxUint16 {
		return dst, NewError(CodeTooLarge, "a name of the event is too long for the bridge")
	}
	// Room for all of it at once, so that head stays where it is.
	start := len(dst)
	dst = slices.Grow(dst, envelopeHead+len(e.EID)+len(e.Name)+len(e.From)+len(e.Session)+len(raw)+fieldHead+lengthTrace)
	head := dst[start : start+envelopeHead]
	head[0], head[1], head[2] = envelopeVersion, 0, byte(e.Data.codec)
	if buffered {
		head[1] |= flagBuffered
	}
	if e.Secret {
		head[1] |= flagSecret
	}
	binary.BigEndian.PutUint64(head[4:], uint64(e.TS))
	binary.BigEndian.PutUint16(head[12:], uint16(len(e.EID)))
	binary.BigEndian.PutUint16(head[14:], uint16(len(e.Name)))
	binary.BigEndian.PutUint16(head[16:], uint16(len(e.From)))
	binary.BigEndian.PutUint16(head[18:], uint16(len(e.Session)))
	dst = append(dst[:start+envelopeHead], e.EID...)
	dst = append(dst, e.Name...)
	dst = append(dst, e.From...)
	dst = append(dst, e.Session...)
	body := len(dst)
	compression := Uncompressed
	if limits.CompressAbove > 0 && len(raw) > limits.CompressAbove && !e.Secret {
		dst, compression = appendCompressed(dst, raw)
	} else {
		dst = append(dst, raw...)
	}
	head[3] = byte(compression)
	binary.BigEndian.PutUint32(head[20:], uint32(len(dst)-body))
	if e.Trace != nil {
		dst = append(dst, fieldTrace, 0, lengthTrace)
		dst = append(append(dst, e.Trace.ID[:]...), e.Trace.Span[:]...)
	}
	return dst, nil
}

func errTooMuchData() error { return NewError(CodeTooLarge, "more data than the bridge carries") }

// DecodeEnvelope reads an envelope where it lies: the result shares b, which must
// not change as long as it is used. The error wraps ErrEnvelope.
func DecodeEnvelope(b []byte) (v Envelope, err error) {
	if len(b) < envelopeHead {
		return Envelope{}, fmt.Errorf("%w: %d bytes", ErrEnvelope, len(b))
	}
	if b[0] != envelopeVersion {
		return Envelope{}, fmt.Errorf("%w: version %d", ErrEnvelope, b[0])
	}
	eid := envelopeHead + int(binary.BigEndian.Uint16(b[12:]))
	name := eid + int(binary.BigEndian.Uint16(b[14:]))
	from := name + int(binary.BigEndian.Uint16(b[16:]))
	session := from + int(binary.BigEndian.Uint16(b[18:]))
	end := uint64(session) + uint64(binary.BigEndian.Uint32(b[20:]))
	if end > uint64(len(b)) {
		return Envelope{}, fmt.Errorf("%w: %d bytes of %d", ErrEnvelope, len(b), end)
	}
	v.EID = alias(b[envelopeHead:eid])
	v.Name = alias(b[eid:name])
	v.From = alias(b[name:from])
	v.Session = alias(b[from:session])
	v.TS = int64(binary.BigEndian.Uint64(b[4:]))
	v.Secret = b[1]&flagSecret != 0
	v.Buffered = b[1]&flagBuffered != 0
	v.Codec, v.Compression = Codec(b[2]), Compression(b[3])
	v.Data = b[session:end:end]
	v.later(b[end:])
	return v, nil
}

// later reads the fields that came later.
func (v *Envelope) later(b []byte) {
	for len(b) >= fieldHead && b[0] != 0 {
		end := fieldHead + int(binary.BigEndian.Uint16(b[1:]))
		if end > len(b) {
			return
		}
		if b[0] == fieldTrace && end == fieldHead+lengthTrace {
			v.Trace = &Trace{ID: [16]byte(b[fieldHead:]), Span: [8]byte(b[fieldHead+16:])}
		}
		b = b[end:]
	}
}

// Event makes the event of an envelope, which keeps nothing of the bytes that v
// was read from. Everything is checked that a node would have checked before it
// made the envelope: whoever can write to what a bridge keeps can close no client's
// connection and panic no node. The error wraps ErrEnvelope, or is an *Error with
// CodeTooLarge when there is more data, once it is inflated, than maxData.
func (v *Envelope) Event(topic Topic, p Position, maxData int) (*Event, error) {
	if !ValidEvent(v.Name) || v.From != "" && !ValidSubject(v.From) || !validEID(v.EID) || !validEID(v.Session) {
		return nil, fmt.Errorf("%w: a name outside the grammar", ErrEnvelope)
	}
	data, err := v.data(maxData)
	if err != nil {
		return nil, err
	}
	texts := v.EID + v.Name + v.From + v.Session
	name := len(v.EID)
	from := name + len(v.Name)
	session := from + len(v.From)
	origin := v.Origin
	origin.EID, origin.From, origin.Session = texts[:name], texts[from:session], texts[session:]
	e := NewEvent(topic, texts[name:from], data, origin)
	e.Position = p
	return e, nil
}

func validEID(s string) bool { return len(s) <= maxEID && utf8.ValidString(s) }

// data is the data inflated and validated, in memory of its own.
func (v *Envelope) data(most int) (Data, error) {
	var raw []byte
	var err error
	switch {
	case v.Codec > Msgpack:
		return Data{}, fmt.Errorf("%w: codec %d", ErrEnvelope, v.Codec)
	case v.Compression == Gzip:
		raw, err = inflate(v.Data, most)
	case v.Compression != Uncompressed:
		err = fmt.Errorf("%w: compression %d", ErrEnvelope, v.Compression)
	case len(v.Data) > most:
		err = errTooMuchData()
	case len(v.Data) == 0:
		return Data{}, nil
	default:
		raw = bytes.Clone(v.Data)
	}
	if err != nil {
		return Data{}, err
	}
	d, err := MakeData(v.Codec, raw)
	if err != nil {
		return Data{}, fmt.Errorf("%w: %v", ErrEnvelope, err)
	}
	return d, nil
}
