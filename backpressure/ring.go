package backpressure

const (
	// ringFirst is the capacity of the first allocation.
	ringFirst = 4
	// ringKeep is the largest capacity that an empty ring keeps: about one batch. An idle receiver that once held more gives it all back.
	ringKeep = 64
)

// Ring is a FIFO. The zero value is empty and owns no memory; Push allocates, then doubles. When the last element leaves a ring of more
// than 64 slots the memory is given back; a smaller one keeps it, so that steady traffic does not allocate. It has no bound of its own.
type Ring[T any] struct {
	buf  []T // nil, or a power of two
	head uint32
	n    uint32
}

// Len is the number of elements.
func (r *Ring[T]) Len() int { return int(r.n) }

// Push appends v.
func (r *Ring[T]) Push(v T) { *r.Extend() = v }

// Extend appends a zero value, and is its place until the ring changes.
func (r *Ring[T]) Extend() *T {
	if int(r.n) == len(r.buf) {
		r.grow()
	}
	r.n++
	return r.at(r.n - 1)
}

// PushFront puts v before all others.
func (r *Ring[T]) PushFront(v T) {
	if int(r.n) == len(r.buf) {
		r.grow()
	}
	r.head--
	r.n++
	*r.at(0) = v
}

// Pop removes the first element.
func (r *Ring[T]) Pop() (v T, ok bool) {
	if r.n == 0 {
		return v, false
	}
	v = *r.at(0)
	r.Drop()
	return v, true
}

// Drop removes the first element without copying it. It panics when there is none.
func (r *Ring[T]) Drop() {
	var zero T
	*r.at(r.checked(0)) = zero
	r.head++
	r.n--
	if r.n == 0 && len(r.buf) > ringKeep {
		r.buf, r.head = nil, 0
	}
}

// Front is the first element, still in the ring; nil when there is none. It is valid until the ring changes.
func (r *Ring[T]) Front() *T {
	if r.n == 0 {
		return nil
	}
	return r.at(0)
}

// At is element i, counted from the front. It panics outside 0 ≤ i < Len.
func (r *Ring[T]) At(i int) T { return *r.at(r.checked(i)) }

// Set replaces element i. It panics outside 0 ≤ i < Len.
func (r *Ring[T]) Set(i int, v T) { *r.at(r.checked(i)) = v }

func (r *Ring[T]) checked(i int) uint32 {
	if uint(i) >= uint(r.n) {
		panic("backpressure: ring index out of range")
	}
	return uint32(i)
}

func (r *Ring[T]) at(i uint32) *T { return &r.buf[(r.head+i)&uint32(len(r.buf)-1)] }

func (r *Ring[T]) grow() {
	buf := make([]T, max(ringFirst, 2*len(r.buf)))
	if r.n > 0 {
		start := int(r.head) & (len(r.buf) - 1)
		k := copy(buf, r.buf[start:])
		copy(buf[k:], r.buf[:start])
	}
	r.buf, r.head = buf, 0
}
