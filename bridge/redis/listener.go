package redis

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

const (
	listeners     = 2
	maxArrivals   = 8192 // messages between the links and a listener
	arrivalsBytes = 8 << 20
	maxTasks      = 1 << 16 // asked for by callers; beyond, a subscription is refused
	listenTick    = 100 * time.Millisecond
	patience      = 200 * time.Millisecond // between learning of an event and missing it
	fillTime      = 2 * time.Second        // for sinks to read what they missed, before nobody waits for them
)

// receiver gets what one channel brings, on its listener's goroutine.
type receiver interface {
	// confirmed: everything that is published from now on comes. The receiver says
	// by settle, now or later, that it has found out what it missed before.
	confirmed(ch *channel)
	message(text string)
	// lost: nothing comes, until confirmed again.
	lost()
}

// channel is one that this node wants. All of it belongs to its listener.
type channel struct {
	name     string
	owner    string // what it lies with
	link     string // the link that carries it
	receiver receiver

	wanted    bool
	asked     bool // the server was told so
	waiting   bool // its confirmation has not come; one command at a time is under way
	unsettled bool // its receiver is finding out what it missed
	active    bool // something has come since the link was made
}

// listener follows the channels whose names hash to it: one goroutine runs all of
// their receivers, and so all sinks of their topics.
type listener struct {
	bridge *Bridge       // immutable
	wake   chan struct{} // something was queued
	ended  chan struct{} // closed by run

	mu    sync.Mutex
	space sync.Cond // for arrivals, or closed
	// guarded by mu
	queue    backpressure.Ring[note]
	arrivals int // messages in queue, and their bytes
	bytes    int
	closed   bool
	heads    map[codec.Topic]*head
	suspects []*head // of which more is known than was delivered

	// owned by run
	channels map[string]*channel
	links    map[string]*link // that stand
	left     map[string]int   // unsettled channels of each
	topics   map[codec.Topic]*topic
	joining  map[*topic]struct{}  // with joins that are not answered
	owing    map[*topic]time.Time // whose sinks have yet to read what they missed
	quiet    backpressure.Ring[*topic]
	checks   backpressure.Ring[*topic] // that wait to be compared, after the link was made anew
	checking int
}

// note is one thing that a listener has to do.
type note struct {
	link    *link  // of a message or confirmation
	channel string // likewise
	text    string
	confirm confirmation
	do      func() // anything else
}

type confirmation uint8

const (
	message confirmation = iota
	subscribed
	unsubscribed
)

func newListener(b *Bridge) *listener {
	l := &listener{
		bridge: b, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		heads: make(map[codec.Topic]*head), channels: make(map[string]*channel), topics: make(map[codec.Topic]*topic),
		joining: make(map[*topic]struct{}), owing: make(map[*topic]time.Time), links: make(map[string]*link), left: make(map[string]int),
	}
	l.space.L = &l.mu
	return l
}

// listenerOf is the one of a channel.
func (b *Bridge) listenerOf(channel string) *listener {
	return b.listeners[maphash.String(b.seed, channel)%uint64(len(b.listeners))]
}

// post has do run on the listener's goroutine. False: closed, or, unless it must
// be taken, too much is waiting.
func (l *listener) post(must bool, do func()) bool {
	l.mu.Lock()
	ok := !l.closed && (must || l.queue.Len()-l.arrivals < maxTasks)
	if ok {
		l.queue.Push(note{do: do})
	}
	l.mu.Unlock()
	if ok {
		l.nudge()
	}
	return ok
}

func (l *listener) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// bring is the links': it waits for space, so that what comes too fast stays in
// the socket. A listener never waits for a link or for the server.
func (l *listener) bring(n note) {
	l.mu.Lock()
	for !l.closed && l.arrivals > 0 && (l.arrivals >= maxArrivals || l.bytes+len(n.text) > arrivalsBytes) {
		l.space.Wait()
	}
	if !l.closed {
		l.queue.Push(n)
		l.arrivals++
		l.bytes += len(n.text)
	}
	l.mu.Unlock()
	l.nudge()
}

func (l *listener) run() {
	defer close(l.ended)
	tick := time.NewTicker(listenTick)
	defer tick.Stop()
	for {
		select {
		case <-l.wake:
		case now := <-tick.C:
			l.tick(now)
		}
		for {
			n, ok, closed := l.next()
			if closed {
				l.end()
				return
			}
			if !ok {
				break
			}
			l.take(n)
		}
	}
}

