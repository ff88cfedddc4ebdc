package codec

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"time"
)

// decoder makes a request of one message. The gate has found the frame's fields;
// each field is read by name, whatever the codec. Owned by one Decode at a time.
type decoder struct {
	gate  gate
	codec Codec

	body    []byte // what the fields' places are in
	id      uint64 // of the frame; 0 when it has none that keeps the rules
	own     bool   // texts and data are copied out of the message
	recheck bool   // data has not been looked at as data yet
	reader  reader // of documents

	bad       string // first fault of the request
	wrongType bool   // a fault was a field of the wrong type
}

var decoders = sync.Pool{New: func() any { return newDecoder() }}

func newDecoder() *decoder { return &decoder{gate: gate{seed: maphash.MakeSeed()}} }

func (d *decoder) release() {
	d.forget()
	decoders.Put(d)
}

// forget drops everything of the message, and scratch that has grown large.
func (d *decoder) forget() {
	g := &d.gate
	g.in, d.body = nil, nil
	d.reader.drop(0)
	if cap(g.text) > maxPooled || cap(g.keys)*8 > maxPooled || cap(g.table)*8 > 2*maxPooled {
		g.text, g.keys, g.table = nil, nil, nil
	}
	if cap(d.reader.members) > maxPooled/64 {
		d.reader.members = nil
	}
}

// aliasSlack is how much besides its data a message may hold for the request to
// share its memory: what a stored event pins at most beyond its own size.
const aliasSlack = 512

// requestTypes are the frames that a client sends.
var requestTypes = [...]struct {
	t      string
	id     idRule
	decode func(*decoder) Request
}{
	{"publish", optionalID, func(d *decoder) Request { return d.publish() }},
	{"ack", ignoredID, func(d *decoder) Request { return d.ack() }},
	{"ping", optionalID, func(d *decoder) Request { return &Ping{ID: d.id} }},
	{"pong", ignoredID, func(*decoder) Request { return &Pong{} }},
	{"join", requiredID, func(d *decoder) Request { j := d.join(); j.ID = d.id; return &j }},
	{"leave", requiredID, func(d *decoder) Request { return &Leave{ID: d.id, Room: d.room()} }},
	{"command", requiredID, func(d *decoder) Request { return d.command() }},
	{"history", requiredID, func(d *decoder) Request { return d.history() }},
	{"presence", requiredID, func(d *decoder) Request { return d.presence() }},
	{"token", requiredID, func(d *decoder) Request { return &Token{ID: d.id, Token: d.requiredText(fieldToken)} }},
}

type idRule uint8

const (
	requiredID idRule = iota
	optionalID
	ignoredID
)

func decodeRequest(c Codec, message []byte) (Request, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	return d.request(c, message)
}

func (d *decoder) request(c Codec, message []byte) (Request, error) {
	d.codec, d.body, d.recheck, d.bad, d.wrongType = c, message, false, "", false
	if !d.gate.frame(c, message) {
		return nil, malformed(d.gate.why)
	}
	d.own = len(message)-len(d.value(fieldData).raw) > aliasSlack
	hasID := d.readID()
	t, ok := d.value(fieldT).text()
	if !ok {
		return nil, malformed("no t")
	}
	if t == "hello" {
		return d.hello()
	}
	for i := range requestTypes {
		if f := &requestTypes[i]; f.t == t {
			if d.id == 0 && (f.id == requiredID || f.id == optionalID && hasID) {
				d.blameRequest("id is missing or no integer from 1 to 2^53-1")
			}
			if r := f.decode(d); d.bad == "" {
				return r, nil
			}
			return d.faulty(f.t), nil
		}
	}
	return &Fault{ID: d.id, Err: NewError(CodeUnknownType, "this type of frame is not known")}, nil
}

func malformed(why string) error { return fmt.Errorf("%w: %s", ErrMalformed, why) }

// faulty is the refusal of a request of type t.
func (d *decoder) faulty(t string) *Fault {
	f := &Fault{ID: d.id, Type: t, Err: NewError(CodeBadRequest, d.bad)}
	if room, ok := d.value(fieldRoom).text(); ok && ValidRoom(room) {
		f.Room = strings.Clone(room)
	}
	return f
}

// blameRequest notes the first fault of the request.
func (d *decoder) blameRequest(fault string) {
	if d.bad == "" {
		d.bad = fault
	}
}

