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
	r := reader{}
	doc := r.document(t, value{c, message})
	if r.bad != "" {
		return nil, malformed(t + ": " + r.bad)
	}
	if doc == nil {
		return nil, ErrUnknownType
	}
	return doc, nil
}

// reader turns values into the Go values of documents. A value of the wrong type
// is noted and reading goes on. A word that a later server may have added reads
// as the zero value of its list.
type reader struct{ bad string }

func (r *reader) document(t string, v value) Document {
	switch t {
	case "welcome":
		return r.welcome(v)
	case "reply":
		return r.reply(v)
	case "event":
		return r.event(v)
	case "presence":
		return r.presence(v)
	case "position":
		d := &PositionFrame{}
		for name, v := range v.members() {
			if !r.position(&d.Position, name, v) && name == "room" {
				d.Room = r.text(v)
			}
		}
		return d
	case "reset":
		return r.reset(v)
	case "left":
		d := &Left{}
		for name, v := range v.members() {
			switch name {
			case "room":
				d.Room = r.text(v)
			case "reason":
				d.Reason = LeftReason(r.word(v, leftReasons[:]))
			}
		}
		return d
	case "status":
		d := &Status{}
		for name, v := range v.members() {
			switch name {
			case "live":
				d.Live = r.boolean(v)
			case "reason":
				d.Reason = r.text(v)
			}
		}
		return d
	case "expiring":
		d := &Expiring{}
		for name, v := range v.members() {
			if name == "in_ms" {
				d.In = r.ms(v)
			}
		}
		return d
	case "drain":
		return r.drain(v)
	case "ping":
		return &Ping{ID: r.id(v)}
	case "pong":
		return &Pong{ID: r.id(v)}
	case "error":
		d := &ErrorFrame{Err: r.refusal(v)}
		for name, v := range v.members() {
			switch name {
			case "re":
				d.Re = r.text(v)
			case "room":
				d.Room = r.text(v)
			}
		}
		return d
	}
	return nil
}

func (r *reader) blame(fault string) {
	if r.bad == "" {
		r.bad = fault
	}
}

func (r *reader) text(v value) string {
	s, ok := v.text()
	if !ok && v.kind() != nullKind {
		r.blame("a field that must be text is none")
	}
	return s
}

func (r *reader) boolean(v value) bool {
	b, ok := v.boolean()
	if !ok && v.kind() != nullKind {
		r.blame("a field that must be a boolean is none")
	}
	return b
}

func (r *reader) integer(v value) int64 {
	n, ok := v.integer()
	if !ok && v.kind() != nullKind {
		r.blame("a field that must be an integer is none")
	}
	return n
}

func (r *reader) uint(v value) uint64 {
	n := r.integer(v)
	if n < 0 {
		r.blame("a number is below 0")
	}
	return uint64(n)
}

func (r *reader) ms(v value) time.Duration {
	n := r.integer(v)
	if n < 0 || n > int64(math.MaxInt64/time.Millisecond) {
		r.blame("a duration is out of range")
	}
	return time.Duration(n) * time.Millisecond
}

func (r *reader) data(v value) Data {
	d, err := MakeData(v.codec, v.raw)
	if err != nil {
		r.blame(faultOf(err))
	}
	return d
}

// word is the place of a text in a list whose place 0 is for none.
func (r *reader) word(v value, list []string) int {
	return max(0, slices.Index(list, r.text(v)))
}

func (r *reader) texts(v value) (list []string) {
	for e := range v.elements() {
		list = append(list, r.text(e))
	}
	return list
}

func (r *reader) id(v value) (id uint64) {
	for name, v := range v.members() {
		if name == "id" {
			id = r.uint(v)
		}
	}
	return id
}

// position reads the field if it is one of a position's two.
func (r *reader) position(p *Position, name string, v value) bool {
	switch name {
	case "epoch":
		p.Epoch = r.text(v)
	case "offset":
		p.Offset = r.uint(v)
	default:
		return false
	}
	return true
}
