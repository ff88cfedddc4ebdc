package memory

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// tenant holds the topics of one tenant. It exists while it has any.
type tenant struct {
	// immutable
	name    string
	account *backpressure.Account

	// atomic, written under mu
	limit atomic.Int64 // bytes; account's
	keeps atomic.Int64 // charged for history: who holds most gives first when the node is full

	mu sync.Mutex
	// guarded by mu
	ended  bool // no longer in the broker: whoever waited for mu looks the name up again
	topics table[string, *topic]
	oldest oldest
	rooms  bucket
}

func newTenant(name string, limit int64, node *backpressure.Account, rooms bucket) *tenant {
	t := &tenant{name: name, account: backpressure.NewAccount(node, limit), rooms: rooms}
	t.limit.Store(limit)
	return t
}

// encodingCost is charged for what an encoding of an event holds besides data.
const encodingCost = 256

// eventCost is what a kept event of the given size is charged: itself, and one
// encoding, since those that members cause stay attached to it.
func eventCost(e *codec.Event, size int) int64 {
	return int64(size + e.Data.Len() + encodingCost)
}

// charge takes n bytes, at the price of the tenant's oldest events if need be,
// but not where its limit could not be kept even without any.
func (t *tenant) charge(n int64) bool {
	if t.account.Used()-t.keeps.Load()+n > t.limit.Load() {
		return false
	}
	for !t.account.Charge(n) {
		tp := t.oldest.find()
		if tp == nil {
			return false
		}
		t.drop(tp)
	}
	return true
}

// drop removes the topic's oldest event.
func (t *tenant) drop(tp *topic) {
	e := tp.history.drop()
	cost := eventCost(e, e.Size())
	t.keeps.Add(-cost)
	t.account.Release(cost)
}

// expire removes what age and retention have ended.
func (t *tenant) expire(tp *topic, now int64) {
	for tp.history.excess(now) {
		t.drop(tp)
	}
	if cost := tp.repeats.forget(now); cost > 0 {
		t.account.Release(cost)
	}
}

// open finds or makes the record of a room.
func (t *tenant) open(room string, now int64) (*topic, *codec.Error) {
	if tp, ok := t.topics.get(room); ok {
		t.expire(tp, now)
		return tp, nil
	}
	if !t.rooms.take(now) {
		return nil, codec.Retry(codec.CodeQuotaExceeded, codec.ScopeTenant, time.Second, "too many new rooms")
	}
	tp := newTopic(room, now)
	if !t.charge(tp.cost()) {
		return nil, t.overBudget(tp.cost())
	}
	t.topics.put(room, tp)
	return tp, nil
}

func (t *tenant) overBudget(n int64) *codec.Error {
	scope := codec.ScopeNode
	if t.account.Used()+n > t.limit.Load() {
		scope = codec.ScopeTenant
	}
	return codec.Retry(codec.CodeQuotaExceeded, scope, time.Second, "no budget left for history")
}

// discard ends the tenant with all that it has, and returns who waits for
// commands of others. Deliveries under way go on.
func (t *tenant) discard() (waiting []func(bridge.Attempted)) {
	for _, tp := range t.topics.entries {
		for _, at := range tp.attempts.open.entries {
			waiting = append(waiting, at.waiting...)
		}
	}
	t.ended = true
	t.account.Release(t.account.Used())
	t.keeps.Store(0)
	t.topics, t.oldest = table[string, *topic]{}, nil
	return waiting
}
