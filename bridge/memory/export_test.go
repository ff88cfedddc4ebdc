package memory

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// What tests of the whole broker need from inside.

const (
	MaxRepeats        = maxRepeats
	MaxWaiting        = maxWaiting
	MaxDeliveries     = maxDeliveries
	MaxDeliveryEvents = maxDeliveryEvents
)

func (b *Broker) Sweep() { b.sweep() }

// Faults is what the node's account has been given back too much.
func (b *Broker) Faults() int64 { return b.account.Faults() }

// Records counts the records of all tenants, and the tenants.
func (b *Broker) Records() (records, tenants int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, t := range b.tenants {
		records += t.topics.len()
	}
	return records, len(b.tenants)
}

// FillKeys makes a topic remember n more keys, which nobody will use.
func (b *Broker) FillKeys(topic codec.Topic, n int, window time.Duration) {
	t := b.enter(topic.Tenant)
	defer t.mu.Unlock()
	tp, _ := t.topics.get(topic.Room)
	for range n {
		tp.repeats.order.Push(ending{until: b.now() + int64(window)})
	}
}

// SetHead puts a topic's head where it would be after many publishes.
func (b *Broker) SetHead(topic codec.Topic, head uint64) {
	t := b.enter(topic.Tenant)
	defer t.mu.Unlock()
	tp, err := t.open(topic.Room, b.now())
	if err != nil {
		panic(err)
	}
	tp.history.head = head
}

// Records counts the records of all tenants.
func (s *LeaseStore) Records() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sessions := range s.tenants {
		n += len(sessions)
	}
	return n
}

func (s *LeaseStore) Began() time.Time { return s.began }
func (s *LeaseStore) Now() time.Time   { return s.now() }
