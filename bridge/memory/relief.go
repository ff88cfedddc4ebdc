package memory

import "github.com/yaza-dev/pulse/bridge"

// recordNeed is what making a record may need.
const recordNeed = topicCost + 128

// need is what a batch may need, taken generously.
func need(batch []bridge.Publication) int64 {
	n := int64(recordNeed)
	for i := range batch {
		p := &batch[i]
		if p.Buffered {
			n += eventCost(p.Event, p.Event.Size())
		}
		if p.DedupKey != "" {
			n += repeatCost
		}
	}
	return n
}

// makeRoom takes history from whoever holds most until the node has n bytes
// free, so that a tenant with little is not refused, and does not lose what it
// has, because others hold much. It runs ahead of the caller's own tenant's
// lock, and takes a little more than needed, so that it runs rarely.
func (b *Broker) makeRoom(n int64) {
	limit := b.config.HistoryBytes
	free := min(n, limit/16) // one call never costs everybody everything
	if b.account.Used()+free <= limit {
		return
	}
	b.relief.Lock()
	defer b.relief.Unlock()
	if b.account.Used()+free <= limit {
		return // by whoever was here before
	}
	goal := limit - free - limit/256
	for b.account.Used() > goal {
		t := b.largest()
		if t == nil {
			return
		}
		t.mu.Lock()
		for b.account.Used() > goal {
			tp := t.oldest.find()
			if tp == nil {
				break
			}
			t.drop(tp)
		}
		t.mu.Unlock()
	}
}

// largest is the tenant with the most history, or nil when nobody has any.
func (b *Broker) largest() *tenant {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var found *tenant
	var most int64
	for _, t := range b.tenants {
		if n := t.keeps.Load(); n > most {
			found, most = t, n
		}
	}
	return found
}
