package main

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// door bounds the connections that have not brought a whole request yet. Who comes
// when it is full takes the place of the one that has waited longest: so those who
// hold connections open and say nothing cost a fixed amount, and keep out nobody
// who speaks at once, wherever they all come from.
type door struct {
	max int // immutable

	// guarded by mu
	mu      sync.Mutex
	waiting list.List                  // of net.Conn, the oldest first
	places  map[net.Conn]*list.Element // in waiting
}

func newDoor(max int) *door { return &door{max: max, places: make(map[net.Conn]*list.Element)} }

// state is a server's ConnState.
func (d *door) state(c net.Conn, s http.ConnState) {
	if displaced := d.move(c, s); displaced != nil {
		if t, ok := displaced.(*tls.Conn); ok {
			displaced = t.NetConn() // closing TLS may write, which the accept loop must not wait for
		}
		_ = displaced.Close() // its server hears of it
	}
}

// move notes the state of c, and returns who has to go for it.
func (d *door) move(c net.Conn, s http.ConnState) (displaced net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s != http.StateNew {
		d.forget(c)
		return nil
	}
	d.places[c] = d.waiting.PushBack(c)
	if d.waiting.Len() > d.max {
		displaced = d.waiting.Front().Value.(net.Conn)
		d.forget(displaced)
	}
	return displaced
}

func (d *door) forget(c net.Conn) {
	if at := d.places[c]; at != nil {
		d.waiting.Remove(at)
		delete(d.places, c)
	}
}
