package codec

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
