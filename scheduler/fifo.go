package scheduler

// link tells where a node of a fifo keeps the pointer to the next one, so that a node can be in several lists at once without memory of
// their own.
type link[T any] interface{ next(*T) **T }

// fifo is an intrusive list: circular, known by its tail, so that an empty one costs a word. A node is in at most one list per link. It
// calls link through its type's dictionary, some 2 ns each time; so the two lists that each wake-up passes through are written out.
type fifo[T any, L link[T]] struct{ tail *T }

func (q *fifo[T, L]) empty() bool { return q.tail == nil }

// front is the next to pop; nil: none.
func (q *fifo[T, L]) front() *T {
	var l L
	if q.tail == nil {
		return nil
	}
	return *l.next(q.tail)
}

func (q *fifo[T, L]) push(n *T) {
	q.pushFront(n)
	q.tail = n
}

func (q *fifo[T, L]) pushFront(n *T) {
	var l L
	if q.tail == nil {
		*l.next(n) = n
		q.tail = n
		return
	}
	*l.next(n) = *l.next(q.tail)
	*l.next(q.tail) = n
}

func (q *fifo[T, L]) pop() *T {
	if q.tail == nil {
		return nil
	}
	var l L
	n := *l.next(q.tail)
	if n == q.tail {
		q.tail = nil
	} else {
		*l.next(q.tail) = *l.next(n)
	}
	*l.next(n) = nil
	return n
}