func (l *listener) next() (n note, ok, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok = l.queue.Pop()
	if ok && n.do == nil {
		l.arrivals--
		l.bytes -= len(n.text)
		l.space.Signal()
	}
	return n, ok, !ok && l.closed
}

func (l *listener) take(n note) {
	switch {
	case n.do != nil:
		n.do()
	case n.link != l.links[n.link.shard]: // of a link that was replaced
	case n.confirm == message:
		if ch := l.channels[n.channel]; ch != nil && ch.link == n.link.shard {
			ch.active = true
			ch.receiver.message(n.text)
		}
	default:
		l.confirm(n.link, n.channel, n.confirm == subscribed)
	}
}

// listen begins to bring a channel to r; it lies with owner, a topic or the like.
func (l *listener) listen(name, owner string, r receiver) *channel {
	ch := l.channels[name]
	if ch == nil {
		ch = &channel{name: name, owner: owner, link: l.bridge.linkOf(owner)}
		l.channels[name] = ch
	}
	ch.receiver, ch.wanted = r, true
	if ch.asked && !ch.waiting {
		r.confirmed(ch)
	}
	l.steer(ch)
	return ch
}

// unlisten ends it; what was under way may still come.
func (l *listener) unlisten(ch *channel) {
	ch.wanted = false
	l.settle(ch)
	l.steer(ch)
}

// steer tells the server what is wanted, one step at a time, so that the last word
// counts however quickly it changes.
func (l *listener) steer(ch *channel) {
	switch link := l.links[ch.link]; {
	case ch.waiting:
	case !ch.wanted && (link == nil || !ch.asked):
		if l.channels[ch.name] == ch {
			delete(l.channels, ch.name)
		}
	case link != nil && ch.wanted != ch.asked:
		ch.asked, ch.waiting = ch.wanted, true
		link.ask(ch.name, ch.wanted)
	}
}

func (l *listener) confirm(link *link, name string, on bool) {
	ch := l.channels[name]
	if ch == nil || ch.link != link.shard || !ch.waiting || ch.asked != on {
		l.bridge.hint()
		link.fail("the server ended a subscription")
		return
	}
	ch.waiting = false
	if on && ch.wanted {
		ch.receiver.confirmed(ch)
	}
	l.steer(ch)
}

// settle notes that what was missed on a channel is known.
func (l *listener) settle(ch *channel) {
	if !ch.unsettled {
		return
	}
	ch.unsettled = false
	l.left[ch.link]--
	l.settled(ch.link)
}

func (l *listener) settled(shard string) {
	if link := l.links[shard]; link != nil && l.left[shard] == 0 {
		link.settle(l)
	}
}

// up begins anew on a link, with what had traffic first.
func (l *listener) up(link *link) {
	l.links[link.shard], l.left[link.shard] = link, 0
	var list []*channel
	for _, ch := range l.channels {
		if ch.link == link.shard {
			list = append(list, ch)
		}
	}
	slices.SortFunc(list, func(a, b *channel) int { return cmp.Compare(flag(b.active), flag(a.active)) })
	for _, ch := range list {
		ch.active, ch.unsettled = false, true
		l.left[link.shard]++
		if link.generation > 1 {
			l.bridge.counters.Resubscribed.Add(1)
		}
		l.steer(ch)
	}
	l.settled(link.shard)
}

// down: the link is gone, and what comes of it is not taken any more.
func (l *listener) down(link *link) {
	if l.links[link.shard] != link {
		return
	}
	delete(l.links, link.shard)
	for _, ch := range l.channels {
		if ch.link == link.shard {
			l.detach(ch)
			l.steer(ch)
		}
	}
}

// detach forgets what the link was told of a channel.
func (l *listener) detach(ch *channel) {
	was := ch.asked && !ch.waiting
	l.settle(ch)
	ch.asked, ch.waiting = false, false
	if was && ch.wanted {
		ch.receiver.lost()
	}
}

// close makes run end, once it has done what was asked for.
func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.space.Broadcast()
	l.nudge()
	<-l.ended
}

// end answers who still waits.
func (l *listener) end() {
	for t := range l.joining {
		for _, j := range t.joins {
			j.sink.Subscribed(codec.Position{}, errClosed)
		}
	}
}
