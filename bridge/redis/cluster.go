package redis

import (
	"context"
	"maps"
	"net"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	scoutEvery = 5 * time.Second        // unless something hints at a change
	scoutAgain = 250 * time.Millisecond // between two looks, whatever hints
)

// topology says which primary of a cluster has which slots. It is immutable.
type topology struct {
	owners [slots]string     // address of each slot's primary
	tags   map[string]string // of each primary, one of the tags whose slots it has
}

func newTopology(ranges []goredis.ClusterSlot, host string) *topology {
	t := &topology{tags: make(map[string]string)}
	for _, r := range ranges {
		if len(r.Nodes) == 0 {
			continue
		}
		address := r.Nodes[0].Addr // the primary is named first
		if h, port, err := net.SplitHostPort(address); err == nil && h == "" {
			address = net.JoinHostPort(host, port) // that of whom was asked
		}
		for slot := max(0, r.Start); slot <= min(r.End, slots-1); slot++ {
			t.owners[slot] = address
		}
	}
	table := tags()
	for _, tag := range table {
		if owner := t.owners[slotOf(tag)]; owner != "" {
			t.tags[owner] = tag
		}
	}
	return t
}

// linkOf names the link that carries what lies with owner; outside a cluster there
// is one, without a name.
func (b *Bridge) linkOf(owner string) string {
	t := b.topology.Load()
	if t == nil {
		return ""
	}
	return t.owners[slotOf(tagOf(owner))]
}

// tagOn is a tag that a link carries; outside a cluster there is none.
func (b *Bridge) tagOn(shard string) string {
	if t := b.topology.Load(); t != nil {
		return t.tags[shard]
	}
	return ""
}

// scout follows the cluster's changes: it looks now and then, and when a link has ended
// or a slot was found elsewhere.
func (b *Bridge) scout(cluster *goredis.ClusterClient) {
	host, _, _ := net.SplitHostPort(b.config.Addresses[0]) // empty if it has none: so is the answer then
	unknown := complaint{log: b.log, what: "redis: nobody tells the cluster's slots"}
	for {
		wait := scoutEvery
		//lint:ignore SA1019 servers before 7.0 do not know what has taken its place
		ranges, err := cluster.ClusterSlots(b.ctx).Result()
		if b.ctx.Err() == nil {
			unknown.tell(err)
		}
		if err == nil {
			if b.settleOn(newTopology(ranges, host)) {
				cluster.ReloadState(b.ctx) // else commands would go to who is gone, for a while
			}
		} else {
			wait = longWait
		}
		select {
		case <-b.ctx.Done():
			return
		case <-b.hints:
			select {
			case <-b.ctx.Done():
				return
			case <-time.After(scoutAgain):
			}
		case <-time.After(wait):
		}
	}
}

// hint has the scout look.
func (b *Bridge) hint() {
	select {
	case b.hints <- struct{}{}:
	default:
	}
}

// settleOn takes over a topology: primaries that are new get a keeper, those that are
// gone lose theirs, and channels change links.
func (b *Bridge) settleOn(t *topology) (changed bool) {
	if before := b.topology.Load(); before != nil && before.owners == t.owners {
		return false
	}
	b.topology.Store(t)
	for _, l := range b.listeners {
		l.post(true, l.remap) // before there are links that could think they had nothing to carry
	}
	var anew []string
	for shard := range t.tags {
		if b.keepers[shard] == nil {
			anew = append(anew, shard)
		}
	}
	b.startKeepers(anew...)
	for _, shard := range slices.Collect(maps.Keys(b.keepers)) {
		if _, there := t.tags[shard]; !there {
			b.keepers[shard]()
			delete(b.keepers, shard)
			b.judge(func(m *machine, now time.Time) { m.removed(shard, now) })
		}
	}
	return true
}

// startKeepers is New's and then the scout's. The machine knows of all of them before one
// of them could be all there is.
func (b *Bridge) startKeepers(shards ...string) {
	b.judge(func(m *machine, now time.Time) {
		for _, shard := range shards {
			m.added(shard, now)
		}
	})
	for _, shard := range shards {
		ctx, cancel := context.WithCancel(b.ctx)
		b.keepers[shard] = cancel
		b.running.Go(func() { b.keep(ctx, shard) })
	}
}

// remap moves channels to the links that carry them now.
func (l *listener) remap() {
	for _, ch := range l.channels {
		now := l.bridge.linkOf(ch.owner)
		if now == ch.link {
			continue
		}
		l.detach(ch)
		ch.link = now
		if link := l.links[now]; link != nil && ch.wanted {
			ch.unsettled = true
			l.left[now]++
			l.steer(ch)
		}
	}
}
