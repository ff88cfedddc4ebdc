package e2e

import (
	"fmt"
	"strconv"
)

// order checks what one client is sent against section 4 of the protocol: exactly
// one reply for each request, no event of a room outside its membership, each
// buffered event once and without a hole. It is told all frames, sent and received.
type order struct {
	asked map[string][]request // by id, those that wait for a reply
	rooms map[string]*place
	hello []any // the rooms that the hello asked for
}

type request struct {
	t, room string
	noEcho  bool
}

// place is where a membership stands.
type place struct {
	epoch  string
	offset uint64
	holes  bool // echo: false, own events are missing
}

func newOrder() *order {
	return &order{asked: map[string][]request{}, rooms: map[string]*place{}}
}

func (o *order) sent(f frame) {
	r := request{f.text("t"), f.text("room"), f["echo"] == false}
	if r.t == "hello" && o.hello == nil {
		o.hello, _ = f["rooms"].([]any)
	}
	if id := fmt.Sprint(f["id"]); f["id"] != nil {
		o.asked[id] = append(o.asked[id], r)
	}
}

func (o *order) received(f frame) error {
	room := f.text("room")
	in := o.rooms[room]
	switch f.text("t") {
	case "welcome":
		rooms, _ := f["rooms"].([]any)
		if len(rooms) != len(o.hello) {
			return fmt.Errorf("welcome answers %d rooms of %d", len(rooms), len(o.hello))
		}
		for i := range rooms {
			asked, _ := o.hello[i].(map[string]any)
			got := frame(rooms[i].(map[string]any))
			if got["room"] != asked["room"] {
				return fmt.Errorf("room %d of the welcome is %v, asked was %v", i, got["room"], asked["room"])
			}
			o.joined(request{"join", got.text("room"), asked["echo"] == false}, got)
		}
	case "reply":
		id := fmt.Sprint(f["id"])
		waiting := o.asked[id]
		if len(waiting) == 0 {
			return fmt.Errorf("a reply that nothing waits for: %v", f)
		}
		o.asked[id] = waiting[1:]
		switch r := waiting[0]; {
		case r.t == "join":
			o.joined(r, f)
		case r.t == "leave" && f["ok"] != nil:
			delete(o.rooms, r.room)
		}
	case "event":
		if in == nil {
			return fmt.Errorf("an event outside a membership: %v", f)
		}
		if f["offset"] == nil {
			return nil
		}
		offset := f.offset()
		if offset <= in.offset || offset > in.offset+1 && !in.holes {
			return fmt.Errorf("offset %d after %d: %v", offset, in.offset, f)
		}
		in.epoch, in.offset = f.text("epoch"), offset
	case "position":
		if in == nil || f.offset() < in.offset {
			return fmt.Errorf("position out of place: %v", f)
		}
		in.epoch, in.offset = f.text("epoch"), f.offset()
	case "reset":
		if in == nil {
			return fmt.Errorf("reset outside a membership: %v", f)
		}
		in.epoch, in.offset = f.text("epoch"), f.offset()
	case "left":
		if in == nil {
			return fmt.Errorf("left without a membership: %v", f)
		}
		delete(o.rooms, room)
	}
	return nil
}

func (o *order) joined(r request, f frame) {
	ok, _ := f["ok"].(map[string]any)
	if ok == nil {
		return
	}
	p := frame(ok)
	o.rooms[r.room] = &place{epoch: p.text("epoch"), offset: p.offset(), holes: r.noEcho}
}

// frame is an object on the wire, whatever its codec.
type frame map[string]any

func (f frame) text(name string) string {
	s, _ := f[name].(string)
	return s
}

func (f frame) offset() uint64 {
	n, _ := strconv.ParseUint(fmt.Sprint(f["offset"]), 10, 64)
	return n
}
