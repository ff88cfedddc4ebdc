package session

import "sync/atomic"

// place tells the reader when its session takes requests again. It costs memory
// only while the reader waits, which few do.
type place struct {
	// atomic: closed when there may be place; nil: the reader does not wait. One that is
	// closed and stays says that no more requests are taken.
	waiting atomic.Pointer[chan struct{}]
}

// ask is closed when there may be place, or none ever again. What was freed before
// does not count: the reader looks once more before it waits. The reader's.
func (p *place) ask() <-chan struct{} {
	c := make(chan struct{})
	if p.waiting.CompareAndSwap(nil, &c) {
		return c
	}
	if was := p.waiting.Load(); was != nil { // it has asked before, or there is none ever again
		return *was
	}
	close(c) // there is place since
	return c
}

// asked: the reader waits.
func (p *place) asked() bool { c := p.waiting.Load(); return c != nil && !isClosed(*c) }

// closed: no more requests are taken.
func (p *place) closed() bool { c := p.waiting.Load(); return c != nil && isClosed(*c) }

// free answers the reader, if it waits.
func (p *place) free() {
	if c := p.waiting.Load(); c != nil && !isClosed(*c) && p.waiting.CompareAndSwap(c, nil) {
		close(*c)
	}
}

// close answers the reader, now and whenever it asks again.
func (p *place) close() {
	c := make(chan struct{})
	close(c)
	if was := p.waiting.Swap(&c); was != nil && !isClosed(*was) {
		close(*was)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
