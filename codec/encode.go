package codec

import "time"

// object is a map that is being written, field by field. A field whose value is
// optional has a method of its own, which leaves out what is absent.
type object struct {
	writer
	c container
}

// begin starts a frame.
func begin(dst []byte, codec Codec, t string) object {
	o := nested(writer{codec, dst})
	o.text("t", t)
	return o
}

// nested starts an object where w stands; the caller takes end's writer back.
func nested(w writer) object {
	o := object{writer: w}
	o.c = o.openObject()
	return o
}

// end finishes the object.
func (o *object) end() []byte {
	o.closeObject(o.c)
	return o.b
}

func (o *object) key(name string)                 { o.field(&o.c, name) }
func (o *object) text(name, s string)             { o.key(name); o.writer.text(s) }
func (o *object) boolean(name string, b bool)     { o.key(name); o.writer.boolean(b) }
func (o *object) uint(name string, u uint64)      { o.key(name); o.writer.uint(u) }
func (o *object) int(name string, i int64)        { o.key(name); o.writer.int(i) }
func (o *object) ms(name string, d time.Duration) { o.key(name); o.writer.ms(d) }
func (o *object) data(name string, d Data)        { o.key(name); o.writer.data(d) }

func (o *object) optText(name, s string) {
	if s != "" {
		o.text(name, s)
	}
}

func (o *object) optTrue(name string, b bool) {
	if b {
		o.boolean(name, true)
	}
}

func (o *object) optMS(name string, d time.Duration) {
	if d > 0 {
		o.ms(name, d)
	}
}

func (o *object) optData(name string, d Data) {
	if !d.IsZero() {
		o.data(name, d)
	}
}

// position writes both its parts.
func (o *object) position(p Position) {
	o.text("epoch", p.Epoch)
	o.uint("offset", p.Offset)
}

func (o *object) optPosition(p Position) {
	if !p.IsZero() {
		o.position(p)
	}
}

func (o *object) texts(name string, list []string) {
	o.key(name)
	a := o.openArray()
	for _, s := range list {
		o.item(&a)
		o.writer.text(s)
	}
	o.closeArray(a)
}

func (o *object) members(name string, list []Member) {
	o.key(name)
	a := o.openArray()
	for i := range list {
		o.item(&a)
		m := nested(o.writer)
		m.member(&list[i])
		o.b = m.end()
	}
	o.closeArray(a)
}

func (o *object) member(m *Member) {
	o.text("subject", m.Subject)
	o.int("sessions", int64(m.Sessions))
	o.optData("data", m.Data)
}

func (o *object) optMembers(name string, list []Member) {
	if len(list) > 0 {
		o.members(name, list)
	}
}

// answer writes one of ok and err.
func (o *object) answer(ok Result, err *Error) {
	if err != nil {
		o.key("err")
		e := nested(o.writer)
		e.refusal(err)
		o.b = e.end()
		return
	}
	o.key("ok")
	o.b = ok.encode(o.b, o.codec)
}

func (o *object) refusal(err *Error) {
	o.text("code", err.Code.String())
	o.text("message", err.Message)
	if ms := err.RetryAfterMS(); ms > 0 {
		o.int("retry_after_ms", ms)
	}
	o.optText("scope", err.Scope.String())
	o.optData("data", err.Data)
}

// AppendAnswer writes {"ok":…}, or {"err":…} where err is not nil: the body of an
// HTTP answer.
func AppendAnswer(dst []byte, c Codec, ok Result, err *Error) []byte {
	o := nested(writer{c, dst})
	o.answer(ok, err)
	return o.end()
}

