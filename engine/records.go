package engine

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/actors/session"
	"github.com/yaza-dev/pulse/bridge"
)

// recordState is where the record of a session stands.
//
//	live ──▶ detached ──▶ over
//	  └──────────────────────▶
type recordState uint8

const (
	recordLive     recordState = iota // its connection lives
	recordDetached                    // its connection has ended, its time runs
	recordOver                        // ended, taken over or forgotten
)

// record is this node's holding of one session. Owned by records.
type record struct {
	lease   bridge.Lease
	session *session.Session // while live
	state   recordState
	written bool // the store knows it
	urgent  bool // in records.urgent

	// due is when a live one is renewed again, and when a detached one ends.
	due        int64
	next, prev *record // in the list of its state; nil: in none
}

// records are the sessions of a node: those whose connection is here, and those
// whose connection was here and whose time has not run out, with what the store of
// leases is still to be told of them. Pure: instants are nanoseconds of one monotonic clock.
//
// Detached sessions are counted by tenant, at most as many as it may have live
// ones, and by node likewise: beyond, the oldest is ended, of the node's that of
// the tenant that has most.
type records struct {
	ttl, every int64 // how long a lease lives, and after how long it is renewed
	max        int   // detached, of the node

	byID     map[string]*record // live and detached ones, and those that are to be released
	live     recordList         // written, by due
	detached map[string]*detachedRecords
	apart    int // detached, in all

	urgent    []*record // to be written at once: begun, or just detached
	releasing []*record // to be released
}

// detachedRecords are those of one tenant, by due.
type detachedRecords struct {
	recordList
	n int
}

func newRecords(ttl time.Duration, max int) records {
	return records{
		ttl: int64(ttl), every: int64(ttl / 3), max: max,
		byID: make(map[string]*record), detached: make(map[string]*detachedRecords),
	}
}

// add takes a record on. The one of the same session before it, if any, is over; if
// it was live its actor is returned, to be told so.
func (rs *records) add(r *record, now int64) (replaced *session.Session) {
	if old := rs.byID[r.lease.Session]; old != nil {
		replaced = rs.drop(old)
	}
	rs.byID[r.lease.Session] = r
	if r.written {
		r.due = now + rs.every
		rs.live.push(r)
	} else {
		rs.rush(r)
	}
	return replaced
}

// detach lets go of a session that its client may resume: its time counts from
// now. most is how many detached ones its tenant may have.
func (rs *records) detach(r *record, now int64, most int) {
	if r.state != recordLive {
		return
	}
	r.unlink()
	r.session, r.state, r.due = nil, recordDetached, now+rs.ttl
	d := rs.detached[r.lease.Tenant]
	if d == nil {
		d = &detachedRecords{}
		rs.detached[r.lease.Tenant] = d
	}
	d.push(r)
	d.n++
	rs.apart++
	rs.rush(r)
	for d.n > most {
		rs.end(d.first())
	}
	if rs.apart > rs.max {
		rs.end(rs.largest().first())
	}
}

func (rs *records) largest() (most *detachedRecords) {
	for _, d := range rs.detached {
		if most == nil || d.n > most.n {
			most = d
		}
	}
	return most
}

// end ends a session for good: its lease is to be released, and until it is nobody
// resumes it here.
func (rs *records) end(r *record) {
	if r.state != recordOver {
		rs.drop(r)
		rs.byID[r.lease.Session] = r
		rs.releasing = append(rs.releasing, r)
	}
}

// lose is told that a lease is somebody else's: the actor of the session that
// was held through it, if any.
func (rs *records) lose(l bridge.Lease) *session.Session {
	if r := rs.byID[l.Session]; r != nil && r.lease == l {
		return rs.drop(r)
	}
	return nil
}

// drop forgets a record; it returns its actor if it was live.
func (rs *records) drop(r *record) *session.Session {
	s := r.session
	r.unlink()
	if r.state == recordDetached {
		d := rs.detached[r.lease.Tenant]
		rs.apart--
		if d.n--; d.n == 0 {
			delete(rs.detached, r.lease.Tenant)
		}
	}
	if rs.byID[r.lease.Session] == r {
		delete(rs.byID, r.lease.Session)
	}
	r.state, r.session = recordOver, nil
	return s
}

// claim decides what the store cannot know yet: a session that has ended here and
// is not released, and one whose lease is not written. The latter has the claim's
// lease from then on, so that no second claim is taken. False: the store decides.
func (rs *records) claim(c bridge.Lease) (bridge.Acquired, bool) {
	r := rs.byID[c.Session]
	switch {
	case r == nil || r.lease.Tenant != c.Tenant:
		return bridge.Acquired{}, false
	case r.state == recordOver:
		return bridge.Acquired{Verdict: bridge.Ended}, true
	case r.written:
		return bridge.Acquired{}, false
	case r.lease.Generation > c.Generation:
		return bridge.Acquired{Verdict: bridge.Outdated}, true
	}
	c.Generation++
	r.lease = c
	return bridge.Acquired{Verdict: bridge.Taken, Lease: c}, true
}

// rush has a record written at once.
func (rs *records) rush(r *record) {
	if !r.urgent {
		r.urgent = true
		rs.urgent = append(rs.urgent, r)
	}
}

// toRenew is what is to be renewed now, at most most of them: appended to batch,
// and taken out until renewed.
func (rs *records) toRenew(batch []*record, now int64, most int) []*record {
	n := 0
	for _, r := range rs.urgent {
		if len(batch) == most {
			break
		}
		n++
		r.urgent = false
		if r.state != recordOver {
			batch = append(batch, r)
		}
	}
	clear(rs.urgent[:n])
	if rs.urgent = rs.urgent[n:]; len(rs.urgent) == 0 {
		rs.urgent = nil
	}
	for r := rs.live.first(); r != nil && r.due <= now && len(batch) < most; r = rs.live.first() {
		r.unlink()
		batch = append(batch, r)
	}
	return batch
}

// renewed puts a batch back. What was not written is urgent again; what has
// become detached meanwhile is so already.
func (rs *records) renewed(batch []*record, ok bool, now int64) {
	for _, r := range batch {
		switch {
		case r.state == recordOver:
			continue
		case !ok:
			rs.rush(r)
			continue
		case r.state == recordLive:
			r.due = now + rs.every
			rs.live.push(r)
		}
		r.written = true
	}
}

// toRelease is what is to be released now.
func (rs *records) toRelease() []*record {
	list := rs.releasing
	rs.releasing = nil
	for _, r := range list {
		if rs.byID[r.lease.Session] == r {
			delete(rs.byID, r.lease.Session)
		}
	}
	return list
}

// expire forgets detached sessions whose time has run out, and what waits for a
// store that is away though it is over.
func (rs *records) expire(now int64) {
	for _, d := range rs.detached {
		for r := d.first(); r != nil && r.due <= now; r = d.first() {
			rs.drop(r)
		}
	}
	rs.urgent = slices.DeleteFunc(rs.urgent, func(r *record) bool { return r.state == recordOver })
}

// recordList is a list through the records, in the order of pushes.
type recordList struct{ head *record }

func (l *recordList) first() *record {
	if l.head == nil || l.head.next == l.head {
		return nil
	}
	return l.head.next
}

func (l *recordList) push(r *record) {
	if l.head == nil {
		l.head = &record{}
		l.head.next, l.head.prev = l.head, l.head
	}
	r.prev, r.next = l.head.prev, l.head
	r.prev.next, l.head.prev = r, r
}

func (r *record) unlink() {
	if r.next != nil {
		r.next.prev, r.prev.next = r.prev, r.next
		r.next, r.prev = nil, nil
	}
}
