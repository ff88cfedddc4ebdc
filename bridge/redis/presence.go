package redis

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// Presence is the bridge.Presence of a Bridge's node.
//
// The server keeps for each topic whom each node has there, and counts; one step of
// it takes a change in and tells all nodes, on a channel of the topic's own: so a
// room whose kind has no presence hears nothing of it, and what it loses has nothing
// to do with events. A topic's watchers are called by the listener of that channel,
// which also has everything that this node knows of the topic.
//
// What a node told leaves with it. The node has a name for this, held by a lease;
// another node that misses the lease takes its members out, once, whoever is first.
// Whatever may have been lost, here or on the server, is answered by Anew, upon which
// all nodes tell whom they have. Until those have spoken who had somebody in a topic
// whose count was lost, or a lease has passed, lists are unavailable rather than
// short: so a server that comes back empty makes nobody leave.
//
// It has one goroutine, from NewPresence to Close, for the lease and for what is
// looked at now and then.
type Presence struct {
	bridge *Bridge // immutable
	wings  []*wing // immutable: one of each listener
	cancel context.CancelFunc
	stop   func() // of watching the bridge's health
	closed atomic.Bool
	ended  chan struct{} // by run

	mu sync.Mutex
	// guarded by mu
	tenure  tenure
	lookout lookout
	since   time.Time      // of the health that was heard of last
	mine    []string       // the last names of this node
	nodes   map[string]int // topics of this node in which another has somebody
}

var _ bridge.Presence = (*Presence)(nil)

// namesKept is how many of its names a node remembers, the present one among them.
const namesKept = 16

// errUnsettled is the answer to a List while others are being waited for.
var errUnsettled = codec.Retry(codec.CodeUnavailable, codec.ScopeRoom, time.Second, "it is being found out who is there")

// NewPresence is b's part in who is present. There is one of a Bridge.
func NewPresence(b *Bridge) *Presence {
	p := &Presence{
		bridge:  b,
		tenure:  tenure{life: b.config.Lease, id: b.config.Node},
		lookout: lookout{life: b.config.Lease, dead: make(map[string]missing)},
		mine:    []string{b.config.Node},
		nodes:   make(map[string]int),
		ended:   make(chan struct{}),
	}
	for _, l := range b.listeners {
		p.wings = append(p.wings, &wing{presence: p, listener: l, halls: make(map[codec.Topic]*hall), holding: make(map[*hall]time.Time)})
	}
	p.stop = b.Watch(p.health)
	ctx, cancel := context.WithCancel(b.ctx)
	p.cancel = cancel
	b.running.Go(func() { p.run(ctx) })
	return p
}

// wing is the part of it that has a topic.
func (p *Presence) wing(topic codec.Topic) *wing {
	l := p.bridge.listenerOf(p.bridge.names.changes(topic))
	return p.wings[slices.Index(p.bridge.listeners, l)]
}

// ask has do run with the topic's wing, in the order of calls; else it says why not.
func (p *Presence) ask(topic codec.Topic, do func(w *wing)) *codec.Error {
	w := p.wing(topic)
	switch {
	case p.closed.Load():
		return errClosed
	case !w.listener.post(false, func() { w.inOrder(topic, func() { do(w) }) }):
		return p.bridge.full()
	}
	return nil
}

// Change implements bridge.Presence.
func (p *Presence) Change(topic codec.Topic, generation uint64, u bridge.PresenceUpdate, done func(bridge.Mark, *codec.Error)) {
	if err := p.ask(topic, func(w *wing) { w.change(topic, generation, u, done) }); err != nil {
		done(bridge.Mark{}, err)
	}
}

// List implements bridge.Presence.
func (p *Presence) List(topic codec.Topic, after string, limit int, done func(bridge.MemberPage, *codec.Error)) {
	if err := p.ask(topic, func(w *wing) { w.list(topic, after, limit, done) }); err != nil {
		done(bridge.MemberPage{}, err)
	}
}

// Watch implements bridge.Presence.
func (p *Presence) Watch(topic codec.Topic, v bridge.Watcher) {
	if w := p.wing(topic); !p.closed.Load() {
		w.listener.post(true, func() { w.watch(topic, v) })
	}
}

// Unwatch implements bridge.Presence.
func (p *Presence) Unwatch(topic codec.Topic, v bridge.Watcher) {
	w := p.wing(topic)
	w.listener.post(true, func() { w.unwatch(topic, v) })
}

