package bridgetest

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// maxLate is how many arrivals wait in a Hostile; beyond, more are dropped.
const maxLate = 10_000

// HostileOptions say how bad the way is. The zero value only passes things on
// from another goroutine.
type HostileOptions struct {
	Delay     time.Duration // whatever comes back is late by up to this
	Drop      int           // percent of arrivals that are lost; a Gap follows within Delay of what waits before it
	Repeat    int           // percent of arrivals that come again, up to twice Delay later
	LoseReply int           // percent of publishes whose done gets CodeUnavailable, though they took effect
}

// Hostile makes b as bad as a Broker may be: completions and arrivals are late,
// completions come in another order than their calls, arrivals are dropped and
// repeated, replies of publishes get lost. Its choices follow from seed and from
// the order of calls. It owns b: its Close closes b, after which every callback
// still outstanding is called at once.
func Hostile(b bridge.Broker, seed uint64, o HostileOptions) bridge.Broker {
	h := &hostile{
		inner:   b,
		options: o,
		random:  rand.New(rand.NewPCG(seed, 1)),
		ways:    make(map[wayKey]*way),
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
	go h.run()
	return h
}

type hostile struct {
	// immutable
	inner   bridge.Broker
	options HostileOptions
	wake    chan struct{} // posted when the line's front or closed changed
	stopped chan struct{} // closed by run at its end

	mu sync.Mutex
	// guarded by mu
	random *rand.Rand
	ways   map[wayKey]*way
	line   line
	count  uint64 // of late things so far
	closed bool   // nothing more is put into line
}

// late is something that waits for its time.
type late struct {
	due   time.Time
	count uint64 // breaks ties, so that equal dues keep order
	owed  bool   // a callback: called even when closed
	call  func()
}

// put makes call late; the caller holds mu. With now set the caller runs call
// itself, after unlocking.
func (h *hostile) put(due time.Time, owed bool, call func()) (now bool) {
	if h.closed {
		return owed
	}
	h.count++
	heap.Push(&h.line, late{due, h.count, owed, call})
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return false
}

func (h *hostile) some(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(h.random.Int64N(int64(limit) + 1))
}

func (h *hostile) chance(percent int) bool { return h.random.IntN(100) < percent }

// complete makes a callback late, independently of others.
func (h *hostile) complete(call func()) {
	h.mu.Lock()
	now := h.put(time.Now().Add(h.some(h.options.Delay)), true, call)
	h.mu.Unlock()
	if now {
		call()
	}
}

func (h *hostile) run() {
	defer close(h.stopped)
	for {
		h.mu.Lock()
		var wait <-chan time.Time
		if len(h.line) > 0 {
			next := h.line[0]
			d := time.Until(next.due)
			if d <= 0 || h.closed {
				heap.Pop(&h.line)
				run := next.owed || !h.closed
				h.mu.Unlock()
				if run {
					next.call()
				}
				continue
			}
			wait = time.After(d)
		} else if h.closed {
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		select {
		case <-h.wake:
		case <-wait:
		}
	}
}

// Publish implements bridge.Broker.
func (h *hostile) Publish(topic codec.Topic, r bridge.Retention, batch []bridge.Publication, done func([]bridge.Published)) {
	h.inner.Publish(topic, r, batch, func(p []bridge.Published) {
		h.mu.Lock()
		lost := h.chance(h.options.LoseReply)
		h.mu.Unlock()
		if lost {
			for i := range p {
				p[i] = bridge.Published{Err: codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Millisecond, "the reply was lost")}
			}
		}
		h.complete(func() { done(p) })
	})
}

// Read implements bridge.Broker.
func (h *hostile) Read(topic codec.Topic, req bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	h.inner.Read(topic, req, func(p bridge.Page, err *codec.Error) {
		h.complete(func() { done(p, err) })
	})
}

// Subscribe implements bridge.Broker.
func (h *hostile) Subscribe(topic codec.Topic, s bridge.Sink) {
	key := wayKey{topic, s}
	h.mu.Lock()
	w := h.ways[key]
	if w == nil {
		w = &way{hostile: h, sink: s}
		h.ways[key] = w
	}
	h.mu.Unlock()
	h.inner.Subscribe(topic, w)
}

// Unsubscribe implements bridge.Broker. What is late still arrives.
func (h *hostile) Unsubscribe(topic codec.Topic, s bridge.Sink) {
	key := wayKey{topic, s}
	h.mu.Lock()
	w := h.ways[key]
	delete(h.ways, key)
	h.mu.Unlock()
	if w != nil {
		h.inner.Unsubscribe(topic, w)
	}
}

// Attempt implements bridge.Broker.
func (h *hostile) Attempt(topic codec.Topic, a bridge.Attempt, done func(bridge.Attempted)) {
	h.inner.Attempt(topic, a, func(r bridge.Attempted) {
		h.complete(func() { done(r) })
	})
}

// Settle implements bridge.Broker.
func (h *hostile) Settle(topic codec.Topic, s bridge.Settlement) { h.inner.Settle(topic, s) }

// Health implements bridge.Broker.
func (h *hostile) Health() bridge.Health { return h.inner.Health() }

// Watch implements bridge.Broker.
func (h *hostile) Watch(changed func(bridge.Health)) (stop func()) { return h.inner.Watch(changed) }

// Close implements bridge.Broker.
func (h *hostile) Close() {
	h.inner.Close()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
	<-h.stopped
}

type wayKey struct {
	topic codec.Topic
	sink  bridge.Sink
}

// way is the sink that the inner broker knows. It keeps order, but for repeats.
type way struct {
	// immutable
	hostile *hostile
	sink    bridge.Sink

	// guarded by hostile.mu
	last    time.Time      // due of the last that was put in order
	head    codec.Position // of the Gap that is owed
	gapOwed bool
}

// inOrder makes call late, but not before what was put before it; the caller
// holds hostile.mu.
func (w *way) inOrder(owed bool, call func()) (now bool) {
	due := time.Now().Add(w.hostile.some(w.hostile.options.Delay))
	if due.Before(w.last) {
		due = w.last
	}
	w.last = due
	return w.hostile.put(due, owed, call)
}

func (w *way) Subscribed(head codec.Position, err *codec.Error) {
	call := func() { w.sink.Subscribed(head, err) }
	w.hostile.mu.Lock()
	now := w.inOrder(true, call)
	w.hostile.mu.Unlock()
	if now {
		call()
	}
}

func (w *way) Arrived(b bridge.Batch) {
	h := w.hostile
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.chance(h.options.Drop) || len(h.line) >= maxLate {
		if last := b.Events[len(b.Events)-1].Position; !last.IsZero() {
			w.owe(last)
		}
		return
	}
	w.inOrder(false, func() { w.sink.Arrived(b) })
	if h.chance(h.options.Repeat) {
		h.put(w.last.Add(h.some(2*h.options.Delay)), false, func() { w.sink.Arrived(b) })
	}
}

func (w *way) Gap(head codec.Position) {
	w.hostile.mu.Lock()
	defer w.hostile.mu.Unlock()
	w.owe(head)
}

// owe promises a Gap, one at a time for all that was lost; the caller holds
// hostile.mu.
func (w *way) owe(head codec.Position) {
	w.head = head
	if w.gapOwed {
		return
	}
	w.gapOwed = true
	w.inOrder(false, func() {
		w.hostile.mu.Lock()
		head := w.head
		w.gapOwed = false
		w.hostile.mu.Unlock()
		w.sink.Gap(head)
	})
}

// line is a heap by due; the methods are for container/heap alone.
type line []late

func (l line) Len() int { return len(l) }
func (l line) Less(i, j int) bool {
	if !l[i].due.Equal(l[j].due) {
		return l[i].due.Before(l[j].due)
	}
	return l[i].count < l[j].count
}
func (l line) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *line) Push(x any)   { *l = append(*l, x.(late)) }
func (l *line) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = late{}
	*l = (*l)[:last]
	return x
}
