package redis

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// hall is what this node knows of a topic that is watched. It belongs to its
// listener.
type hall struct {
	wing     *wing       // immutable
	topic    codec.Topic // immutable
	channel  *channel
	viewers  []viewer // what they do comes back by the listener's queue
	attached bool     // the channel is confirmed
	gone     bool
	held     []func() // asked for since it is watched; until the channel is confirmed

	// known is the highest mark that the server has shown: what it must still have.
	known bridge.Mark
	// told is the mark up to which changes have come, or lists have been read; zero:
	// nothing has, since it was begun anew. behind is what the server had at the last
	// look: it must have come by the next.
	told, behind bridge.Mark
	checked      time.Time

	nodes []string // that have somebody here, this one too; sorted
	// awaited are nodes that had, when the count was lost, and have not told all of it
	// since, until the instant.
	awaited []string
	until   time.Time
}

// viewer is a watcher, which has no use for changes up to from.
type viewer struct {
	bridge.Watcher
	from bridge.Mark
}

func (h *hall) viewer(v bridge.Watcher) int {
	return slices.IndexFunc(h.viewers, func(o viewer) bool { return o.Watcher == v })
}

// learn takes in a mark of the server. Another epoch than before: it has lost the
// count, and perhaps whom the other nodes have here.
func (h *hall) learn(m bridge.Mark) {
	if h.known.Epoch == m.Epoch {
		h.known.Seq = max(h.known.Seq, m.Seq)
		return
	}
	if h.known.Epoch != "" {
		for _, id := range h.nodes {
			if !slices.Contains(h.awaited, id) && !h.wing.presence.isMine(id) {
				h.awaited = append(h.awaited, id)
			}
		}
		h.until = time.Now().Add(h.wing.presence.bridge.config.Lease)
		h.meet(nil)
	}
	h.known = m
}

// meet takes in which nodes have somebody here.
func (h *hall) meet(nodes []string) {
	slices.Sort(nodes)
	h.wing.presence.meet(h.nodes, nodes)
	h.nodes = nodes
}

// heard takes in which nodes have told all that they have.
func (h *hall) heard(nodes []string) {
	h.awaited = slices.DeleteFunc(h.awaited, func(id string) bool { return slices.Contains(nodes, id) })
}

// unsettled: others have yet to tell whom they have here.
func (h *hall) unsettled(now time.Time) bool {
	if !now.Before(h.until) {
		h.awaited = nil
	}
	return len(h.awaited) > 0
}

// listed: a page of this mark was read.
func (h *hall) listed(m bridge.Mark) {
	if h.told.Epoch == "" {
		h.told = m
	}
}

// compare takes in what the server has at a look: a change that should have come
// since the last one is lost, or what this node has told is, unless whole says that it
// is all there.
func (h *hall) compare(m bridge.Mark, whole bool) {
	lost := !whole || h.told.Epoch != "" &&
		(h.told.Epoch != m.Epoch || h.behind.Epoch == m.Epoch && h.told.Seq < h.behind.Seq)
	if h.behind = m; lost && h.attached {
		h.anew()
	}
}

// anew has the watchers begin anew.
func (h *hall) anew() {
	h.told = bridge.Mark{}
	for _, v := range h.viewers {
		v.Anew()
	}
}

// expects: a confirmation of the channel is under way.
func (h *hall) expects() bool { return !h.attached && !h.gone && h.channel.waiting }

// release does what was held.
func (h *hall) release() {
	held := h.held
	h.held = nil
	delete(h.wing.holding, h)
	for _, do := range held {
		do()
	}
}

// confirmed implements receiver: watchers find out by themselves what was missed.
func (h *hall) confirmed(ch *channel) {
	h.attached = true
	h.wing.listener.settle(ch)
	h.anew()
	h.release()
}

// lost implements receiver.
func (h *hall) lost() { h.attached = false }

// message implements receiver.
func (h *hall) message(text string) {
	b := h.wing.presence.bridge
	f, err := readFrame(text)
	if err != nil {
		b.counters.Unreadable.Add(1)
		b.log.Error("redis: a change of presence that cannot be read", "err", err)
		h.anew()
		return
	}
	h.learn(f.change.Mark)
	switch at := slices.Index(h.nodes, f.node); {
	case f.gone && at >= 0:
		h.meet(slices.Delete(slices.Clone(h.nodes), at, at+1))
	case !f.gone && at < 0:
		h.meet(append(slices.Clone(h.nodes), f.node))
	}
	h.told = f.change.Mark
	if f.empty() {
		return
	}
	for _, v := range h.viewers {
		if v.from.Epoch != f.change.Mark.Epoch || v.from.Seq < f.change.Mark.Seq {
			v.Changed(f.change)
		}
	}
}
