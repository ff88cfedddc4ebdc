package redis

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

const (
	catchEvents = 64 // between a subscription and its confirmation that are brought; beyond, a Gap
	maxChecks   = 64 // of one listener under way
	checkRate   = 2000 / listeners / int(time.Second/listenTick)
)

// topic is one in which this node has interest. It belongs to its listener's
// goroutine, which alone calls its sinks.
type topic struct {
	listener *listener
	name     codec.Topic
	head     *head // guarded by the listener's mu
	channel  *channel

	sinks []subscription
	joins []*join // that have not been answered

	// delivered is how far the sinks were brought; whole tells that everything after
	// it will come.
	delivered codec.Position
	attached  bool // the channel is confirmed
	links     int  // times that it was, so that answers of earlier ones are told apart
	whole     bool
	reading   bool // a check is under way
	waiting   bool // in the listener's checks
	gone      bool
	checked   time.Time
}

// subscription is a sink, which has no use for anything up to from.
type subscription struct {
	sink bridge.Sink
	from codec.Position
}

// join is one Subscribe that has not been answered: first the head is read, in the
// order of calls, then the channel must be confirmed, then what came in between is
// read.
type join struct {
	sink      bridge.Sink
	since     time.Time
	head      codec.Position
	links     int // topic.links when head was asked for
	placed    bool
	reading   bool
	cancelled bool
	counted   bool // as a new room, until it is known to be none
}

// Subscribe implements bridge.Broker.
func (b *Bridge) Subscribe(name codec.Topic, s bridge.Sink) {
	l := b.listenerOf(b.names.room(name))
	j := &join{sink: s, since: time.Now(), reading: true}
	if !l.knows(name) {
		if !b.rooms.take(name.Tenant, j.since) {
			s.Subscribed(codec.Position{}, errRooms)
			return
		}
		j.counted = true
	}
	if !l.post(false, func() { l.subscribe(name, j) }) {
		s.Subscribed(codec.Position{}, b.full())
		return
	}
	// Here and not there, so that it takes its place among the caller's publishes.
	j.readHead(b, l, name)
}

// Unsubscribe implements bridge.Broker.
func (b *Bridge) Unsubscribe(name codec.Topic, s bridge.Sink) {
	l := b.listenerOf(b.names.room(name))
	l.post(true, func() {
		if t := l.topics[name]; t != nil {
			t.remove(s)
		}
	})
}

func (b *Bridge) full() *codec.Error {
	if b.ctx.Err() != nil {
		return errClosed
	}
	return errWaiting
}

func (l *listener) subscribe(name codec.Topic, j *join) {
	t := l.topics[name]
	if t == nil {
		t = &topic{listener: l, name: name, checked: time.Now()}
		t.head = &head{topic: t}
		l.mu.Lock()
		l.heads[name] = t.head
		l.mu.Unlock()
		l.topics[name] = t
		l.quiet.Push(t)
		t.channel = l.listen(l.bridge.names.room(name), name.String(), t)
	}
	t.joins = append(t.joins, j)
	l.joining[t] = struct{}{}
}

func (t *topic) remove(s bridge.Sink) {
	for _, j := range t.joins {
		if j.sink == s {
			j.cancelled = true
		}
	}
	t.sinks = slices.DeleteFunc(t.sinks, func(o subscription) bool { return o.sink == s })
	t.maybeEnd()
}

func (t *topic) maybeEnd() {
	if len(t.sinks) > 0 || len(t.joins) > 0 || t.gone {
		return
	}
	l := t.listener
	t.gone = true
	delete(l.owing, t)
	delete(l.topics, t.name)
	l.mu.Lock()
	delete(l.heads, t.name)
	l.mu.Unlock()
	l.unlisten(t.channel)
}

// readHead is on any goroutine.
func (j *join) readHead(b *Bridge, l *listener, name codec.Topic) {
	b.read(name, bridge.ReadRequest{}, true, func(page bridge.Page, err *codec.Error) {
		l.post(true, func() {
			j.reading = false
			if t := l.topics[name]; t != nil {
				if err == nil {
					j.head, j.placed = page.Head, true
					if j.counted && page.Head.Offset > 0 {
						b.rooms.giveBack(name.Tenant)
					}
				}
				t.advance(j)
			}
		})
	})
}

// advance takes a join as far as it gets.
func (t *topic) advance(j *join) {
	b := t.listener.bridge
	switch {
	case j.reading:
	case !j.placed:
		if t.attached { // else it begins anew once the server is back
			j.reading, j.links = true, t.links
			j.readHead(b, t.listener, t.name)
		}
	case !t.attached:
	case t.whole && t.delivered.Epoch == j.head.Epoch && t.delivered.Offset <= j.head.Offset:
		t.admit(j, nil)
	case !t.whole && j.links == t.links && len(t.sinks) == 0:
		t.place(j.head) // it was read after the confirmation: what comes after it comes
		t.admit(j, nil)
	default:
		j.reading = true
		links := t.links
		req := bridge.ReadRequest{Since: j.head, HasSince: true, Limit: catchEvents}
		b.read(t.name, req, true, func(page bridge.Page, err *codec.Error) {
			t.listener.post(true, func() {
				j.reading = false
				if err != nil || t.gone || t.links != links || !t.attached {
					t.again(j)
					return
				}
				if !t.whole && len(t.sinks) == 0 {
					t.place(page.Head)
				}
				t.admit(j, &page)
			})
		})
	}
}

// again begins a join anew, later: at the next tick, or once the channel is
// confirmed again.
func (t *topic) again(j *join) { j.links = -1 }

