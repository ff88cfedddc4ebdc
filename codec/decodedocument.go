package codec

import (
	"bytes"
	"math"
	"slices"
	"time"
)

// DecodeDocument decodes one server frame, for clients and tests. The result
// keeps message. An error wraps ErrMalformed, or is ErrUnknownType. It trusts the
// server with the grammar of names, and with nothing else.
func DecodeDocument(c Codec, message []byte) (Document, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.codec, d.body = c, message
	if !d.gate.frame(c, message) {
		return nil, malformed(d.gate.why)
	}
	t, ok := d.value(fieldT).text()
	if !ok {
		return nil, malformed("no t")
	}
	if c == JSON {
		message = bytes.Trim(message, " \t\r\n")
	}
	r := &d.reader
	r.bad = ""
	doc := r.document(t, value{c, message})
	if r.bad != "" {
		return nil, malformed(t + ": " + r.bad)
	}
	if doc == nil {
		return nil, ErrUnknownType
	}
	return doc, nil
}

// reader turns values into the Go values of documents. A value of the wrong type is
// noted and reading goes on.
type reader struct {
	bad     string
	members []member // of all dicts that are being read, innermost last
}

func (r *reader) blame(fault string) {
	if r.bad == "" {
		r.bad = fault
	}
}

// dict is an object's members, which are read by name. What is absent or null reads
// as the zero value, and so does a word that a later server may have added.
type dict struct {
	r       *reader
	members []member
}

type member struct {
	name  string
	value value
}

// dict of another kind of value has no members.
func (r *reader) dict(v value) dict {
	base := len(r.members)
	for name, v := range v.members() {
		r.members = append(r.members, member{name, v})
	}
	return dict{r, r.members[base:]}
}

// each reads the objects of an array, one after the other.
func (d dict) each(name string, read func(dict)) {
	base := len(d.r.members)
	for e := range d.value(name).elements() {
		read(d.r.dict(e))
		d.r.drop(base)
	}
}

// drop forgets all but the first n members.
func (r *reader) drop(n int) {
	clear(r.members[n:])
	r.members = r.members[:n]
}

// value is absent where there is no such member.
func (d dict) value(name string) value {
	for i := range d.members {
		if d.members[i].name == name {
			return d.members[i].value
		}
	}
	return value{}
}

func (d dict) has(name string) bool { return d.value(name).kind() != noKind }

func (d dict) dict(name string) dict { return d.r.dict(d.value(name)) }

func (r *reader) text(v value) string {
	s, ok := v.text()
	if !ok && !v.nothing() {
		r.blame("a field that must be text is none")
	}
	return s
}

func (d dict) text(name string) string { return d.r.text(d.value(name)) }

func (d dict) texts(name string) (list []string) {
	for e := range d.value(name).elements() {
		list = append(list, d.r.text(e))
	}
	return list
}

// word is the place of a text in a list whose place 0 is for none.
func (d dict) word(name string, list []string) int {
	return max(0, slices.Index(list, d.text(name)))
}

func (d dict) boolean(name string) bool {
	v := d.value(name)
	b, ok := v.boolean()
	if !ok && !v.nothing() {
		d.r.blame("a field that must be a boolean is none")
	}
	return b
}

func (r *reader) integer(v value) int64 {
	n, ok := v.integer()
	if !ok && !v.nothing() {
		r.blame("a field that must be an integer is none")
	}
	return n
}

func (d dict) integer(name string) int64 { return d.r.integer(d.value(name)) }

func (r *reader) uint(v value) uint64 {
	n := r.integer(v)
	if n < 0 {
		r.blame("a number is below 0")
	}
	return uint64(n)
}

func (d dict) uint(name string) uint64 { return d.r.uint(d.value(name)) }

func (r *reader) ms(v value) time.Duration {
	n := r.integer(v)
	if n < 0 || n > int64(math.MaxInt64/time.Millisecond) {
		r.blame("a duration is out of range")
	}
	return time.Duration(n) * time.Millisecond
}

func (d dict) ms(name string) time.Duration { return d.r.ms(d.value(name)) }

func (r *reader) data(v value) Data {
	data, err := MakeData(v.codec, v.raw)
	if err != nil {
		r.blame(faultOf(err))
	}
	return data
}

// data is there even when it is null.
func (d dict) data() Data {
	if !d.has("data") {
		return Data{}
	}
	return d.r.data(d.value("data"))
}

func (d dict) position() Position { return Position{Epoch: d.text("epoch"), Offset: d.uint("offset")} }
