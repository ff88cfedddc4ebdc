package codec

// result reads what a reply holds. A reply does not say what it answers; the
// client knows by the id. Each result has a field that no other has, though, or
// is what is left.
func (d dict) result() Result {
	switch {
	case d.has("recovered"):
		return d.joinResult()
	case d.has("outcome"):
		return &PublishResult{
			Outcome: Outcome(d.word("outcome", outcomes[:])), EID: d.text("eid"), Position: d.position(), Duplicate: d.boolean("duplicate"),
		}
	case d.has("events"):
		return d.historyResult()
	case d.has("pe"):
		return &PresenceResult{
			Room: d.text("room"), PE: d.text("pe"), Seq: d.uint("seq"), Count: int(d.integer("count")),
			Members: d.memberList("members"), After: d.text("after"),
		}
	case d.has("exp_ms"):
		return &TokenResult{Exp: d.integer("exp_ms"), Resume: d.text("resume")}
	case d.has("room"):
		return &LeaveResult{Room: d.text("room")}
	}
	return &CommandResult{Data: d.data(), Duplicate: d.boolean("duplicate")}
}

func (d dict) joinResult() *JoinResult {
	return &JoinResult{
		Room: d.text("room"), Position: d.position(), Recovered: d.boolean("recovered"), Reset: d.resetReason("reset"), After: d.ms("after_ms"),
		Members: d.memberList("members"), Count: int(d.integer("count")), PE: d.text("pe"), Seq: d.uint("seq"), Data: d.data(),
	}
}

func (d dict) historyResult() *HistoryResult {
	doc := &HistoryResult{Room: d.text("room"), Position: d.position(), More: d.boolean("more"), Reset: d.resetReason("reset")}
	for v := range d.value("events").elements() {
		e := d.r.event(v)
		e.Topic.Room = doc.Room
		doc.Events = append(doc.Events, e)
	}
	return doc
}