// admit answers a join. page is what came between its head and now.
func (t *topic) admit(j *join, page *bridge.Page) {
	t.answer(j, j.head, nil)
	if j.cancelled {
		t.maybeEnd()
		return
	}
	at := slices.IndexFunc(t.sinks, func(s subscription) bool { return s.sink == j.sink })
	if at < 0 {
		t.sinks = append(t.sinks, subscription{sink: j.sink})
		at = len(t.sinks) - 1
	}
	t.sinks[at].from = j.head
	if page == nil {
		return
	}
	reached := page.Head
	if len(page.Events) > 0 && page.Reset == codec.ResetNone && page.Head.Epoch == j.head.Epoch {
		last := page.Events[len(page.Events)-1].Position
		t.sinks[at].from = last
		j.sink.Arrived(bridge.Batch{Events: page.Events})
		if !page.More {
			reached = last
		}
	}
	if t.whole && t.delivered.Epoch == reached.Epoch {
		reached.Offset = max(reached.Offset, t.delivered.Offset)
	}
	if beyond(reached, t.sinks[at].from) {
		j.sink.Gap(reached)
	}
}

func (t *topic) answer(j *join, head codec.Position, err *codec.Error) {
	t.joins = slices.DeleteFunc(t.joins, func(o *join) bool { return o == j })
	if len(t.joins) == 0 {
		delete(t.listener.joining, t)
	}
	j.sink.Subscribed(head, err)
}

// place: everything after p comes.
func (t *topic) place(p codec.Position) {
	t.delivered, t.whole, t.checked = p, true, time.Now()
	t.listener.brought(t, p)
	if _, owing := t.listener.owing[t]; !owing {
		t.listener.settle(t.channel)
	}
}

// owe: the sinks are told what they missed, and the channel settles when they have read
// it.
func (t *topic) owe() {
	t.listener.owing[t] = time.Now()
	t.owed(true)
}

// filled: they have, or take too long.
func (t *topic) filled() {
	if _, owing := t.listener.owing[t]; owing {
		t.forgive()
		t.listener.settle(t.channel)
	}
}

func (t *topic) forgive() {
	delete(t.listener.owing, t)
	t.owed(false)
}

func (t *topic) owed(yes bool) {
	t.listener.mu.Lock()
	t.head.owed = yes
	t.listener.mu.Unlock()
}

// confirmed implements receiver.
func (t *topic) confirmed(ch *channel) {
	t.channel = ch
	t.attached, t.whole = true, false
	t.links++
	for _, j := range slices.Clone(t.joins) {
		t.advance(j)
	}
	switch {
	case len(t.sinks) > 0:
		t.wait()
	case len(t.joins) == 0:
		t.listener.settle(ch)
	}
}

// lost implements receiver.
func (t *topic) lost() {
	t.attached, t.whole = false, false
	t.forgive()
}

// message implements receiver.
func (t *topic) message(text string) {
	b := t.listener.bridge
	n, err := readNotice(text)
	if err != nil {
		b.counters.Unreadable.Add(1)
		b.log.Error("redis: a message that cannot be read", "err", err)
		return
	}
	if n.first.IsZero() {
		if n.node != b.config.Node {
			t.hand(bridge.Batch{Events: t.events(&n, codec.Position{})})
		}
		return
	}
	if !t.whole {
		// What comes before the topic is placed is read, or told as a gap.
		last := n.first
		for _, ok := n.next(); ok; _, ok = n.next() {
			last.Offset++
		}
		last.Offset--
		t.listener.learn(t.name, last)
		return
	}
	t.take(n)
}

// take brings a run of events that were kept.
func (t *topic) take(n notice) {
	at, count := n.first, uint64(0)
	batch := bridge.Batch{}
	if n.first.Epoch == t.delivered.Epoch {
		for at.Offset <= t.delivered.Offset { // repeats
			if _, ok := n.next(); !ok {
				return
			}
			at.Offset++
		}
	} else {
		batch.Previous = n.previous
	}
	rest := n
	for _, ok := rest.next(); ok; _, ok = rest.next() {
		count++
	}
	if count == 0 {
		return
	}
	last := codec.Position{Epoch: at.Epoch, Offset: at.Offset + count - 1}
	batch.Events = t.events(&n, at)
	t.delivered = last
	t.listener.brought(t, last)
	t.hand(batch)
	if uint64(len(batch.Events)) < count {
		t.gap(last)
	}
}

// events reads what a message carries, up to the first that cannot be read.
func (t *topic) events(n *notice, at codec.Position) (list []*codec.Event) {
	b := t.listener.bridge
	for text, ok := n.next(); ok; text, ok = n.next() {
		e, err := event(t.name, at, text, b.config.PayloadMax)
		if err != nil {
			b.counters.Unreadable.Add(1)
			b.log.Error("redis: an event that cannot be read", "err", err)
			return list
		}
		list = append(list, e)
		if !at.IsZero() {
			at.Offset++
		}
	}
	return list
}

// hand brings a batch to all sinks.
func (t *topic) hand(batch bridge.Batch) {
	if len(batch.Events) == 0 {
		return
	}
	first := batch.Events[0].Position
	for _, s := range t.sinks {
		part := batch
		if !first.IsZero() && first.Epoch == s.from.Epoch && first.Offset <= s.from.Offset {
			known := s.from.Offset + 1 - first.Offset
			if known >= uint64(len(batch.Events)) {
				continue
			}
			part.Events = batch.Events[known:]
		}
		s.sink.Arrived(part)
	}
}

// gap tells all sinks that there is something up to p that may not have come.
func (t *topic) gap(p codec.Position) {
	t.listener.bridge.counters.Gaps.Add(1)
	for _, s := range t.sinks {
		s.sink.Gap(p)
	}
}
