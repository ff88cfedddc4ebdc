package memory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

// naive is one topic as PROTOCOL and bridge describe it, in slices and loops.
type naive struct {
	epoch string
	head  uint64
	kept  []naiveEvent
	limit bridge.Retention
	first map[string]naiveResult // by subject and key
}

type naiveEvent struct {
	offset uint64
	eid    string
	size   int
	at     time.Time
}

type naiveResult struct {
	eid    string
	offset uint64
	at     time.Time
	window time.Duration
}

func (n *naive) expire(now time.Time) {
	for len(n.kept) > 0 {
		bytes := 0
		for _, e := range n.kept {
			bytes += e.size
		}
		if len(n.kept) <= n.limit.Events && int64(bytes) <= n.limit.Bytes && now.Sub(n.kept[0].at) < n.limit.Age {
			return
		}
		n.kept = n.kept[1:]
	}
}

func (n *naive) publish(now time.Time, r bridge.Retention, p bridge.Publication) (eid string, offset uint64, duplicate bool, refused codec.Code) {
	n.expire(now)
	name := fmt.Sprintf("%q %q", p.Event.From, p.DedupKey)
	keyed := p.DedupKey != "" && r.DedupWindow > 0
	if f, ok := n.first[name]; ok && keyed && now.Sub(f.at) < f.window {
		return f.eid, f.offset, true, 0
	}
	size := p.Event.Size() + len(n.epoch)
	switch {
	case !p.Expires.IsZero() && !now.Before(p.Expires):
		return "", 0, false, codec.CodeExpired
	case p.Buffered && int64(size) > r.Bytes:
		return "", 0, false, codec.CodeTooLarge
	case p.Buffered:
		n.head++
		offset = n.head
		n.kept = append(n.kept, naiveEvent{offset, p.Event.EID, size, now})
		n.limit = r
		n.expire(now)
	}
	if keyed {
		n.first[name] = naiveResult{p.Event.EID, offset, now, r.DedupWindow}
	}
	return p.Event.EID, offset, false, 0
}

func (n *naive) read(now time.Time, req bridge.ReadRequest) (eids []string, more bool, reset codec.ResetReason) {
	n.expire(now)
	list := slices.Clone(n.kept)
	if req.HasSince {
		if req.Since.Epoch != n.epoch || req.Since.Offset > n.head {
			return nil, false, codec.ResetEpoch
		}
		list = slices.DeleteFunc(list, func(e naiveEvent) bool {
			return req.Reverse && e.offset >= req.Since.Offset || !req.Reverse && e.offset <= req.Since.Offset
		})
		if !req.Reverse && uint64(len(list)) != n.head-req.Since.Offset {
			return nil, false, codec.ResetExpired
		}
	}
	if req.Reverse {
		slices.Reverse(list)
	}
	bytes := 0
	for i, e := range list {
		bytes += e.size
		if i >= req.Limit || i > 0 && req.Bytes > 0 && bytes > req.Bytes {
			return eids, true, codec.ResetNone
		}
		eids = append(eids, e.eid)
	}
	return eids, false, codec.ResetNone
}

// Random calls give what the naive topic gives.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 40 {
		b, clock := start(t, memory.Config{})
		topic := topicOf("acme", "chat:1")
		log := &keeper{}
		b.Subscribe(topic, log)
		n := &naive{epoch: history(t, b, topic).Head.Epoch, first: map[string]naiveResult{}}
		var accepted []string
		made := 0
		for step := range 300 {
			where := fmt.Sprintf("round %d, step %d", round, step)
			switch random.IntN(10) {
			case 0:
				clock.pass(time.Duration(random.IntN(20)) * time.Second)
			case 1:
				b.Sweep()
			case 2, 3, 4, 5:
				r := bridge.Retention{
					Events: 1 + random.IntN(12), Age: time.Duration(1+random.IntN(60)) * time.Second,
					Bytes: 1 << (10 + random.IntN(5)), DedupWindow: time.Duration(random.IntN(60)) * time.Second,
				}
				batch := make([]bridge.Publication, random.IntN(6))
				for i := range batch {
					made++
					p := bridge.Publication{Event: event(topic, fmt.Sprint("e", made), random.IntN(2000)), Buffered: random.IntN(4) > 0}
					if random.IntN(2) == 0 {
						p.DedupKey = fmt.Sprint("k", random.IntN(8))
					}
					if random.IntN(4) == 0 {
						p.Expires = clock.Now().Add(time.Duration(random.IntN(3)-1) * time.Second)
					}
					batch[i] = p
				}
				for i, got := range publish(b, topic, r, batch...) {
					eid, offset, duplicate, refused := n.publish(clock.Now(), r, batch[i])
					if got.EID != eid || got.Position.Offset != offset || got.Duplicate != duplicate || code(got) != refused {
						t.Fatalf("%s: published %+v, the model says %q at %d, duplicate %v, refused %v", where, got, eid, offset, duplicate, refused)
					}
					if !duplicate && offset > 0 {
						accepted = append(accepted, eid)
					}
				}
			default:
				req := bridge.ReadRequest{
					Since:    codec.Position{Epoch: n.epoch, Offset: uint64(random.Int64N(int64(n.head + 3)))},
					HasSince: random.IntN(3) > 0, Reverse: random.IntN(2) == 0, Limit: random.IntN(8), Bytes: random.IntN(6000),
				}
				want, more, reset := n.read(clock.Now(), req)
				b.Read(topic, req, func(page bridge.Page, err *codec.Error) {
					var got []string
					for _, e := range page.Events {
						got = append(got, e.EID)
					}
					if err != nil || !slices.Equal(got, want) || page.More != more || page.Reset != reset || page.Head.Offset != n.head {
						t.Fatalf("%s: read %+v: %v more=%v reset=%v head=%v %v, the model says %v more=%v reset=%v head=%d",
							where, req, got, page.More, page.Reset, page.Head, err, want, more, reset, n.head)
					}
				})
			}
		}
		if !slices.Equal(log.eids, accepted) {
			t.Fatalf("round %d: arrived %v, accepted %v", round, log.eids, accepted)
		}
	}
}

// keeper is a sink that trusts the way: memory's loses nothing.
type keeper struct{ eids []string }

func (k *keeper) Subscribed(codec.Position, *codec.Error) {}
func (k *keeper) Gap(codec.Position)                      {}
func (k *keeper) Arrived(b bridge.Batch) {
	for _, e := range b.Events {
		k.eids = append(k.eids, e.EID)
	}
}
