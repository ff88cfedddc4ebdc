package redis

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

var (
	acquireScript = newScript("acquire")
	renewScript   = newScript("renew")
	releaseScript = newScript("release")
)

const (
	renewMost = 512 // leases that one call renews
	// endedFor is how long a session that has ended is remembered, so that a renewal
	// which was under way does not bring it back. No call takes as long.
	endedFor = 30 * time.Second
)

// Leases is the bridge.Leases of a Bridge's node. Time runs on the server. It has
// no goroutine, and holds nothing but what is under way.
//
// Who loses a session to another node is told at once, by a message on its node's
// channel, which may be lost, and for certain when it renews.
type Leases struct {
	bridge *Bridge // immutable

	channel *channel // of what is told this node; its listener's

	mu sync.Mutex
	// guarded by mu
	fenced func(bridge.Lease)
	told   func(message []byte)
	found  map[bridge.Lease]struct{} // lost, by renewals: a message about them says nothing new
	closed bool
}

// foundMost is how many are remembered. Beyond, a lease may be told of once more.
const foundMost = 1024

var _ bridge.Leases = (*Leases)(nil)

// NewLeases is b's part in holding sessions. There is one of a Bridge.
func NewLeases(b *Bridge) *Leases {
	l := &Leases{bridge: b, found: make(map[bridge.Lease]struct{})}
	name := b.names.control(b.config.Node)
	on := b.listenerOf(name)
	on.post(true, func() { l.channel = on.listen(name, b.config.Node, l) })
	return l
}

// Fenced implements bridge.Leases.
func (l *Leases) Fenced(told func(bridge.Lease)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fenced = told
}

