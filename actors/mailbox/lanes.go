package mailbox

import (
	"sync"
	"sync/atomic"

	"github.com/yaza-dev/pulse/backpressure"
)

// claimMost is how many messages the worker takes out of the lanes under one
// lock. Producers and the worker share that lock, so it is what a message costs.
const claimMost = 16

// lanes are the queues of one mailbox, and the messages that its worker has
// claimed but not yet handed to the actor. A mailbox that has a LanePool holds
// them only while something waits.
type lanes struct {
	items, bytes int // the bounds that queue was made with

	// guarded by the mailbox's mu
	queue [backpressure.Lanes]backpressure.Queue[any]

	// claimed[at:n] are still to come. The worker fills it under the mailbox's
	// mu; who advances at owns the claims that it passed, which is the worker,
	// or Abandon where the worker does not come back.
	claimed [claimMost]claim
	n       uint32
	at      atomic.Uint32
}

// next takes the next claim, if there is one.
func (q *lanes) next() *claim {
	i := q.at.Load()
	if i < q.n && q.at.CompareAndSwap(i, i+1) {
		return &q.claimed[i]
	}
	return nil
}

// claims reports whether there are messages that were claimed and not handed out.
// On the worker.
func (q *lanes) claims() bool { return q.at.Load() < q.n }

// claim is an entry without its coalescing key, which it has lost: newer ones
// are queued behind it.
type claim struct {
	msg     any
	expires int64
	size    int32
	lane    backpressure.Lane
}

func newLanes(items, bytes int) *lanes {
	q := &lanes{items: items, bytes: bytes}
	for l := range q.queue {
		q.queue[l] = backpressure.NewQueue[any](items, bytes)
	}
	q.queue[backpressure.Control] = backpressure.NewQueue[any](ControlItems, ControlBytes)
	return q
}

// LanePool lends lanes to the mailboxes of one kind of actor, for as long as
// something waits in them: an idle actor then holds no queue memory, whatever
// it received before. The zero value is ready to use.
type LanePool struct{ pool sync.Pool }

func (p *LanePool) get(items, bytes int) *lanes {
	if p != nil {
		if q, ok := p.pool.Get().(*lanes); ok && q.items == items && q.bytes == bytes {
			return q
		}
	}
	return newLanes(items, bytes)
}
