package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

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

// MakeData validates one value by the protocol's rules. raw is kept, not copied:
// the caller never changes it. The error wraps ErrMalformed when raw is no value
// at all, and is an *Error with CodeBadRequest when it is one that data must not
// be: too deep, or not to be said in the other codec.
func MakeData(c Codec, raw []byte) (Data, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	if c == JSON {
		raw = bytes.Trim(raw, " \t\r\n")
	}
	if !d.gate.data(c, raw) {
		return Data{}, malformed(d.gate.why)
	}
	if d.gate.fault != "" {
		return Data{}, NewError(CodeBadRequest, d.gate.fault)
	}
	return Data{c, raw}, nil
}

// NewData makes data of a Go value, in JSON, as encoding/json does: []byte is
// base64 text (bin is made by MakeData), a Data within v is put in as it is, null
// if it is absent. A v that is Data itself keeps its codec. What data must not be
// is refused with an error that wraps an *Error with CodeBadRequest: NaN and
// infinities, cycles, nesting over 48, integers beyond 64 bits. Those that
// encoding/json writes for floats count too: from 2^64 up to 1e21.
func NewData(v any) (Data, error) {
	if d, ok := v.(Data); ok && !d.IsZero() {
		return d, nil
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	var d Data
	err := enc.Encode(v)
	if err == nil {
		d, err = MakeData(JSON, text.Bytes())
	}
	var refusal *Error
	if err != nil && !errors.As(err, &refusal) {
		err = fmt.Errorf("%w: %w", NewError(CodeBadRequest, "this value cannot be data"), err)
	}
	return d, err
}

// Unmarshal puts the value into what v points to, as encoding/json does (names of
// fields match without case, null leaves what is no pointer as it was), from
// either codec. Integers keep every digit: an any gets a json.Number. bin fills a
// []byte, as its base64 text does.
func (d Data) Unmarshal(v any) error {
	if d.IsZero() {
		return errors.New("codec: no data")
	}
	dec := json.NewDecoder(bytes.NewReader(d.In(JSON)))
	dec.UseNumber()
	return dec.Decode(v)
}

// MarshalJSON lets data stand within Go values; absent data is null.
func (d Data) MarshalJSON() ([]byte, error) {
	if d.IsZero() {
		return []byte("null"), nil
	}
	return d.In(JSON), nil
}

// UnmarshalJSON keeps a copy of raw, by the rules of MakeData. null is data too.
func (d *Data) UnmarshalJSON(raw []byte) (err error) {
	*d, err = MakeData(JSON, bytes.Clone(raw))
	return err
}

// faultOf is what an error of MakeData says to a client.
func faultOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "data is malformed"
}

// In returns the value in codec c: Raw in its own, transcoded in the other. The
// caller must not change it.
func (d Data) In(c Codec) []byte {
	if d.IsZero() || d.codec == c {
		return d.raw
	}
	w := writer{c, make([]byte, 0, len(d.raw))}
	w.data(d)
	return w.b
}

// Field returns the canonical text of a top-level scalar field: values that are
// equal, in whatever codec and spelling, have equal texts, others have not. bin
// counts as the text that JSON has for it.
func (d Data) Field(name string) (key string, ok bool) {
	for n, v := range value(d).members() {
		if n != name {
			continue
		}
		if k := v.kind(); k == arrayKind || k == objectKind {
			return "", false
		}
		w := writer{codec: JSON}
		w.scalar(v)
		if string(w.b) == "-0.0" {
			return "0", true
		}
		return alias(w.b), true
	}
	return "", false
}