// Told implements bridge.Leases.
func (l *Leases) Told(told func(message []byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = told
}

// sayWords begin a message that is one of another node's caller.
const sayWords = "1 say "

// Tell implements bridge.Leases.
func (l *Leases) Tell(node string, message []byte) {
	if !l.isClosed() {
		l.bridge.say(l.bridge.names.control(node), sayWords+string(message), func(error) {})
	}
}

// fence tells of a lease that is somebody else's. A renewal has found it so, or a
// message says it.
func (l *Leases) fence(lost bridge.Lease, renewal bool) {
	l.mu.Lock()
	told := l.fenced
	_, known := l.found[lost]
	if l.closed || known && !renewal {
		told = nil
	}
	if renewal {
		if len(l.found) == foundMost {
			clear(l.found)
		}
		l.found[lost] = struct{}{}
	}
	l.mu.Unlock()
	if told != nil {
		told(lost)
	}
}

// Close implements bridge.Leases.
func (l *Leases) Close() {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if !was {
		on := l.bridge.listenerOf(l.bridge.names.control(l.bridge.config.Node))
		on.post(true, func() { on.unlisten(l.channel) })
	}
}

func (l *Leases) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// put brings k to the server, unless this is closed.
func (l *Leases) put(strand string, size int, k *call, fail func(*codec.Error)) {
	if l.isClosed() {
		fail(errClosed)
		return
	}
	l.bridge.caller.put("", strand, &op{call: k, size: int64(size), fail: func(err error) { fail(coded(err)) }})
}

// refused is the answer to a reply that no script gives.
func (l *Leases) refused(what string, err error) *codec.Error {
	l.bridge.log.Error("redis: "+what+" was refused", "err", err)
	return errServer
}

// Acquire implements bridge.Leases.
func (l *Leases) Acquire(c bridge.Claim, done func(bridge.Acquired, *codec.Error)) {
	if c.Generation >= codec.MaxOffset {
		done(bridge.Acquired{Verdict: bridge.Ended}, nil) // none is above it
		return
	}
	key := l.bridge.names.session(c.Tenant, c.Session)
	l.put(key, 256, &call{
		script: &acquireScript, keys: []string{key},
		args: []any{l.bridge.config.Node, decimal(c.Nonce), decimal(c.Generation), ttl(c.TTL)},
		done: func(reply any, err error) {
			a, holder, held, bad := acquired(c.Lease, reply, err)
			if bad != nil {
				done(bridge.Acquired{}, l.refused("a claim", bad))
				return
			}
			if a.Verdict == bridge.Taken && holder != l.bridge.config.Node {
				l.warn(holder, held)
			}
			done(a, nil)
		},
	}, func(err *codec.Error) { done(bridge.Acquired{}, err) })
}

// acquired reads the script's answer: what became of the claim, and who held the
// session before.
func acquired(c bridge.Lease, reply any, err error) (a bridge.Acquired, holder string, held bridge.Lease, bad error) {
	if err != nil {
		return a, "", held, err
	}
	list, bad := stringsOf(reply)
	switch {
	case bad != nil:
		return a, "", held, bad
	case len(list) == 1 && list[0] == bridge.Ended.String():
		return bridge.Acquired{Verdict: bridge.Ended}, "", held, nil
	case len(list) == 1 && list[0] == bridge.Outdated.String():
		return bridge.Acquired{Verdict: bridge.Outdated}, "", held, nil
	case len(list) != 5 || list[0] != bridge.Taken.String():
		return a, "", held, errReply
	}
	held = c
	for i, n := range []*uint64{1: &c.Generation, 3: &held.Nonce, 4: &held.Generation} {
		if n != nil && bad == nil {
			*n, bad = strconv.ParseUint(list[i], 10, 64)
		}
	}
	return bridge.Acquired{Verdict: bridge.Taken, Lease: c}, list[2], held, bad
}

// warn tells another node that it has lost a lease. If it does not hear of it, it
// learns when it renews.
func (l *Leases) warn(node string, lost bridge.Lease) {
	text := fmt.Sprintf("1 fenced %s %s %d %d", lost.Tenant, lost.Session, lost.Generation, lost.Nonce)
	l.bridge.say(l.bridge.names.control(node), text, func(error) {})
}

// message implements receiver. What it does not know is for others.
func (l *Leases) message(text string) {
	if said, ok := strings.CutPrefix(text, sayWords); ok {
		l.mu.Lock()
		told := l.told
		if l.closed {
			told = nil
		}
		l.mu.Unlock()
		if told != nil {
			told([]byte(said))
		}
		return
	}
	words := strings.Split(text, " ")
	if len(words) < 6 || words[0] != "1" || words[1] != "fenced" {
		return
	}
	generation, wrong := strconv.ParseUint(words[4], 10, 64)
	nonce, bad := strconv.ParseUint(words[5], 10, 64)
	if wrong == nil && bad == nil {
		l.fence(bridge.Lease{Tenant: words[2], Session: words[3], Generation: generation, Nonce: nonce}, false)
	}
}

// confirmed implements receiver. What was missed is learned by renewals.
func (l *Leases) confirmed(ch *channel) { l.bridge.listenerOf(ch.name).settle(ch) }

// lost implements receiver.
func (l *Leases) lost() {}

// Renew implements bridge.Leases.
func (l *Leases) Renew(held []bridge.Lease, life time.Duration, done func(*codec.Error)) {
	parts := l.bridge.names.renewals(held)
	if len(parts) == 0 {
		done(nil)
		return
	}
	all := &renewing{leases: l, left: len(parts), done: done}
	for _, part := range parts {
		k := &call{script: &renewScript, args: []any{l.bridge.config.Node, ttl(life)}}
		for _, lease := range part.held {
			k.keys = append(k.keys, l.bridge.names.session(lease.Tenant, lease.Session))
			k.args = append(k.args, decimal(lease.Nonce), decimal(lease.Generation))
		}
		k.done = func(reply any, err error) { all.answered(part.held, reply, err) }
		l.put(part.strand, 128*len(part.held), k, all.ended)
	}
}

// renewal is what one call renews.
type renewal struct {
	strand string
	held   []bridge.Lease
}

// renewals shares leases out to calls: what one call names lies in one partition.
func (n names) renewals(held []bridge.Lease) (parts []renewal) {
	open := make(map[string]int) // by strand, the part that is not full
	for _, lease := range held {
		strand := "renew"
		if n.cluster {
			strand += tagOf(lease.Tenant + ":" + lease.Session)
		}
		i, ok := open[strand]
		if !ok || len(parts[i].held) == renewMost {
			i = len(parts)
			open[strand] = i
			parts = append(parts, renewal{strand: strand})
		}
		parts[i].held = append(parts[i].held, lease)
	}
	return parts
}

// renewing puts the answers to one Renew together.
type renewing struct {
	leases *Leases
	done   func(*codec.Error)

	mu sync.Mutex
	// guarded by mu
	left int
	err  *codec.Error
}

func (r *renewing) answered(held []bridge.Lease, reply any, err error) {
	letters, ok := reply.(string)
	if err != nil || !ok || len(letters) != len(held) {
		r.ended(r.leases.refused("a renewal", err))
		return
	}
	for i, lease := range held {
		if letters[i] == 'l' {
			r.leases.fence(lease, true)
		}
	}
	r.ended(nil)
}

func (r *renewing) ended(err *codec.Error) {
	r.mu.Lock()
	r.left--
	last := r.left == 0
	if r.err == nil {
		r.err = err
	}
	err = r.err
	r.mu.Unlock()
	if last {
		r.done(err)
	}
}

// Release implements bridge.Leases.
func (l *Leases) Release(lease bridge.Lease, done func(*codec.Error)) {
	key := l.bridge.names.session(lease.Tenant, lease.Session)
	l.put(key, 256, &call{
		script: &releaseScript, keys: []string{key},
		args: []any{decimal(lease.Nonce), decimal(lease.Generation), ttl(endedFor)},
		done: func(_ any, err error) {
			if err != nil {
				done(l.refused("a release", err))
				return
			}
			done(nil)
		},
	}, done)
}

// Lookup implements bridge.Leases.
func (l *Leases) Lookup(tenant, session string, done func(bridge.Owner, bool, *codec.Error)) {
	key := l.bridge.names.session(tenant, session)
	l.put(key, 256, &call{args: []any{"HMGET", key, "n", "g"}, done: func(reply any, err error) {
		list, ok := reply.([]any)
		if err != nil || !ok || len(list) != 2 {
			done(bridge.Owner{}, false, l.refused("a lookup", err))
			return
		}
		node, _ := list[0].(string)
		text, _ := list[1].(string)
		if node == "" {
			done(bridge.Owner{}, false, nil)
			return
		}
		generation, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			done(bridge.Owner{}, false, l.refused("a lookup", err))
			return
		}
		done(bridge.Owner{Node: node, Generation: generation}, true, nil)
	}}, func(err *codec.Error) { done(bridge.Owner{}, false, err) })
}

// ttl is a time to live as the server takes it.
func ttl(d time.Duration) int64 { return max(1, d.Milliseconds()) }
