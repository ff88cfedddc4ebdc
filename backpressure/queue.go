package backpressure

// Entry is what a Queue holds: an item and what the lane must know of it.
type Entry[T any] struct {
	Item T
	// Size in bytes, against the lane's Bytes. At least 0.
	Size int
	// Key is the coalescing key, used with CoalesceLatest only; 0 is no key.
	Key uint64
	// Expires is the monotonic time in nanoseconds from which the item must not run any more; 0 is never.
	Expires int64
}

// Queue is one bounded lane: a FIFO with a bound in items and one in bytes. It is owned by its holder, who brings the lock.
type Queue[T any] struct {
	ring Ring[Entry[T]]
	// index finds the waiting entry of a key by its number, an entry's number being popped + its place. Allocated by the first keyed
	// entry, given back together with a ring that had grown large; thus never larger than the lane's items.
	index  map[uint64]uint32
	popped uint32 // wraps: numbers are only compared by difference
	items  int    // immutable
	limit  int    // immutable
	bytes  int    // of what waits
}

// NewQueue is an empty lane that takes at most items entries and bytes bytes. It allocates nothing.
func NewQueue[T any](items, bytes int) Queue[T] { return Queue[T]{items: items, limit: bytes} }

// Len is the number of waiting entries.
func (q *Queue[T]) Len() int { return q.ring.Len() }

// Push offers an entry. What leaves the lane for it is appended to removed, which the caller brings, usually as a slice of a small array:
// with Coalesced exactly the entry that was replaced, with Accepted those that DropOldest pushed out, with any other outcome nothing.
//
// An entry that would not fit an empty lane is TooLarge, whatever the policy. A newer entry that is larger than the older one of its key
// and does not fit in its place is Backpressured, and the older one stays.
func (q *Queue[T]) Push(e Entry[T], p Policy, removed []Entry[T]) (Outcome, []Entry[T]) {
	if e.Size > q.limit || q.items < 1 {
		return TooLarge, removed
	}
	keyed := p == CoalesceLatest && e.Key != 0
	if keyed {
		if i, ok := q.find(e.Key); ok {
			old := q.ring.At(i)
			if q.bytes-old.Size+e.Size > q.limit {
				return Backpressured, removed
			}
			q.ring.Set(i, e)
			q.bytes += e.Size - old.Size
			return Coalesced, append(removed, old)
		}
	}
	for !q.fits(e.Size) {
		if p != DropOldest || q.ring.Len() == 0 {
			return Backpressured, removed
		}
		removed = append(removed, *q.ring.Front())
		q.Drop()
	}
	if keyed {
		q.note(e.Key)
	}
	q.push(e)
	return Accepted, removed
}

// Offer is Push for an entry that has no key and that others do not make way for: it is the entry's place at the end of the queue, with its
// size noted, where the caller puts the rest before the queue changes. Nil: it was not taken.
func (q *Queue[T]) Offer(size int) (*Entry[T], Outcome) {
	switch {
	case size > q.limit || q.items < 1:
		return nil, TooLarge
	case !q.fits(size):
		return nil, Backpressured
	}
	q.bytes += size
	e := q.ring.Extend()
	e.Size = size
	return e, Accepted
}

// Replace puts e in the place of the waiting entry with its key, if that makes the queue at most grow bytes larger; the queue's own bounds
// are not looked at. found tells whether there is such an entry, done whether old has left the queue for e.
func (q *Queue[T]) Replace(e Entry[T], grow int) (old Entry[T], found, done bool) {
	i, ok := q.find(e.Key)
	if !ok {
		return old, false, false
	}
	old = q.ring.At(i)
	if e.Size-old.Size > grow {
		return old, true, false
	}
	q.ring.Set(i, e)
	q.bytes += e.Size - old.Size
	return old, true, true
}

// PushReserved appends an entry past the bounds, which are its caller's to keep: by reservations, or over several lanes. One with a key is
// found by later ones.
func (q *Queue[T]) PushReserved(e Entry[T]) {
	if e.Key != 0 {
		q.note(e.Key)
	}
	q.push(e)
}

// note remembers the entry that is about to be pushed by its key.
func (q *Queue[T]) note(key uint64) {
	if q.index == nil {
		q.index = make(map[uint64]uint32)
	}
	q.index[key] = q.popped + uint32(q.ring.Len())
}

// PushFront returns an entry that was popped and not used to the front, past the bounds: it had its place a moment ago. It is not
// coalesced with any more.
func (q *Queue[T]) PushFront(e Entry[T]) {
	q.popped--
	q.ring.PushFront(e)
	q.bytes += e.Size
}

// Front is the oldest entry, nil when there is none. It is valid until the queue changes.
func (q *Queue[T]) Front() *Entry[T] { return q.ring.Front() }

// Drop removes the oldest entry without copying it. It panics when there is none.
func (q *Queue[T]) Drop() {
	e := q.ring.Front()
	q.bytes -= e.Size
	if len(q.index) > 0 && e.Key != 0 && q.index[e.Key] == q.popped {
		delete(q.index, e.Key)
	}
	q.popped++
	q.ring.Drop()
	if q.ring.buf == nil {
		q.index = nil
	}
}

// Expired reports that the entry must not run any more.
func (e *Entry[T]) Expired(now int64) bool { return e.Expires != 0 && e.Expires <= now }

func (q *Queue[T]) fits(size int) bool {
	return q.ring.Len() < q.items && q.bytes+size <= q.limit
}

func (q *Queue[T]) find(key uint64) (int, bool) {
	n, ok := q.index[key]
	return int(n - q.popped), ok
}

func (q *Queue[T]) push(e Entry[T]) {
	s := q.ring.Extend() // by field: a copy of the whole reads in wider words than the caller wrote, and waits for them
	s.Item, s.Size, s.Key, s.Expires = e.Item, e.Size, e.Key, e.Expires
	q.bytes += e.Size
}
