package redis

import "time"

// tenure is how a node holds its name among the others: by a lease on the server,
// prolonged at a third. It counts by the monotonic clock, from when what prolonged
// it was sent; a node that could not, gives the name up before the server does, and
// takes a new one. So no name lives on the server without its node knowing it. Pure.
type tenure struct {
	life time.Duration // immutable

	id     string
	since  time.Time // from which life counts; zero: the server has never heard of id
	next   time.Time // when to tell it
	asking bool
}

// spare is by how much a node gives its name up before the server does: two seconds
// of fifteen.
func (t *tenure) spare() time.Duration { return t.life * 2 / 15 }

// begin takes a name.
func (t *tenure) begin(id string) { *t = tenure{life: t.life, id: id} }

// due: the server is to be told, now. It is said once, until answered.
func (t *tenure) due(now time.Time) bool {
	if t.asking || now.Before(t.next) {
		return false
	}
	t.asking = true
	return true
}

// answered is the outcome of telling the server of id, at sent. forgot: the server had
// known it and does no more.
func (t *tenure) answered(id string, sent, now time.Time, ok, known bool) (forgot bool) {
	if id != t.id {
		return false
	}
	t.asking = false
	if !ok {
		t.next = now.Add(t.life / 15)
		return false
	}
	forgot = !known && !t.since.IsZero()
	t.since, t.next = sent, sent.Add(t.life/3)
	return forgot
}

// over: the name is to be given up.
func (t *tenure) over(now time.Time) bool {
	return !t.since.IsZero() && now.Sub(t.since) >= t.life-t.spare()
}

// lookout says which of the other nodes are dead: those whose lease has ended, seen by
// a node that has itself been whole for the time of a lease, so that what is missing
// is not what the server lost a moment ago. It looks twice: a node that has just taken
// its name may have somebody in a room before its lease is there. And it waits for a part
// of a lease, left to chance, for another node to act. Pure.
type lookout struct {
	life  time.Duration // immutable
	whole time.Time     // since when; zero: it is not
	dead  map[string]missing
}

// missing is a node whose lease was not there.
type missing struct {
	until time.Time // others have time
	again bool      // it was not there the next time either
}

// disturbed: something may have been lost until now. away: and still may.
func (l *lookout) disturbed(now time.Time, away bool) {
	l.whole = now
	if away {
		l.whole = time.Time{}
	}
	clear(l.dead)
}

// seen is whether a node's lease was there. chance is in [0, 1).
func (l *lookout) seen(id string, there bool, now time.Time, chance float64) {
	m, known := l.dead[id]
	switch {
	case there:
		delete(l.dead, id)
	case known:
		m.again = true
		l.dead[id] = m
	case !l.whole.IsZero() && now.Sub(l.whole) >= l.life:
		l.dead[id] = missing{until: now.Add(time.Duration(chance * float64(l.life) / 3))}
	}
}

// due takes out the dead nodes for which somebody has had time.
func (l *lookout) due(now time.Time) (ids []string) {
	for id, m := range l.dead {
		if m.again && !now.Before(m.until) {
			delete(l.dead, id)
			ids = append(ids, id)
		}
	}
	return ids
}
