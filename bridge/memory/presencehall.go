package memory

import (
	"crypto/rand"
	"slices"
	"sync"

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
	outbox     outbox[presenceCall]
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

// offer has a call made, by the caller with mine.
func (h *hall) offer(c presenceCall) (mine bool) {
	mine, taken := h.outbox.offer(c)
	h.outbox.lost = h.outbox.lost || !taken
	return mine
}

// anew makes up for changes that did not fit the outbox.
func (h *hall) anew() presenceCall { return presenceCall{watchers: h.watchers} }

// maxPresenceCalls may wait in the outbox of one topic. Beyond, watchers get
// Anew instead.
const maxPresenceCalls = 256

// presenceCall is one call that a topic owes to its watchers: a change, or Anew.
type presenceCall struct {
	watchers []bridge.Watcher
	change   *bridge.PresenceChange
}

func (c presenceCall) hand() {
	for _, w := range c.watchers {
		if c.change == nil {
			w.Anew()
		} else {
			w.Changed(*c.change)
		}
	}
}

func (presenceCall) weight() int { return 0 }

func (presenceCall) bounds() (calls, weight int) { return maxPresenceCalls, 0 }