func (d *Welcome) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "welcome")
	o.text("session", d.Session)
	o.optText("resume", d.Resume)
	o.ms("resume_ttl_ms", d.ResumeTTL)
	o.boolean("resumed", d.Resumed)
	o.text("node", d.Node)
	o.text("tenant", d.Tenant)
	o.text("subject", d.Subject)
	o.text("transport", d.Transport)
	o.text("codec", d.Codec.String())
	o.boolean("compression", d.Compression)
	o.texts("accept", d.Accept)
	o.ms("ping_ms", d.Ping)
	o.ms("pong_ms", d.Pong)
	o.int("max_message_bytes", int64(d.MaxMessageBytes))
	o.int("max_frame_bytes", int64(d.MaxFrameBytes))
	o.int("now_ms", d.Now)
	o.int("exp_ms", d.Exp)
	o.boolean("live", d.Live)
	o.key("rooms")
	a := o.openArray()
	for i := range d.Rooms {
		o.item(&a)
		r := nested(o.writer)
		r.text("room", d.Rooms[i].Room)
		r.answer(d.Rooms[i].OK, d.Rooms[i].Err)
		o.b = r.end()
	}
	o.closeArray(a)
	return o.end()
}

func (d *Reply) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "reply")
	o.uint("id", d.ID)
	o.answer(d.OK, d.Err)
	return o.end()
}

func (e *Event) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "event")
	o.text("room", e.Topic.Room)
	e.fields(&o)
	return o.end()
}

// fields writes what an event has wherever it stands.
func (e *Event) fields(o *object) {
	o.text("event", e.Name)
	o.data("data", e.Data)
	o.text("eid", e.EID)
	o.optPosition(e.Position)
	o.optText("from", e.From)
	o.optText("session", e.Session)
	o.int("ts", e.TS)
}

func (d *PresenceFrame) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "presence")
	o.text("room", d.Room)
	o.text("pe", d.PE)
	o.uint("seq", d.Seq)
	o.uint("prev", d.Prev)
	switch {
	case d.Full:
		o.boolean("full", true)
		o.members("members", d.Members)
		o.int("count", int64(d.Count))
	case len(d.Join)+len(d.Update)+len(d.Leave) == 0:
		o.int("count", int64(d.Count))
	default:
		o.optMembers("join", d.Join)
		o.optMembers("update", d.Update)
		if len(d.Leave) > 0 {
			o.texts("leave", d.Leave)
		}
	}
	return o.end()
}

func (d *PositionFrame) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "position")
	o.text("room", d.Room)
	o.position(d.Position)
	return o.end()
}

func (d *Reset) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "reset")
	o.text("room", d.Room)
	o.text("reason", d.Reason.String())
	o.position(d.Position)
	o.optData("data", d.Data)
	o.optMS("after_ms", d.After)
	return o.end()
}

func (d *Left) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "left")
	o.text("room", d.Room)
	o.text("reason", d.Reason.String())
	return o.end()
}

func (d *Status) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "status")
	o.boolean("live", d.Live)
	o.optText("reason", d.Reason)
	return o.end()
}

func (d *Expiring) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "expiring")
	o.ms("in_ms", d.In)
	return o.end()
}

func (d *Drain) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "drain")
	o.key("reconnect_ms")
	a := o.openArray()
	for _, bound := range [...]time.Duration{d.ReconnectMin, d.ReconnectMax} {
		o.item(&a)
		o.writer.ms(bound)
	}
	o.closeArray(a)
	o.ms("deadline_ms", d.Deadline)
	o.text("reason", d.Reason)
	return o.end()
}

func (d *Ping) encode(dst []byte, c Codec) []byte { return pingPong(dst, c, "ping", d.ID) }
func (d *Pong) encode(dst []byte, c Codec) []byte { return pingPong(dst, c, "pong", d.ID) }

func pingPong(dst []byte, c Codec, t string, id uint64) []byte {
	o := begin(dst, c, t)
	if id > 0 {
		o.uint("id", id)
	}
	return o.end()
}

func (d *ErrorFrame) encode(dst []byte, c Codec) []byte {
	o := begin(dst, c, "error")
	o.refusal(d.Err)
	o.optText("re", d.Re)
	o.optText("room", d.Room)
	return o.end()
}
