package memory

import (
	"maps"
	"slices"
	"time"

	"github.com/yaza-dev/pulse/bridge"
)

// sweepStretch is how many records the sweeper visits without letting others in.
const sweepStretch = 256

func (b *Broker) sweeper() {
	defer close(b.stopped)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.sweep()
		case <-b.stop:
			return
		}
	}
}

// sweep removes what age has ended: events, keys, records, tenants.
func (b *Broker) sweep() {
	answers{b.swept(), bridge.Attempted{Err: errLapsed}}.hand()
}

// swept is sweep but for those who wait for commands whose time is over.
func (b *Broker) swept() (lost []func(bridge.Attempted)) {
	b.sweeping.Lock()
	defer b.sweeping.Unlock()
	b.mu.RLock()
	tenants := slices.Collect(maps.Values(b.tenants))
	b.mu.RUnlock()
	for _, t := range tenants {
		t.mu.Lock()
		lost = append(lost, t.sweep(b.now())...)
		if !t.ended && t.topics.len() == 0 {
			t.ended = true
			b.mu.Lock()
			delete(b.tenants, t.name)
			b.mu.Unlock()
		}
		t.mu.Unlock()
	}
	return lost
}

// sweep visits every record. It lets go of the lock now and then: the iteration
// goes on over a map that others have changed meanwhile, which Go defines, since
// nobody touches it at the same time. It returns who waited for commands whose
// time is over.
func (t *tenant) sweep(now int64) (lost []func(bridge.Attempted)) {
	visited := 0
	for _, tp := range t.topics.entries {
		if visited++; visited%sweepStretch == 0 {
			t.mu.Unlock()
			t.mu.Lock()
			if t.ended {
				return lost
			}
		}
		t.expire(tp, now)
		lost = append(lost, t.lapse(tp, now)...)
		tp.relax()
		if tp.over(now) {
			t.oldest.remove(tp)
			t.topics.remove(tp.room)
			t.account.Release(tp.cost())
		}
	}
	t.topics.compact()
	t.oldest.compact()
	return lost
}
