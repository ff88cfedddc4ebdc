package memory

import (
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

var (
	errClosed      = codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "the bridge is closed")
	errExpired     = codec.NewError(codec.CodeExpired, "too late to publish")
	errNoHistory   = codec.NewError(codec.CodeUnsupported, "the room has no history")
	errTooLarge    = codec.NewError(codec.CodeTooLarge, "larger than the room's history")
	errOffsets     = codec.NewError(codec.CodeInternal, "the room's offsets are used up")
	errManyKeys    = codec.Retry(codec.CodeQuotaExceeded, codec.ScopeRoom, time.Second, "too many dedup keys")
	errManyWaiting = codec.Retry(codec.CodeBackpressured, codec.ScopeRoom, time.Second, "too many subscriptions at once")
)

// publishing is one Publish under its tenant's lock.
type publishing struct {
	tenant    *tenant
	retention bridge.Retention
	at        time.Time // for Expires, which callers make
	now       int64     // the same instant on the broker's own scale

	topic   *topic         // opened by the first publication that needs it
	refused *codec.Error   // why it could not be opened
	size    int            // publications in the batch
	fresh   []*codec.Event // sequenced, for sinks
}

// one judges a publication.
func (p *publishing) one(room string, pub *bridge.Publication) bridge.Published {
	keyed := pub.DedupKey != "" && p.retention.DedupWindow > 0
	if !pub.Buffered && !keyed {
		if p.late(pub) {
			return bridge.Published{Err: errExpired}
		}
		return bridge.Published{EID: pub.Event.EID}
	}
	if p.topic == nil && p.refused == nil {
		p.topic, p.refused = p.tenant.open(room, p.now)
	}
	if p.refused != nil {
		return bridge.Published{Err: p.refused}
	}
	if !keyed {
		return p.sequence(pub, 0)
	}
	key := newRepeatKey(publication, pub.Event.From, pub.DedupKey)
	if first, ok := p.topic.repeats.find(key, p.now); ok {
		return bridge.Published{EID: first.eid, Position: first.position, Duplicate: true}
	}
	if p.topic.repeats.full() {
		return bridge.Published{Err: errManyKeys}
	}
	cost := int64(repeatCost + len(pub.Event.EID))
	result := p.sequence(pub, cost)
	if result.Err == nil {
		p.topic.repeats.remember(key, repeat{eid: result.EID, position: result.Position}, p.now, p.retention.DedupWindow, cost)
	}
	return result
}

// sequence gives a publication that is no repeat its place; keyCost is charged
// with it.
func (p *publishing) sequence(pub *bridge.Publication, keyCost int64) bridge.Published {
	t, h := p.tenant, &p.topic.history
	size, cost := 0, keyCost
	if pub.Buffered {
		size = pub.Event.Size() + len(h.epoch)
		cost += eventCost(pub.Event, size)
	}
	switch {
	case p.late(pub):
		return bridge.Published{Err: errExpired}
	case pub.Buffered && p.retention.Events < 1:
		return bridge.Published{Err: errNoHistory}
	case pub.Buffered && h.head >= codec.MaxOffset:
		return bridge.Published{Err: errOffsets}
	case p.retention.Bytes > 0 && int64(size) > p.retention.Bytes || cost > t.limit.Load():
		return bridge.Published{Err: errTooLarge}
	case !t.charge(cost):
		return bridge.Published{Err: t.overBudget(cost)}
	}
	if !pub.Buffered {
		return bridge.Published{EID: pub.Event.EID}
	}
	h.limit = p.retention
	e := h.append(pub.Event, p.now)
	t.keeps.Add(cost - keyCost)
	t.oldest.add(p.topic)
	p.topic.touched = p.now
	t.expire(p.topic, p.now)
	if len(p.topic.sinks) > 0 {
		if p.fresh == nil {
			p.fresh = make([]*codec.Event, 0, p.size)
		}
		p.fresh = append(p.fresh, e)
	}
	return bridge.Published{EID: e.EID, Position: e.Position}
}

func (p *publishing) late(pub *bridge.Publication) bool {
	return !pub.Expires.IsZero() && !p.at.Before(pub.Expires)
}
