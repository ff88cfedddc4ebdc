package room

import (
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

const (
	// viewPage is how many members one page of a list holds.
	viewPage = 1000
	// What may wait while a list is read; beyond, the reading begins anew.
	heldChanges  = 256
	heldSubjects = 8192
)

// view is who is in the room over all nodes, as far as this one knows: a list as
// long as it is within its bounds, else the number alone. It is read from the
// bridge, and from then on follows the bridge's changes; when one is missing it is
// read anew. Pure.
//
// Invariants: while whole, count is the bridge's at mark; while listed, members
// are the bridge's at mark, and whoever is on this node and was seen once: what
// this node has never leaves. They are at most limit, of at most most bytes.
type view struct {
	limit int                       // immutable
	most  int                       // immutable
	local func(subject string) bool // immutable: it is on this node

	mark    bridge.Mark
	whole   bool
	listed  bool
	count   int
	members map[string]*seen
	bytes   int // of members
	ceiling int // while not listed: below nine tenths of it the list comes back

	reading *reading // nil: none
	broken  bool     // something was lost, perhaps what this node has told too: for the shell to look at and clear
}

// seen is one member of the view. Immutable.
type seen struct {
	codec.Member
	size int
}

// reading is a list that is being read. What arrives meanwhile is held, and
// applied to it at its end: so nothing is lost between the list and the changes.
type reading struct {
	asked    bool        // a page is on its way
	base     bridge.Mark // of the first page: the changes after it apply
	count    int         // at base
	after    string
	members  map[string]*seen // nil: no page yet
	bytes    int
	held     []bridge.PresenceChange
	subjects int // in held
}

// step is a move of the view's mark, and who is another since.
type step struct {
	prev, seq uint64
	changes   []change
	// rebased: it does not follow from prev, whatever that is.
	rebased bool
}

// change is what became of one subject; nil: it is not there.
type change struct {
	subject       string
	before, after *seen
}

func newView(limit, most int, local func(string) bool) *view {
	return &view{limit: limit, most: most, local: local}
}

// anew begins to read, whatever the view is.
func (v *view) anew() {
	v.whole, v.broken = false, true
	v.reading = &reading{}
}

// number of members.
func (v *view) number() int {
	if v.listed {
		return len(v.members)
	}
	return v.count
}

// reached: the view reflects a mark.
func (v *view) reached(m bridge.Mark) bool {
	return v.whole && v.mark.Epoch == m.Epoch && v.mark.Seq >= m.Seq
}

// wants is the reading whose next page is to be asked for; nil: none is.
func (v *view) wants() *reading {
	if v.reading == nil || v.reading.asked {
		return nil
	}
	v.reading.asked = true
	return v.reading
}

// changed takes a change. back are subjects that are on this node, though the
// bridge says that they left: it is to be told again.
func (v *view) changed(c bridge.PresenceChange) (s step, moved bool, back []string) {
	if v.reading != nil {
		v.hold(c)
	}
	if !v.whole {
		return step{}, false, nil
	}
	switch {
	case c.Mark.Epoch == v.mark.Epoch && c.Mark.Seq <= v.mark.Seq:
		return step{}, false, nil
	case c.Mark.Epoch != v.mark.Epoch || c.Prev != v.mark.Seq:
		v.anew()
		return step{}, false, nil
	}
	s, back = v.apply(c)
	v.mind()
	return s, true, back
}

func (v *view) hold(c bridge.PresenceChange) {
	r := v.reading
	r.subjects += len(c.Joined) + len(c.Updated) + len(c.Left)
	if len(r.held) >= heldChanges || r.subjects > heldSubjects {
		v.reading = &reading{} // a list that is asked for from here on has it all
		return
	}
	r.held = append(r.held, c)
}

// apply moves the view by one change that follows its mark.
func (v *view) apply(c bridge.PresenceChange) (s step, back []string) {
	s = step{prev: v.mark.Seq, seq: c.Mark.Seq}
	v.mark = c.Mark
	v.count += len(c.Joined) - len(c.Left)
	if v.listed {
		for _, list := range [...][]codec.Member{c.Joined, c.Updated} {
			for i := range list {
				s.note(v.put(&list[i]))
			}
		}
	}
	for _, subject := range c.Left {
		if v.local(subject) {
			back = append(back, subject)
		} else if old := v.members[subject]; old != nil {
			delete(v.members, subject)
			v.bytes -= old.size
			s.note(change{subject, old, nil})
		}
	}
	return s, back
}

// note keeps a change that is one to whoever sees the members.
func (s *step) note(c change) {
	if c.before == nil || c.after == nil || !c.before.Data.Same(c.after.Data) {
		s.changes = append(s.changes, c)
	}
}

func (v *view) put(m *codec.Member) change {
	old := v.members[m.Subject]
	now := newSeen(m)
	if old != nil {
		v.bytes -= old.size
	}
	v.bytes += now.size
	v.members[m.Subject] = now
	return change{m.Subject, old, now}
}

func newSeen(m *codec.Member) *seen { return &seen{Member: *m, size: m.Size()} }

// mind keeps the bounds: the list is given up above them, and read anew once it
// is well below.
func (v *view) mind() {
	switch {
	case !v.whole:
	case v.listed && (len(v.members) > v.limit || v.bytes > v.most):
		v.unlist(len(v.members) > v.limit)
	case !v.listed && v.reading == nil && v.count < v.ceiling-v.ceiling/10:
		v.reading = &reading{}
	}
}

// unlist goes on with the number alone.
func (v *view) unlist(many bool) {
	v.listed, v.members, v.bytes = false, nil, 0
	v.ceiling = v.limit
	if !many { // too large, not too many: back when they are fewer
		v.ceiling = min(v.limit, v.count)
	}
}

// failed: a page did not come. Reading begins anew, in the shell's time.
func (v *view) failed(r *reading) {
	if v.reading == r {
		v.reading = &reading{}
	}
}

// page takes a page that was asked for. moved: the view is whole, at another
// mark or with another list than before.
func (v *view) page(r *reading, p bridge.MemberPage) (s step, moved bool, back []string) {
	if v.reading != r {
		return step{}, false, nil // it was begun anew
	}
	if r.members == nil {
		r.base, r.count, r.members = p.Mark, p.Count, make(map[string]*seen, len(p.Members))
	}
	if p.Mark.Epoch != r.base.Epoch {
		v.reading = &reading{}
		return step{}, false, nil
	}
	for i := range p.Members {
		m := newSeen(&p.Members[i])
		r.members[m.Subject] = m
		r.bytes += m.size
	}
	switch {
	case p.Count > v.limit || r.bytes > v.most:
		s, back, moved = v.install(p.Mark, p.Count, nil)
		v.unlist(p.Count > v.limit)
		return s, moved, back
	case p.More && len(p.Members) > 0:
		r.asked, r.after = false, p.Members[len(p.Members)-1].Subject
		return step{}, false, nil
	}
	s, back, moved = v.install(r.base, r.count, r.members)
	v.mind()
	return s, moved, back
}

// install makes what was read the view, and goes on with what was held. list nil:
// the number alone.
func (v *view) install(mark bridge.Mark, count int, list map[string]*seen) (s step, back []string, moved bool) {
	old := *v
	was, before, held := v.mark, v.members, v.reading.held
	follows := v.listed == (list != nil) && mark.Epoch == was.Epoch && mark.Seq >= was.Seq
	v.reading = nil
	v.mark, v.count, v.whole = mark, count, true
	v.listed, v.members, v.bytes = list != nil, list, 0
	for subject, m := range before {
		if list != nil && list[subject] == nil && v.local(subject) {
			list[subject] = m
		}
	}
	for _, m := range list {
		v.bytes += m.size
	}
	for _, c := range held {
		switch {
		case c.Mark.Epoch == v.mark.Epoch && c.Mark.Seq <= v.mark.Seq:
		case c.Mark.Epoch != v.mark.Epoch || c.Prev != v.mark.Seq:
			*v = old // as if it had not been read
			v.anew()
			return step{}, nil, false
		default:
			_, more := v.apply(c)
			back = append(back, more...)
		}
	}
	s = step{prev: was.Seq, seq: v.mark.Seq, rebased: !follows}
	if follows {
		for subject, m := range v.members {
			s.note(change{subject, before[subject], m})
		}
		for subject, m := range before {
			if v.members[subject] == nil {
				s.note(change{subject, m, nil})
			}
		}
	}
	return s, back, true
}
