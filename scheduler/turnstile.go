package scheduler

import "container/list"

// turnstile lets a bounded number in at once, and when one leaves lets the next in, round robin by key. It is pure: no goroutine, no lock.
// Only those who wait cost memory.
type turnstile[K comparable, V any] struct {
	free   int // places
	perKey int // places that one key may have; 0: all
	line   int // waiting that one key may have; 0: no bound, where each is a goroutine that exists anyway

	keys  map[K]*queueOf[K, V]
	order list.List // of *queueOf with somebody waiting who may enter
}

type queueOf[K comparable, V any] struct {
	key     K
	held    int // places, counted only with perKey
	waiting list.List
	turn    *list.Element // in order; nil: not there
}

func newTurnstile[K comparable, V any](places, perKey, line int) turnstile[K, V] {
	return turnstile[K, V]{free: places, perKey: perKey, line: line, keys: make(map[K]*queueOf[K, V])}
}

// enter asks for a place. In: it has one. Else waiting is its place in its key's line, or nil when that is full.
func (s *turnstile[K, V]) enter(k K, v V) (in bool, waiting *list.Element) {
	if s.free > 0 && s.perKey == 0 {
		s.free--
		return true, nil
	}
	q := s.keys[k]
	if q == nil {
		q = &queueOf[K, V]{key: k}
		s.keys[k] = q
	}
	if s.free > 0 && q.held < s.perKey {
		s.free--
		q.held++
		return true, nil
	}
	if s.line > 0 && q.waiting.Len() >= s.line {
		return false, nil
	}
	waiting = q.waiting.PushBack(v)
	s.arrange(q)
	return false, waiting
}

// leave gives a place of k back and lets the next one in, if there is one.
func (s *turnstile[K, V]) leave(k K) (next K, v V, ok bool) {
	s.free++
	if s.perKey > 0 {
		q := s.keys[k]
		q.held--
		s.arrange(q)
	}
	front := s.order.Front()
	if front == nil {
		return next, v, false
	}
	q := front.Value.(*queueOf[K, V])
	v = q.waiting.Remove(q.waiting.Front()).(V)
	s.order.Remove(front)
	q.turn = nil
	s.free--
	if s.perKey > 0 {
		q.held++
	}
	s.arrange(q)
	return q.key, v, true
}

// cancel takes somebody who waits out of the line; false: let in already.
func (s *turnstile[K, V]) cancel(k K, waiting *list.Element) bool {
	q := s.keys[k]
	if q == nil {
		return false
	}
	before := q.waiting.Len()
	q.waiting.Remove(waiting)
	if q.waiting.Len() == before {
		return false
	}
	s.arrange(q)
	return true
}

// arrange puts a key where it belongs after a change: into the rotation, out of it, or away.
func (s *turnstile[K, V]) arrange(q *queueOf[K, V]) {
	eligible := q.waiting.Len() > 0 && (s.perKey == 0 || q.held < s.perKey)
	switch {
	case eligible && q.turn == nil:
		q.turn = s.order.PushBack(q)
	case !eligible && q.turn != nil:
		s.order.Remove(q.turn)
		q.turn = nil
	}
	if q.waiting.Len() == 0 && q.held == 0 {
		delete(s.keys, q.key)
	}
}
