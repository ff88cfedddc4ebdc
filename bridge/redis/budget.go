package redis

import (
	"sync"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// What the server needs beside the text of an event: in a sorted set, its places in
// two tables and a list, and the numbers around the text; and for each room, its two
// keys and its record.
const (
	eventFootprint = 160
	roomFootprint  = 1200
)

// footprintRuns is how finely a room's events are told apart: a run of them goes when
// its last one does.
const footprintRuns = 16

// budget estimates what each tenant's history takes on the server, as far as this
// node has written it, and says when that is the node's share of what the tenant may
// have. What a node has written goes as it does on the server: when it is too old, or
// when so many have come after it, whoever wrote those. What has been admitted and
// not answered yet is not in it: that is bounded by what may wait.
//
// It keeps some hundred bytes for each room that has something on the server.
type budget struct {
	most func(tenant string) int64 // immutable; nil: there is no bound

	mu sync.Mutex
	// guarded by mu
	nodes   int // that share it, this one included
	tenants map[string]*holding
	rooms   map[codec.Topic]*roomHolding
	queue   backpressure.Ring[*roomHolding] // all of rooms, each once, to be looked at in turn
}

// holding is a tenant's.
type holding struct {
	bytes int64
	rooms int
}

// roomHolding is what is kept of a room.
type roomHolding struct {
	topic  codec.Topic
	tenant *holding
	epoch  string
	runs   backpressure.Ring[run] // oldest first
	sizes  int64                  // of all runs
}

// run is some events that follow each other, and go together.
type run struct {
	first, last uint64    // offsets
	since, ends time.Time // the first came, the last is too old
	bytes       int64     // on the server
	sizes       int64     // as the history of a kind counts them
}

func newBudget(most func(string) int64) *budget {
	return &budget{most: most, nodes: 1, tenants: make(map[string]*holding), rooms: make(map[codec.Topic]*roomHolding)}
}

// shared: so many nodes live.
func (b *budget) shared(nodes int) {
	b.mu.Lock()
	b.nodes = max(1, nodes)
	b.mu.Unlock()
}

// admits reports whether a tenant may have more kept.
func (b *budget) admits(tenant string) bool {
	if b.most == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.tenants[tenant]
	return h == nil || h.bytes < b.most(tenant)/int64(b.nodes)
}

// added: events up to last were taken, of so many bytes as they stand on the server
// and of such a size for the kind's history.
func (b *budget) added(topic codec.Topic, r bridge.Retention, last codec.Position, events int, bytes, sizes int64, now time.Time) {
	if b.most == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	room := b.rooms[topic]
	if room == nil {
		room = b.room(topic)
	}
	end := last.Offset
	if n := room.runs.Len(); n > 0 && room.runs.At(n-1).last >= end {
		if room.epoch != last.Epoch { // its history began anew
			room.clear()
		} else { // the answer that followed it overtook it
			end = room.runs.At(n - 1).last
		}
	}
	room.epoch = last.Epoch
	if events > r.Events { // the first of them are gone already
		bytes, sizes = bytes*int64(r.Events)/int64(events), sizes*int64(r.Events)/int64(events)
		events = r.Events
	}
	life := r.Age
	if life <= 0 {
		life = 24 * time.Hour // from the last write on
	}
	room.append(run{
		first: end + 1 - uint64(events), last: end, since: now, ends: now.Add(life),
		bytes: bytes + int64(events)*eventFootprint, sizes: sizes,
	}, life/footprintRuns, r)
	room.trim(now)
	for room.runs.Len() > 1 {
		front := room.runs.At(0)
		if front.last+uint64(r.Events) > end && (r.Bytes == 0 || room.sizes-front.sizes < r.Bytes) {
			break
		}
		room.drop()
	}
}

// look forgets what is too old, of some rooms.
func (b *budget) look(now time.Time, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range min(most, b.queue.Len()) {
		room, _ := b.queue.Pop()
		if room.trim(now); room.runs.Len() > 0 {
			b.queue.Push(room)
			continue
		}
		delete(b.rooms, room.topic)
		room.tenant.bytes -= roomFootprint
		if room.tenant.rooms--; room.tenant.rooms == 0 {
			delete(b.tenants, room.topic.Tenant)
		}
	}
}

// room begins one. Under mu.
func (b *budget) room(topic codec.Topic) *roomHolding {
	h := b.tenants[topic.Tenant]
	if h == nil {
		h = &holding{}
		b.tenants[topic.Tenant] = h
	}
	h.rooms++
	h.bytes += roomFootprint
	room := &roomHolding{topic: topic, tenant: h}
	b.rooms[topic] = room
	b.queue.Push(room)
	return room
}

// append adds to the last run what may go with it: a run is a part of the history by
// time, by number and by size.
func (r *roomHolding) append(next run, span time.Duration, most bridge.Retention) {
	r.sizes += next.sizes
	r.tenant.bytes += next.bytes
	if n := r.runs.Len(); n > 0 {
		back := r.runs.At(n - 1)
		if next.since.Sub(back.since) < span && next.last-back.first < uint64(most.Events/footprintRuns) &&
			(most.Bytes == 0 || back.sizes+next.sizes <= most.Bytes/footprintRuns) {
			back.last, back.ends = next.last, next.ends
			back.bytes += next.bytes
			back.sizes += next.sizes
			r.runs.Set(n-1, back)
			return
		}
	}
	r.runs.Push(next)
}

func (r *roomHolding) trim(now time.Time) {
	for r.runs.Len() > 0 && !now.Before(r.runs.At(0).ends) {
		r.drop()
	}
}

func (r *roomHolding) clear() {
	for r.runs.Len() > 0 {
		r.drop()
	}
}

func (r *roomHolding) drop() {
	gone, _ := r.runs.Pop()
	r.sizes -= gone.sizes
	r.tenant.bytes -= gone.bytes
}
