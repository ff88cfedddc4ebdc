package codec

import "strings"

func (d *decoder) publish() *Publish {
	p := &Publish{
		ID:       d.id,
		Room:     d.room(),
		Event:    d.name(fieldEvent),
		Data:     d.data(),
		DedupKey: d.dedupKey(),
	}
	p.TTL, p.HasTTL = d.duration(fieldTTLMS)
	if p.Data.IsZero() {
		d.blameRequest("data is missing")
	}
	return p
}

func (d *decoder) ack() *Ack {
	room := d.room()
	p, there := d.position()
	if !there {
		d.blameRequest("epoch and offset are missing")
	}
	return &Ack{Room: room, Position: p}
}

func (d *decoder) join() Join {
	j := Join{
		Room:     d.room(),
		Presence: d.boolean(fieldPresence, false),
		NoEcho:   !d.boolean(fieldEcho, true),
		Data:     d.data(),
	}
	j.Position, j.HasPosition = d.position()
	return j
}

func (d *decoder) command() *Command {
	c := &Command{
		ID:       d.id,
		Name:     d.name(fieldName),
		Data:     d.data(),
		DedupKey: d.dedupKey(),
	}
	if _, there := d.optional(fieldRoom); there {
		c.Room = d.room()
	}
	c.Deadline, c.HasDeadline = d.duration(fieldDeadlineMS)
	return c
}

func (d *decoder) history() *History {
	h := &History{
		ID:      d.id,
		Room:    d.room(),
		Limit:   d.limit(),
		Reverse: d.boolean(fieldReverse, false),
	}
	h.Position, h.HasPosition = d.position()
	return h
}

func (d *decoder) presence() *PresenceQuery {
	q := &PresenceQuery{ID: d.id, Room: d.room(), Limit: d.limit(), After: d.text(fieldAfter)}
	if _, there := d.optional(fieldAfter); there && !ValidSubject(q.After) {
		d.blameRequest("after is no subject")
	}
	return q
}

// hello has no faults of its own: nothing could be answered to a client that
// cannot say hello. Its rooms are refused one by one.
func (d *decoder) hello() (Request, error) {
	h := &Hello{Token: d.text(fieldToken), Client: d.text(fieldClient), Resume: d.text(fieldResume)}
	if len(h.Client) > maxClient {
		d.blameRequest("client is over 128 bytes")
	}
	if list, ok := d.optional(fieldAccept); ok {
		if list.kind() != arrayKind {
			d.mistyped("accept is no list")
		}
		for v := range list.elements() {
			s, ok := v.text()
			if !ok {
				d.mistyped("accept holds something that is no text")
			}
			h.Accept = append(h.Accept, strings.Clone(s))
		}
	}
	rooms, ok := d.optional(fieldRooms)
	if ok && rooms.kind() != arrayKind {
		d.mistyped("rooms is no list")
	}
	if d.bad != "" {
		return nil, malformed("hello: " + d.bad)
	}
	for entry := range rooms.elements() {
		if entry.kind() != objectKind {
			return nil, malformed("hello: an entry of rooms is no object")
		}
		room, err := d.helloRoom(entry)
		if err != nil {
			return nil, err
		}
		h.Rooms = append(h.Rooms, room)
	}
	return h, nil
}

// helloRoom reads one entry as if it were the frame.
func (d *decoder) helloRoom(entry value) (HelloRoom, error) {
	d.gate.fields, d.gate.inFault, d.recheck, d.bad = fields{}, "", true, ""
	d.body = entry.raw
	s := source(entry)
	for n := s.open(); s.more(&n); {
		name, _ := s.take().text()
		start := len(d.body) - len(s.raw)
		end := start + len(s.take().raw)
		d.gate.fields[fieldOf(name)] = span{uint32(start), uint32(end)}
	}
	if _, there := d.optional(fieldRoom); !there {
		return HelloRoom{}, malformed("hello: an entry of rooms has no room")
	}
	join := d.join()
	switch {
	case d.wrongType:
		return HelloRoom{}, malformed("hello: " + d.bad)
	case d.bad != "":
		return HelloRoom{Join: Join{Room: join.Room}, Err: NewError(CodeBadRequest, d.bad)}, nil
	}
	return HelloRoom{Join: join}, nil
}
