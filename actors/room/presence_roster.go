package room

import (
	"container/list"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// roster is who is in the room on this node: by subject its sessions, in the
// order in which they joined, and what of that the bridge has yet to be told. An
// entry belongs to a session: to whichever membership of its latest connection
// joined last. Pure: instants are given.
//
// Invariant: a local is in subjects exactly while it has an entry; every entry of
// lost has a deadline, ascending, and no other has.
type roster struct {
	entries  map[string]*entry // by session
	subjects map[string]*local
	dirty    map[string]struct{} // subjects to tell the bridge of; of those who are not here at most mostGone
	lost     list.List           // of *entry
	bytes    int64               // what entries are charged
}

// entryCost is charged for an entry besides its data: in the room, in what it
// shows of others, and in the bridge.
const entryCost = 512

// mostGone is how many subjects a roster remembers who have left and of whom the bridge
// was not told: it may be away for as long as it likes, and they are on no ledger.
const mostGone = 8192

// local is a subject on this node.
type local struct {
	subject  string
	last     *entry // that joined last, whose data is the subject's; the others by prev
	sessions int
	version  uint64 // rises when it comes, and when its data changes
	told     uint64 // the version that the bridge has taken
}

// entry is one session.
type entry struct {
	session    string
	connection uint32 // of the session, from which owner is or was
	of         *local
	owner      *member // the membership that it belongs to; nil: lost
	data       codec.Data
	next, prev *entry
	deadline   int64 // when it leaves, if nothing takes it over; 0: not lost
	lost       *list.Element
}

func newRoster() *roster {
	return &roster{
		entries: make(map[string]*entry), subjects: make(map[string]*local), dirty: make(map[string]struct{}),
	}
}

func (r *roster) empty() bool { return len(r.entries) == 0 }

// has: the subject has a session on this node.
func (r *roster) has(subject string) bool { return r.subjects[subject] != nil }

// sessions that a subject has on this node.
func (r *roster) sessions(subject string) int {
	if l := r.subjects[subject]; l != nil {
		return l.sessions
	}
	return 0
}

// settled: the bridge has taken everything about a subject but its number of
// sessions.
func (r *roster) settled(subject string) bool {
	l := r.subjects[subject]
	return l == nil || l.told == l.version
}

// join makes an entry of a session that of owner, anew if there is none. It comes
// after all others of its subject. The entry of a later connection stays what it is:
// owner was taken over on the way, and will end.
func (r *roster) join(owner *member, data codec.Data) {
	session, subject := owner.Session, owner.Subject
	e := r.entries[session]
	if e != nil && e.connection > owner.Connection {
		return
	}
	if e == nil || e.of.subject != subject {
		if e != nil {
			r.remove(e)
		}
		e = &entry{session: session}
		r.entries[session] = e
		r.link(e, subject, data)
	} else {
		r.found(e)
		old := e.of.last.data
		r.bytes += int64(data.Len() - e.data.Len())
		if e.of.last != e {
			e.of.unlink(e)
			e.of.append(e)
		}
		e.data = data
		e.of.changed(r, !old.Same(data))
	}
	e.owner, e.connection = owner, owner.Connection
}

// link gives a new entry to its subject.
func (r *roster) link(e *entry, subject string, data codec.Data) {
	e.data = data
	r.bytes += int64(entryCost + data.Len())
	l := r.subjects[subject]
	fresh := l == nil
	if fresh {
		l = &local{subject: subject}
		r.subjects[subject] = l
	}
	fresh = fresh || !l.last.data.Same(data)
	l.append(e)
	l.sessions++
	r.dirty[subject] = struct{}{}
	l.changed(r, fresh)
}

// leave ends the entry of a membership; one that another has taken over stays.
func (r *roster) leave(owner *member) {
	if e := r.entries[owner.Session]; e != nil && e.owner == owner {
		r.remove(e)
	}
}

// lose lets the entry of a membership stay until the deadline.
func (r *roster) lose(owner *member, deadline int64) {
	if e := r.entries[owner.Session]; e != nil && e.owner == owner {
		e.owner, e.deadline = nil, deadline
		e.lost = r.lost.PushBack(e)
	}
}

// found takes back lose.
func (r *roster) found(e *entry) {
	if e.lost != nil {
		r.lost.Remove(e.lost)
		e.lost, e.deadline = nil, 0
	}
}

// expire ends the lost entries whose time has come.
func (r *roster) expire(now int64) (any bool) {
	for at := r.deadline(); at != 0 && at <= now; at = r.deadline() {
		r.remove(r.lost.Front().Value.(*entry))
		any = true
	}
	return any
}

// deadline of the lost entry that leaves next; 0: there is none.
func (r *roster) deadline() int64 {
	if first := r.lost.Front(); first != nil {
		return first.Value.(*entry).deadline
	}
	return 0
}

func (r *roster) remove(e *entry) {
	r.found(e)
	delete(r.entries, e.session)
	r.bytes -= int64(entryCost + e.data.Len())
	l := e.of
	old := l.last.data
	l.unlink(e)
	l.sessions--
	r.dirty[l.subject] = struct{}{}
	if l.last == nil {
		delete(r.subjects, l.subject)
		return
	}
	l.changed(r, !old.Same(l.last.data))
}

// again makes a subject to be told once more.
func (r *roster) again(subject string) {
	if l := r.subjects[subject]; l != nil {
		l.changed(r, true)
	}
}

func (l *local) changed(r *roster, matters bool) {
	if matters {
		l.version++
		r.dirty[l.subject] = struct{}{}
	}
}

func (l *local) append(e *entry) {
	e.of, e.prev, e.next = l, l.last, nil
	if l.last != nil {
		l.last.next = e
	}
	l.last = e
}

func (l *local) unlink(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
}

// forget lets go of who has left, if they are too many. True: it did, and the next
// report must be of everybody.
func (r *roster) forget() bool {
	if len(r.dirty) <= len(r.subjects)+mostGone {
		return false
	}
	for subject := range r.dirty {
		if !r.has(subject) {
			delete(r.dirty, subject)
		}
	}
	return true
}

// report is what the bridge is told in one call.
type report struct {
	bridge.PresenceUpdate
	told []version // of what it puts
}

type version struct {
	of *local
	n  uint64
}

// report takes what there is to tell: what has changed, or with whole everybody.
func (r *roster) report(whole bool) report {
	rep := report{PresenceUpdate: bridge.PresenceUpdate{Whole: whole}}
	if whole {
		for _, l := range r.subjects {
			rep.put(l)
		}
	} else {
		for subject := range r.dirty {
			if l := r.subjects[subject]; l != nil {
				rep.put(l)
			} else {
				rep.Remove = append(rep.Remove, subject)
			}
		}
	}
	r.dirty = make(map[string]struct{})
	return rep
}

func (rep *report) put(l *local) {
	rep.Put = append(rep.Put, codec.Member{Subject: l.subject, Sessions: l.sessions, Data: l.last.data})
	rep.told = append(rep.told, version{l, l.version})
}

// landed: the bridge has taken a report.
func (r *roster) landed(rep report) {
	for _, v := range rep.told {
		v.of.told = max(v.of.told, v.n)
	}
}

// failed: it may have taken it or not, so that all of it is to be told again.
func (r *roster) failed(rep report) {
	for _, m := range rep.Put {
		r.dirty[m.Subject] = struct{}{}
	}
	for _, subject := range rep.Remove {
		r.dirty[subject] = struct{}{}
	}
}
