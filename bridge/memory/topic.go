package memory

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
)

const (
	topicCost = 640            // bytes charged for a record besides its name
	afterlife = time.Hour      // a record stays so long once its last event has gone of age
	joinedFor = 24 * time.Hour // and so long after the last write or join, once somebody has joined
)

// topic is the record of one topic. All of it is guarded by the tenant's lock.
type topic struct {
	room     string
	history  history
	repeats  repeats
	attempts attempts
	outbox   outbox[delivery]

	sinks []bridge.Sink // grows in place, is copied to shrink: deliveries hold on to what it was

	joined  bool  // a client has held a position of it, or may
	touched int64 // last write or join

	rank    int // in the tenant's oldest; -1: not there
	rankKey int64
}

func newTopic(room string, now int64) *topic {
	return &topic{room: room, history: newHistory(), touched: now, rank: -1}
}

// gap makes up for arrivals that did not fit the outbox.
func (tp *topic) gap() delivery {
	return delivery{sinks: tp.sinks, kind: gap, head: tp.history.position()}
}

func (tp *topic) cost() int64 { return topicCost + int64(len(tp.room)) }

func (tp *topic) subscribe(s bridge.Sink) {
	if !slices.Contains(tp.sinks, s) {
		tp.sinks = append(tp.sinks, s)
	}
}

func (tp *topic) unsubscribe(s bridge.Sink) {
	if i := slices.Index(tp.sinks, s); i >= 0 {
		tp.sinks = slices.Delete(slices.Clone(tp.sinks), i, i+1)
	}
}

// relax gives back what empty rings and tables hold on to.
func (tp *topic) relax() {
	if tp.history.run.Len() == 0 {
		tp.history.run = backpressure.Ring[kept]{}
	}
	if tp.repeats.order.Len() == 0 {
		tp.repeats.order = backpressure.Ring[ending]{}
	}
	tp.repeats.first.compact()
}

// over reports that nothing of the topic is left that anyone could miss.
func (tp *topic) over(now int64) bool {
	if len(tp.sinks) > 0 || tp.history.run.Len() > 0 || tp.repeats.order.Len() > 0 || tp.attempts.open.len() > 0 {
		return false
	}
	life := tp.history.limit.Age + afterlife
	if tp.joined {
		life = max(life, joinedFor)
	}
	return now-tp.touched >= int64(life)
}
