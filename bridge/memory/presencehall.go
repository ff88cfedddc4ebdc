package memory

import (
	"crypto/rand"
	"slices"
	"sync"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
)

// hall is who is in one topic.
type hall struct {
	mu sync.Mutex
	// guarded by mu
	ended      bool // no longer in the Presence: whoever waited for mu looks it up again
	mark       bridge.Mark
	generation uint64
	members    roll
	watchers   []bridge.Watcher // grows in place, is copied to shrink: calls hold on to what it was
	outbox     presenceOutbox
}

func newHall() *hall { return &hall{mark: bridge.Mark{Epoch: rand.Text()[:16]}} }

// change applies an update. False: nothing that is told has changed.
func (h *hall) change(u bridge.PresenceUpdate) (c bridge.PresenceChange, changed bool) {
	remove := u.Remove
	if u.Whole {
		remove = h.members.besides(u.Put)
	}
	for _, subject := range remove {
		if h.members.remove(subject) {
			c.Left = append(c.Left, subject)
		}
	}
	for _, m := range u.Put {
		switch old, known := h.members.put(m); {
		case !known:
			c.Joined = append(c.Joined, m)
		case !old.Same(m.Data):
			c.Updated = append(c.Updated, m)
		}
	}
	if len(c.Joined)+len(c.Updated)+len(c.Left) == 0 {
		return c, false
	}
	c.Prev = h.mark.Seq
	h.mark.Seq++
	c.Mark = h.mark
	return c, true
}

func (h *hall) watch(w bridge.Watcher) {
	if !slices.Contains(h.watchers, w) {
		h.watchers = append(h.watchers, w)
	}
}

func (h *hall) unwatch(w bridge.Watcher) {
	if i := slices.Index(h.watchers, w); i >= 0 {
		h.watchers = slices.Delete(slices.Clone(h.watchers), i, i+1)
	}
}

// deliver hands out c and whatever waits behind it. The caller was told to by
// the outbox, and holds no lock.
func (h *hall) deliver(c presenceCall) {
	idle := false
	defer func() {
		if !idle { // a watcher panicked: let the next caller hand out the rest
			h.mu.Lock()
			h.outbox.busy = false
			h.mu.Unlock()
		}
	}()
	for !idle {
		c.hand()
		var more bool
		h.mu.Lock()
		c, more = h.outbox.next(h.watchers)
		h.mu.Unlock()
		idle = !more
	}
}

// maxPresenceCalls may wait in the outbox of one topic. Beyond, watchers get
// Anew instead.
const maxPresenceCalls = 256

// presenceCall is one call that a topic owes to its watchers: a change, or Anew.
type presenceCall struct {
	watchers []bridge.Watcher
	change   *bridge.PresenceChange
}

func (c *presenceCall) hand() {
	for _, w := range c.watchers {
		if c.change == nil {
			w.Anew()
		} else {
			w.Changed(*c.change)
		}
	}
}

// presenceOutbox keeps calls in order while no lock is held: at most one
// goroutine hands out at a time. It is pure.
type presenceOutbox struct {
	busy    bool // a goroutine is handing out and will come for more
	lost    bool // a call did not fit: Anew is owed to all once the rest is out
	waiting backpressure.Ring[presenceCall]
}

// offer takes a call on. True: the caller hands it out, after unlocking.
func (o *presenceOutbox) offer(c presenceCall) (mine bool) {
	switch {
	case !o.busy:
		o.busy = true
		return true
	case o.waiting.Len() < maxPresenceCalls:
		o.waiting.Push(c)
	default:
		o.lost = true
	}
	return false
}

// next is what to hand out now; false: the caller is done.
func (o *presenceOutbox) next(watchers []bridge.Watcher) (presenceCall, bool) {
	if c, ok := o.waiting.Pop(); ok {
		return c, true
	}
	if o.lost {
		o.lost = false
		return presenceCall{watchers: watchers}, true
	}
	o.busy, o.waiting = false, backpressure.Ring[presenceCall]{}
	return presenceCall{}, false
}
