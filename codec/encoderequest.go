package codec

// AppendRequest writes one client frame, for clients and tests: what Protocol's
// Decode reads as r. Zero limits and ids are left out. A Fault is no frame: it
// panics.
func AppendRequest(dst []byte, c Codec, r Request) []byte {
	switch r := r.(type) {
	case *Hello:
		return r.encode(dst, c)
	case *Join:
		o := request(dst, c, "join", r.ID)
		r.fields(&o)
		return o.end()
	case *Leave:
		o := request(dst, c, "leave", r.ID)
		o.text("room", r.Room)
		return o.end()
	case *Publish:
		o := request(dst, c, "publish", r.ID)
		o.text("room", r.Room)
		o.text("event", r.Event)
		o.data("data", r.Data)
		o.optText("dedup_key", r.DedupKey)
		if r.HasTTL {
			o.ms("ttl_ms", r.TTL)
		}
		return o.end()
	case *Command:
		o := request(dst, c, "command", r.ID)
		o.optText("room", r.Room)
		o.text("name", r.Name)
		o.optData("data", r.Data)
		if r.HasDeadline {
			o.ms("deadline_ms", r.Deadline)
		}
		o.optText("dedup_key", r.DedupKey)
		return o.end()
	case *Ack:
		o := begin(dst, c, "ack")
		o.text("room", r.Room)
		o.position(r.Position)
		return o.end()
	case *History:
		o := request(dst, c, "history", r.ID)
		o.text("room", r.Room)
		if r.HasPosition {
			o.position(r.Position)
		}
		o.optLimit(r.Limit)
		o.optTrue("reverse", r.Reverse)
		return o.end()
	case *PresenceQuery:
		o := request(dst, c, "presence", r.ID)
		o.text("room", r.Room)
		o.optLimit(r.Limit)
		o.optText("after", r.After)
		return o.end()
	case *Token:
		o := request(dst, c, "token", r.ID)
		o.text("token", r.Token)
		return o.end()
	case *Ping:
		return r.encode(dst, c)
	case *Pong:
		return r.encode(dst, c)
	}
	panic("codec: this request is no frame")
}

// request starts a frame that may have an id.
func request(dst []byte, c Codec, t string, id uint64) object {
	o := begin(dst, c, t)
	if id > 0 {
		o.uint("id", id)
	}
	return o
}

func (o *object) optLimit(n int) {
	if n > 0 {
		o.int("limit", int64(n))
	}
}

// fields writes what a join has wherever it stands.
func (r *Join) fields(o *object) {
	o.text("room", r.Room)
	if r.HasPosition {
		o.position(r.Position)
	}
	o.optTrue("presence", r.Presence)
	if r.NoEcho {
		o.boolean("echo", false)
	}
	o.optData("data", r.Data)
}

func (r *Hello) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "hello")
	o.optText("token", r.Token)
	o.optText("client", r.Client)
	if len(r.Accept) > 0 {
		o.texts("accept", r.Accept)
	}
	o.optText("resume", r.Resume)
	if len(r.Rooms) > 0 {
		o.key("rooms")
		a := o.openArray()
		for i := range r.Rooms {
			o.item(&a)
			room := nested(o.writer)
			r.Rooms[i].fields(&room)
			o.b = room.end()
		}
		o.closeArray(a)
	}
	return o.end()
}
