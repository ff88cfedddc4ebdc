package room

import (
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// passFrames is for how many different marks one pass makes the changes since;
// members at further ones are given the whole list.
const passFrames = 9

// telling is how members who asked for it are told of moves of the view: gathered
// for a while, then in one pass over them.
type telling struct {
	askers []*member      // in no order; who leaves is replaced by the last
	list   []codec.Member // of the view, for frames; nil: to be made

	log  movements
	told uint64 // the mark that the last pass has told
	news bool   // somebody is to be told something
	due  int64  // when the next pass begins; 0: nothing is gathered

	// the pass under way
	passing bool
	pass    uint32 // how many there were, this one too
	next    int    // askers below it are yet to be served
	frozen  movements
	lists   bool // as the view did, and does
	now     uint64
	count   int
	frames  map[uint64]*codec.Frame // by the mark that a member knows; nil: nothing to tell
	full    *codec.Frame            // the whole list, or nil
	fullAt  uint64
	kept    bool // somebody stays where the log has brought nothing
	short   bool // somebody could not be served
}

// add makes m one who is told, of what comes after this.
func (t *telling) add(m *member) {
	m.sight.place, m.sight.pass = len(t.askers), t.pass
	t.askers = append(t.askers, m)
	m.sight.in = true
}

// remove ends it.
func (t *telling) remove(m *member) {
	if !m.sight.in {
		return
	}
	m.sight.in = false
	last := len(t.askers) - 1
	t.askers[m.sight.place] = t.askers[last]
	t.askers[m.sight.place].sight.place = m.sight.place
	t.askers[last] = nil
	t.askers = t.askers[:last]
	if cap(t.askers) > 64 && last < cap(t.askers)/4 {
		t.askers = append(make([]*member, 0, 2*last), t.askers...)
	}
}

// note gathers a move of the view.
func (p *presence) note(s step) {
	p.list = nil
	switch {
	case len(p.askers) == 0:
		p.log, p.told = movements{}, s.seq
		return
	case s.rebased:
		p.log, p.passing = movements{}, false
		for _, m := range p.askers {
			m.sight.stale = true
		}
		p.news = true
	case !p.view.listed:
		p.log, p.news = movements{}, true
		p.passing = p.passing && !p.lists // who was not served yet will be by the next
	default:
		p.log.add(s)
		p.news = p.news || len(s.changes) > 0
	}
}

// tell begins a pass when it is due, and serves one slice of it.
func (p *presence) tell(now int64) {
	v := p.view
	if !p.passing && p.due != 0 && now >= p.due && v.whole {
		p.begin()
	}
	if p.passing {
		p.slice()
	}
	if p.news && p.due == 0 {
		p.due = now + int64(gatherFor(v.number(), v.listed))
	}
}

// slice serves some members, with other work of the node in between.
func (p *presence) slice() {
	served := 0
	for p.next = min(p.next, len(p.askers)); p.next > 0 && served < scheduler.Slice; served++ {
		p.next--
		p.serve(p.askers[p.next])
	}
	p.room.turn.Spend(1+served*sliceCost/scheduler.Slice, 0)
	if p.next > 0 {
		p.room.mb.Raise(&p.arrivals.signal, presenceTimed)
		return
	}
	p.end()
}

// begin freezes what there is to tell.
func (p *presence) begin() {
	v := p.view
	p.passing, p.next = true, len(p.askers)
	p.pass++
	p.frozen, p.log = p.log, movements{}
	p.lists, p.now, p.count = v.listed, v.mark.Seq, v.number()
	p.frames, p.full = make(map[uint64]*codec.Frame), nil
	p.news, p.due, p.kept, p.short = false, 0, false, false
	if p.lists {
		if f, ok := p.since(p.told); ok && f == nil {
			return // most stay where they are; else they come along
		}
	}
	p.told = p.now
}

// end of a pass.
func (p *presence) end() {
	p.passing = false
	if p.kept {
		later := p.log.steps
		p.log = p.frozen
		for _, s := range later {
			p.log.add(s)
		}
	}
	p.news = p.news || p.short
	p.frozen, p.frames, p.full = movements{}, nil, nil
}

// serve tells one member what it does not know yet.
func (p *presence) serve(m *member) {
	s := &m.sight
	if s.pass == p.pass {
		return
	}
	s.pass = p.pass
	if !s.stale && s.seq == p.now {
		return
	}
	f, at := p.frame(m)
	switch {
	case f == nil:
		return
	case m.Out.Offer(p.room.turn, p.room.mb.Flow(), p.room.cfg.Policy.Lane, f, m.Seat):
		s.seq, s.stale = at, false
	default:
		p.short = true
	}
}

// frame is what brings a member from the mark that it knows to another. Nil: it
// stays.
func (p *presence) frame(m *member) (f *codec.Frame, at uint64) {
	s := &m.sight
	switch {
	case s.stale && !p.informed(m):
		p.short = true // its own join is not seen yet
		return nil, 0
	case !p.lists && s.stale:
		return p.number(p.now), p.now
	case !p.lists:
		return p.number(s.seq), p.now
	case !s.stale:
		if f, ok := p.since(s.seq); ok {
			p.kept = p.kept || f == nil
			return f, p.now
		}
	}
	if p.full == nil && p.view.whole {
		p.fullAt = p.view.mark.Seq
		p.full = p.frameOf(codec.PresenceFrame{Seq: p.fullAt, Prev: p.fullAt, Full: true, Members: p.members(), Count: p.view.number()})
	}
	p.short = p.short || p.full == nil
	return p.full, p.fullAt
}

func (p *presence) frameOf(f codec.PresenceFrame) *codec.Frame {
	f.Room, f.PE = p.room.cfg.Topic.Room, p.view.mark.Epoch
	return codec.NewFrame(&f)
}

// number tells how many there are. Like the whole list it follows on itself where
// it begins anew.
func (p *presence) number(prev uint64) *codec.Frame {
	f, ok := p.frames[prev]
	if !ok {
		f = p.frameOf(codec.PresenceFrame{Seq: p.now, Prev: prev, Count: p.count})
		p.frames[prev] = f
	}
	return f
}

// since is the frame of what has changed after a mark; nil: nothing. False: it
// cannot be told so.
func (p *presence) since(seq uint64) (f *codec.Frame, ok bool) {
	if f, ok = p.frames[seq]; ok || len(p.frames) >= passFrames {
		return f, ok
	}
	steps, ok := p.frozen.from(seq)
	if !ok {
		return nil, false
	}
	if changes := net(steps); len(changes) > 0 {
		doc := codec.PresenceFrame{Seq: p.now, Prev: seq}
		if fill(&doc, changes) > p.view.most {
			return nil, false
		}
		f = p.frameOf(doc)
	}
	p.frames[seq] = f
	return f, true
}
