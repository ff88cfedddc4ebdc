package codec

// DecodeBody reads the body of an HTTP request as a frame of type t whose room,
// and name where a command has one, stand in the path. What the body says of t,
// id, room and name is ignored like any unknown field. The error wraps
// ErrMalformed; a request that is refused for its fields comes as *Fault.
func DecodeBody(c Codec, t, room, name string, body []byte) (Request, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.codec, d.id, d.recheck, d.bad, d.wrongType = c, 0, false, "", false
	if !d.gate.frame(c, body) {
		return nil, malformed(d.gate.why)
	}
	// What is in the path is put behind the body, as if it had been in the frame.
	d.own, d.body = true, append([]byte(nil), body...)
	d.gate.fields[fieldName] = span{}
	d.put(fieldRoom, room, ValidRoom(room))
	if t == "command" {
		d.put(fieldName, name, ValidEvent(name))
	}
	for i := range requestTypes {
		if f := &requestTypes[i]; f.t == t {
			if r := f.decode(d); d.bad == "" {
				return r, nil
			}
			return d.faulty(t), nil
		}
	}
	panic("codec: no request of type " + t)
}

// put makes text that keeps the grammar of names the value of a field; any other
// becomes a name that is none.
func (d *decoder) put(f field, text string, valid bool) {
	if !valid {
		text = ""
	}
	at := len(d.body)
	w := writer{d.codec, d.body}
	w.text(text)
	d.body = w.b
	d.gate.fields[f] = span{uint32(at), uint32(len(d.body))}
}