func (d *decoder) mistyped(fault string) {
	d.wrongType = true
	d.blameRequest(fault)
}

// value is a field's value, absent where there is none.
func (d *decoder) value(f field) value {
	at := d.gate.fields[f]
	return value{d.codec, d.body[at.at:at.end:at.end]}
}

// optional is a field's value, absent where it is null.
func (d *decoder) optional(f field) (value, bool) {
	v := d.value(f)
	return v, !v.nothing()
}

// readID takes note of the frame's id and reports whether there is one, be it as
// it may.
func (d *decoder) readID() (there bool) {
	d.id = 0
	v, there := d.optional(fieldRequestID)
	if n, ok := v.integer(); ok && n >= 1 && n <= MaxOffset {
		d.id = uint64(n)
	}
	return there
}

func (d *decoder) text(f field) string {
	v, ok := d.optional(f)
	if !ok {
		return ""
	}
	s, ok := v.text()
	if !ok {
		d.mistyped("a field that must be text is none")
	}
	if d.own {
		return strings.Clone(s)
	}
	return s
}

func (d *decoder) requiredText(f field) string {
	if _, ok := d.optional(f); !ok {
		d.blameRequest("a required field is missing")
	}
	return d.text(f)
}

func (d *decoder) boolean(f field, otherwise bool) bool {
	v, ok := d.optional(f)
	if !ok {
		return otherwise
	}
	b, ok := v.boolean()
	if !ok {
		d.mistyped("a field that must be a boolean is none")
	}
	return b
}

func (d *decoder) integer(f field) (n int64, there bool) {
	v, ok := d.optional(f)
	if !ok {
		return 0, false
	}
	n, ok = v.integer()
	if !ok {
		d.mistyped("a field that must be an integer is none")
	}
	return n, true
}

func (d *decoder) room() string {
	room := d.requiredText(fieldRoom)
	if !ValidRoom(room) {
		d.blameRequest("room is outside the grammar")
	}
	return room
}

// name is the name of an event or a command.
func (d *decoder) name(f field) string {
	name := d.requiredText(f)
	if !ValidEvent(name) {
		d.blameRequest("the name of the event or command is outside the grammar")
	}
	return name
}

func (d *decoder) position() (p Position, there bool) {
	p.Epoch = d.text(fieldEpoch)
	offset, hasOffset := d.integer(fieldOffset)
	if _, hasEpoch := d.optional(fieldEpoch); hasEpoch != hasOffset {
		d.blameRequest("epoch and offset come together")
	}
	if !hasOffset {
		return Position{}, false
	}
	if len(p.Epoch) < 1 || len(p.Epoch) > maxEpoch {
		d.blameRequest("epoch is not of 1 to 16 bytes")
	}
	if offset < 0 || offset > MaxOffset {
		d.blameRequest("offset is not within 0 and 2^53-1")
	}
	p.Offset = uint64(offset)
	return p, true
}

// data is there even when it is null.
func (d *decoder) data() Data {
	raw := d.value(fieldData).raw
	if len(raw) == 0 {
		return Data{}
	}
	if d.gate.inFault != "" {
		d.blameRequest(d.gate.inFault)
	}
	if d.recheck {
		if _, err := MakeData(d.codec, raw); err != nil {
			d.blameRequest(faultOf(err))
		}
	}
	if d.own {
		raw = bytes.Clone(raw)
	}
	return Data{d.codec, raw}
}

// duration is a field in milliseconds, at most what a Duration can say.
func (d *decoder) duration(f field) (time.Duration, bool) {
	ms, ok := d.integer(f)
	if ms < 0 {
		d.blameRequest("a duration is below 0")
	}
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, ok
}

// Bounds of pages.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

func (d *decoder) limit() int {
	n, ok := d.integer(fieldLimit)
	switch {
	case !ok:
		return defaultLimit
	case n < 1:
		d.blameRequest("limit is below 1")
	}
	return int(min(n, maxLimit))
}

func (d *decoder) dedupKey() string {
	key := d.text(fieldDedupKey)
	if _, there := d.optional(fieldDedupKey); there && (len(key) < 1 || len(key) > maxDedupKey) {
		d.blameRequest("dedup_key is not of 1 to 256 bytes")
	}
	return key
}
