package memory

import (
	"sync"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// Presence is a bridge.Presence that lives in one process. Its callbacks are
// called before the call has returned, on the caller's goroutine; watchers are
// called on the goroutine of whoever changes or watches. It holds a record per
// topic that somebody is in or watches, and no goroutine. What it holds is
// bounded by the sessions of its node, times the rooms that each is in, times
// what a member's data may be.
type Presence struct {
	mu sync.Mutex // taken after a hall's mu, or alone
	// guarded by mu
	halls  table[codec.Topic, *hall]
	closed bool
}

var _ bridge.Presence = (*Presence)(nil)

// NewPresence makes an empty one.
func NewPresence() *Presence { return &Presence{} }

// Change implements bridge.Presence.
func (p *Presence) Change(topic codec.Topic, generation uint64, u bridge.PresenceUpdate, done func(bridge.Mark, *codec.Error)) {
	h := p.enter(topic, true)
	if h == nil {
		done(bridge.Mark{}, errClosed)
		return
	}
	var call presenceCall
	mine := false
	if generation > h.generation {
		h.generation = generation
		if c, changed := h.change(u); changed {
			call = presenceCall{watchers: h.watchers, change: &c}
			mine = h.offer(call)
		}
	}
	mark := h.mark
	p.exit(topic, h)
	if mine {
		defer h.outbox.deliver(&h.mu, call, h.anew) // even if done panics: nobody else would come
	}
	done(mark, nil)
}

// List implements bridge.Presence.
func (p *Presence) List(topic codec.Topic, after string, limit int, done func(bridge.MemberPage, *codec.Error)) {
	h := p.enter(topic, true)
	if h == nil {
		done(bridge.MemberPage{}, errClosed)
		return
	}
	page := bridge.MemberPage{Mark: h.mark, Count: h.members.len()}
	page.Members, page.More = h.members.page(after, limit)
	p.exit(topic, h)
	done(page, nil)
}

// Watch implements bridge.Presence.
func (p *Presence) Watch(topic codec.Topic, w bridge.Watcher) {
	h := p.enter(topic, true)
	if h == nil {
		return
	}
	h.watch(w)
	call := presenceCall{watchers: []bridge.Watcher{w}}
	mine := h.offer(call)
	p.exit(topic, h)
	if mine {
		h.outbox.deliver(&h.mu, call, h.anew)
	}
}

// Unwatch implements bridge.Presence.
func (p *Presence) Unwatch(topic codec.Topic, w bridge.Watcher) {
	if h := p.enter(topic, false); h != nil {
		h.unwatch(w)
		p.exit(topic, h)
	}
}

// Close implements bridge.Presence.
func (p *Presence) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed, p.halls = true, table[codec.Topic, *hall]{}
}

// enter finds the record of a topic, or makes it, and locks it. Nil: closed, or
// there is none.
func (p *Presence) enter(topic codec.Topic, make bool) *hall {
	for {
		p.mu.Lock()
		h, ok := p.halls.get(topic)
		if !ok && make && !p.closed {
			h = newHall()
			p.halls.put(topic, h)
		}
		p.mu.Unlock()
		if h == nil {
			return nil
		}
		h.mu.Lock()
		if !h.ended {
			return h
		}
		h.mu.Unlock()
	}
}

// exit unlocks a record, and forgets it when nothing is left of it. Its epoch is
// then never seen again, so that the next one may count from the beginning.
func (p *Presence) exit(topic codec.Topic, h *hall) {
	if h.members.len() == 0 && len(h.watchers) == 0 {
		h.ended = true
		p.mu.Lock()
		if !p.closed {
			p.halls.remove(topic)
			p.halls.compact()
		}
		p.mu.Unlock()
	}
	h.mu.Unlock()
}
