package codec

import "strings"

func (r *JoinResult) encode(dst []byte, c Codec) []byte {
	o := nested(writer{c, dst})
	o.text("room", r.Room)
	o.position(r.Position)
	o.boolean("recovered", r.Recovered)
	o.optText("reset", r.Reset.String())
	o.optMS("after_ms", r.After)
	if r.PE != "" {
		if r.Members != nil {
			o.members("members", r.Members)
		}
		o.int("count", int64(r.Count))
		o.text("pe", r.PE)
		o.uint("seq", r.Seq)
	}
	o.optData("data", r.Data)
	return o.end()
}

func (r *LeaveResult) encode(dst []byte, c Codec) []byte {
	o := nested(writer{c, dst})
	o.text("room", r.Room)
	return o.end()
}

func (r *PublishResult) encode(dst []byte, c Codec) []byte {
	o := nested(writer{c, dst})
	o.text("outcome", r.Outcome.String())
	o.text("eid", r.EID)
	o.optPosition(r.Position)
	o.optTrue("duplicate", r.Duplicate)
	return o.end()
}

func (r *CommandResult) encode(dst []byte, c Codec) []byte {
	o := nested(writer{c, dst})
	o.data("data", r.Data)
	o.optTrue("duplicate", r.Duplicate)
	return o.end()
}

func (r *HistoryResult) encode(dst []byte, c Codec) []byte {
	o := nested(writer{c, dst})
	o.text("room", r.Room)
	o.position(r.Position)
	o.key("events")
	a := o.openArray()
	for _, event := range r.Events {
		o.item(&a)
		e := nested(o.writer)
		event.fields(&e)
		o.b = e.end()
	}
	o.closeArray(a)
	o.boolean("more", r.More)
	o.optText("reset", r.Reset.String())
	return o.end()
}

// Fits is how many of the page's events a reply of at most limit bytes holds in a
// codec, from the first on.
func (r *HistoryResult) Fits(c Codec, limit int) (n int) {
	longest := Position{Epoch: strings.Repeat("\x00", 16), Offset: MaxOffset}
	bare := Reply{ID: MaxOffset, OK: &HistoryResult{Room: r.Room, Position: longest, Reset: r.Reset}}
	buf := encodeBuffers.Get().(*[]byte)
	b := bare.encode((*buf)[:0], c)
	size := len(b) + 4 // what the head of a long list has more than that of an empty one
	for _, event := range r.Events {
		e := nested(writer{c, b[:0]})
		event.fields(&e)
		b = e.end()
		if size += len(b) + 1; size > limit {
			break
		}
		n++
	}
	if cap(b) <= maxPooled {
		*buf = b
		encodeBuffers.Put(buf)
	}
	return n
}

func (r *PresenceResult) encode(dst []byte, c Codec) []byte {
	o := nested(writer{c, dst})
	o.text("room", r.Room)
	o.text("pe", r.PE)
	o.uint("seq", r.Seq)
	o.int("count", int64(r.Count))
	o.members("members", r.Members)
	o.optText("after", r.After)
	return o.end()
}

func (r *TokenResult) encode(dst []byte, c Codec) []byte {
	o := nested(writer{c, dst})
	o.int("exp_ms", r.Exp)
	o.text("resume", r.Resume)
	return o.end()
}
