package session

import "sync/atomic"

// place tells the reader when its session takes requests again. It costs memory
// only while the reader waits, which few do.
type place struct {
	// atomic
	waiting atomic.Pointer[chan struct{}] // nil: the reader does not wait
	closed  atomic.Bool                   // no more requests are taken
}

// ask is closed when there may be place, or none ever again. What was freed before
// does not count: the reader looks once more before it waits. The reader's.
func (p *place) ask() <-chan struct{} {
	c := make(chan struct{})
	p.waiting.Store(&c)
	if p.closed.Load() {
		p.free()
	}
	return c
}

// asked: the reader waits.
func (p *place) asked() bool { return p.waiting.Load() != nil }

// free answers the reader, if it waits.
func (p *place) free() {
	if p.asked() {
		if c := p.waiting.Swap(nil); c != nil {
			close(*c)
		}
	}
}

// close answers the reader, now and whenever it asks again.
func (p *place) close() {
	p.closed.Store(true)
	p.free()
}
