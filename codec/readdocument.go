package codec

import "slices"

func (r *reader) welcome(v value) *Welcome {
	d := &Welcome{}
	for name, v := range v.members() {
		switch name {
		case "session":
			d.Session = r.text(v)
		case "resume":
			d.Resume = r.text(v)
		case "resume_ttl_ms":
			d.ResumeTTL = r.ms(v)
		case "resumed":
			d.Resumed = r.boolean(v)
		case "node":
			d.Node = r.text(v)
		case "tenant":
			d.Tenant = r.text(v)
		case "subject":
			d.Subject = r.text(v)
		case "transport":
			d.Transport = r.text(v)
		case "codec":
			if r.text(v) == Msgpack.String() {
				d.Codec = Msgpack
			}
		case "compression":
			d.Compression = r.boolean(v)
		case "accept":
			d.Accept = r.texts(v)
		case "ping_ms":
			d.Ping = r.ms(v)
		case "pong_ms":
			d.Pong = r.ms(v)
		case "max_message_bytes":
			d.MaxMessageBytes = int(r.integer(v))
		case "max_frame_bytes":
			d.MaxFrameBytes = int(r.integer(v))
		case "now_ms":
			d.Now = r.integer(v)
		case "exp_ms":
			d.Exp = r.integer(v)
		case "live":
			d.Live = r.boolean(v)
		case "rooms":
			for entry := range v.elements() {
				d.Rooms = append(d.Rooms, r.welcomeRoom(entry))
			}
		}
	}
	return d
}

func (r *reader) welcomeRoom(v value) (room WelcomeRoom) {
	for name, v := range v.members() {
		switch name {
		case "room":
			room.Room = r.text(v)
		case "ok":
			room.OK = r.joinResult(v)
		case "err":
			room.Err = r.refusal(v)
		}
	}
	r.oneOf(room.OK != nil, room.Err != nil)
	return room
}

// oneOf checks that an answer has either ok or err.
func (r *reader) oneOf(ok, err bool) {
	if ok == err {
		r.blame("not exactly one of ok and err")
	}
}

func (r *reader) reply(v value) *Reply {
	d := &Reply{ID: r.id(v)}
	for name, v := range v.members() {
		switch name {
		case "ok":
			d.OK = r.result(v)
		case "err":
			d.Err = r.refusal(v)
		}
	}
	r.oneOf(d.OK != nil, d.Err != nil)
	return d
}

func (r *reader) event(v value) *Event {
	e := &Event{}
	e.Frame.doc = e
	for name, v := range v.members() {
		switch name {
		case "room":
			e.Topic.Room = r.text(v)
		case "event":
			e.Name = r.text(v)
		case "data":
			e.Data = r.data(v)
		case "eid":
			e.EID = r.text(v)
		case "from":
			e.From = r.text(v)
		case "session":
			e.Session = r.text(v)
		case "ts":
			e.TS = r.integer(v)
		default:
			r.position(&e.Position, name, v)
		}
	}
	return e
}

func (r *reader) presence(v value) *PresenceFrame {
	d := &PresenceFrame{}
	for name, v := range v.members() {
		switch name {
		case "room":
			d.Room = r.text(v)
		case "pe":
			d.PE = r.text(v)
		case "seq":
			d.Seq = r.uint(v)
		case "prev":
			d.Prev = r.uint(v)
		case "join":
			d.Join = r.members(v)
		case "update":
			d.Update = r.members(v)
		case "leave":
			d.Leave = r.texts(v)
		case "full":
			d.Full = r.boolean(v)
		case "members":
			d.Members = r.members(v)
		case "count":
			d.Count = int(r.integer(v))
		}
	}
	return d
}

func (r *reader) members(v value) []Member {
	list := []Member{}
	for e := range v.elements() {
		var m Member
		for name, v := range e.members() {
			switch name {
			case "subject":
				m.Subject = r.text(v)
			case "sessions":
				m.Sessions = int(r.integer(v))
			case "data":
				m.Data = r.data(v)
			}
		}
		list = append(list, m)
	}
	return list
}

func (r *reader) reset(v value) *Reset {
	d := &Reset{}
	for name, v := range v.members() {
		switch name {
		case "room":
			d.Room = r.text(v)
		case "reason":
			d.Reason = ResetReason(r.word(v, resetReasons[:]))
		case "data":
			d.Data = r.data(v)
		case "after_ms":
			d.After = r.ms(v)
		default:
			r.position(&d.Position, name, v)
		}
	}
	return d
}

func (r *reader) drain(v value) *Drain {
	d := &Drain{}
	for name, v := range v.members() {
		switch name {
		case "reconnect_ms":
			bounds := slices.Collect(v.elements())
			if len(bounds) != 2 {
				r.blame("reconnect_ms is no range")
				continue
			}
			d.ReconnectMin, d.ReconnectMax = r.ms(bounds[0]), r.ms(bounds[1])
		case "deadline_ms":
			d.Deadline = r.ms(v)
		case "reason":
			d.Reason = r.text(v)
		}
	}
	return d
}

// refusal reads an error. A code that this build does not know is no code, which
// makes it final.
func (r *reader) refusal(v value) *Error {
	e := &Error{}
	for name, v := range v.members() {
		switch name {
		case "code":
			e.Code = codeOf(r.text(v))
		case "message":
			e.Message = r.text(v)
		case "retry_after_ms":
			e.RetryAfter = r.ms(v)
		case "scope":
			e.Scope = Scope(r.word(v, scopes[:]))
		case "data":
			e.Data = r.data(v)
		}
	}
	return e
}