// Close implements bridge.Presence.
func (p *Presence) Close() {
	if p.closed.Swap(true) {
		return
	}
	p.stop()
	p.cancel()
	<-p.ended
	for _, w := range p.wings {
		w.listener.post(true, w.close)
	}
}

// health is told how the bridge is.
func (p *Presence) health(h bridge.Health) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !h.Since.Equal(p.since) {
		p.since = h.Since
		p.lookout.disturbed(time.Now(), !h.State.Live())
	}
}

// name is what this node is called among those that are present. If it has not been
// able to hold the last one it takes a new one, and tells everything anew.
func (p *Presence) name() string {
	p.mu.Lock()
	renamed := p.tenure.over(time.Now())
	if renamed {
		p.rename()
	}
	id := p.tenure.id
	p.mu.Unlock()
	if renamed {
		p.anew()
	}
	return id
}

// disown gives a name up of which the server says that it is dead.
func (p *Presence) disown(id string) {
	p.mu.Lock()
	mine := id == p.tenure.id
	if mine {
		p.rename()
	}
	p.mu.Unlock()
	if mine {
		p.anew()
	}
}

// rename takes another name. Under mu.
func (p *Presence) rename() {
	id := fresh()
	p.bridge.log.Warn("redis: the node's lease has ended, it goes on by another name", "old", p.tenure.id, "new", id)
	p.tenure.begin(id)
	if p.mine = append(p.mine, id); len(p.mine) > namesKept {
		p.mine = slices.Delete(p.mine, 0, 1)
	}
}

func (p *Presence) anew() {
	for _, w := range p.wings {
		w.listener.post(true, w.anew)
	}
}

// isMine reports whether a name is or was this node's.
func (p *Presence) isMine(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.mine, id)
}

// meet counts the topics in which other nodes have somebody.
func (p *Presence) meet(before, after []string) {
	if slices.Equal(before, after) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range after {
		p.nodes[id]++
	}
	for _, id := range before {
		if p.nodes[id]--; p.nodes[id] == 0 {
			delete(p.nodes, id)
		}
	}
}

// run keeps the lease, looks for dead nodes, and has the wings do what is due.
func (p *Presence) run(ctx context.Context) {
	defer close(p.ended)
	defer func() { // nobody is held up any more
		for _, w := range p.wings {
			w.listener.post(true, func() { w.release(time.Now()) })
		}
	}()
	every := min(max(p.tenure.life/15, 10*time.Millisecond), time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		p.tick(every)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *Presence) tick(every time.Duration) {
	id, now := p.name(), time.Now()
	p.mu.Lock()
	renew := p.tenure.due(now)
	dead := p.lookout.due(now)
	p.mu.Unlock()
	if renew {
		p.renew(id)
	}
	for _, w := range p.wings {
		w.listener.post(true, func() {
			for _, id := range dead {
				w.bury(id)
			}
			w.tick(now, every)
		})
	}
}

// renew tells the server that this node lives, and then looks at the others.
func (p *Presence) renew(id string) {
	b := p.bridge
	key, sent := b.names.node(id), time.Now()
	answered := func(ok, known bool) {
		p.mu.Lock()
		if p.tenure.answered(id, sent, time.Now(), ok, known) {
			p.lookout.disturbed(time.Now(), false) // others may be missing as this was
		}
		p.mu.Unlock()
		if ok {
			p.look(id)
		}
	}
	b.caller.put("", key, &op{
		size: 128, fail: func(error) { answered(false, false) },
		call: &call{
			args: []any{"SET", key, b.config.Node, "PX", ttl(b.config.Lease), "GET"},
			done: func(reply any, err error) {
				if err != nil {
					b.log.Error("redis: the node's lease was refused", "err", err)
				}
				answered(err == nil, reply != nil)
			},
		},
	})
}

// look asks for the leases of all nodes that matter to this one.
func (p *Presence) look(id string) {
	p.mu.Lock()
	var others []string
	for other := range p.nodes {
		if other != id {
			others = append(others, other)
		}
	}
	p.mu.Unlock()
	for _, other := range others {
		key := p.bridge.names.node(other)
		p.bridge.caller.put("", key, &op{
			size: 128, fail: func(error) {}, // the next look will tell
			call: &call{args: []any{"EXISTS", key}, done: func(reply any, err error) {
				if n, ok := reply.(int64); ok && err == nil {
					p.mu.Lock()
					p.lookout.seen(other, n > 0, time.Now(), rand.Float64())
					p.mu.Unlock()
				}
			}},
		})
	}
}
