package codec

// result reads what a reply holds. A reply does not say what it answers; the
// client knows by the id. Each result has a field that no other has, though, or
// is what is left.
func (r *reader) result(v value) Result {
	has := map[string]bool{}
	for name := range v.members() {
		has[name] = true
	}
	switch {
	case has["recovered"]:
		return r.joinResult(v)
	case has["outcome"]:
		return r.publishResult(v)
	case has["events"]:
		return r.historyResult(v)
	case has["pe"]:
		return r.presenceResult(v)
	case has["exp_ms"]:
		return r.tokenResult(v)
	case has["room"]:
		d := &LeaveResult{}
		for name, v := range v.members() {
			if name == "room" {
				d.Room = r.text(v)
			}
		}
		return d
	}
	d := &CommandResult{}
	for name, v := range v.members() {
		switch name {
		case "data":
			d.Data = r.data(v)
		case "duplicate":
			d.Duplicate = r.boolean(v)
		}
	}
	return d
}

func (r *reader) joinResult(v value) *JoinResult {
	d := &JoinResult{}
	for name, v := range v.members() {
		switch name {
		case "room":
			d.Room = r.text(v)
		case "recovered":
			d.Recovered = r.boolean(v)
		case "reset":
			d.Reset = ResetReason(r.word(v, resetReasons[:]))
		case "after_ms":
			d.After = r.ms(v)
		case "members":
			d.Members = r.members(v)
		case "count":
			d.Count = int(r.integer(v))
		case "pe":
			d.PE = r.text(v)
		case "seq":
			d.Seq = r.uint(v)
		case "data":
			d.Data = r.data(v)
		default:
			r.position(&d.Position, name, v)
		}
	}
	return d
}

func (r *reader) publishResult(v value) *PublishResult {
	d := &PublishResult{}
	for name, v := range v.members() {
		switch name {
		case "outcome":
			d.Outcome = Outcome(r.word(v, outcomes[:]))
		case "eid":
			d.EID = r.text(v)
		case "duplicate":
			d.Duplicate = r.boolean(v)
		default:
			r.position(&d.Position, name, v)
		}
	}
	return d
}

func (r *reader) historyResult(v value) *HistoryResult {
	d := &HistoryResult{}
	for name, v := range v.members() {
		switch name {
		case "room":
			d.Room = r.text(v)
		case "events":
			for e := range v.elements() {
				d.Events = append(d.Events, r.event(e))
			}
		case "more":
			d.More = r.boolean(v)
		case "reset":
			d.Reset = ResetReason(r.word(v, resetReasons[:]))
		default:
			r.position(&d.Position, name, v)
		}
	}
	for _, e := range d.Events {
		e.Topic.Room = d.Room
	}
	return d
}

func (r *reader) presenceResult(v value) *PresenceResult {
	d := &PresenceResult{}
	for name, v := range v.members() {
		switch name {
		case "room":
			d.Room = r.text(v)
		case "pe":
			d.PE = r.text(v)
		case "seq":
			d.Seq = r.uint(v)
		case "count":
			d.Count = int(r.integer(v))
		case "members":
			d.Members = r.members(v)
		case "after":
			d.After = r.text(v)
		}
	}
	return d
}

func (r *reader) tokenResult(v value) *TokenResult {
	d := &TokenResult{}
	for name, v := range v.members() {
		switch name {
		case "exp_ms":
			d.Exp = r.integer(v)
		case "resume":
			d.Resume = r.text(v)
		}
	}
	return d
}
