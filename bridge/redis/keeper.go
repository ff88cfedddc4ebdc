package redis

import (
	"context"
	"maps"
	"slices"
	"time"
)

// keep makes one link after another, until the bridge is closed.
func (b *Bridge) keep(ctx context.Context, shard string) {
	retry, unlinked := backoff(), complaint{log: b.log, what: "redis: no link to the server"}
	for generation := uint64(1); ctx.Err() == nil; generation++ {
		began := time.Now()
		why := b.hold(ctx, shard, generation, &unlinked)
		b.hint()
		b.judge(func(m *machine, now time.Time) { m.lost(shard, why, now) })
		if time.Since(began) > longWait {
			retry.Reset()
		}
		delay, _ := retry.Next(time.Now())
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// hold makes a link and reads it until it ends; why it did. What the driver says of that
// is unlinked's.
func (b *Bridge) hold(ctx context.Context, shard string, generation uint64, unlinked *complaint) (why string) {
	failed := func(err error) string {
		if ctx.Err() == nil {
			unlinked.tell(err)
		}
		return causeOf(err)
	}
	address := shard
	if b.config.Mode != Cluster {
		var err error
		if address, err = b.config.primary(ctx); err != nil {
			return failed(err)
		}
	}
	k := &link{
		shard: shard, generation: generation, bridge: b, ready: make(chan struct{}, 1), settled: make(map[*listener]struct{}),
		probe: b.names.probe(b.tagOn(shard), b.config.Node), trial: b.names.trial(b.tagOn(shard), b.config.Node),
		unfit: complaint{log: b.log, what: "redis: the server cannot be inspected"},
	}
	k.ctx, k.cancel = context.WithCancel(ctx)
	k.client, k.pubsub = b.config.dialLink(address)
	defer func() {
		k.fail("")
		_ = k.client.Close() // the connection is gone by now
	}()
	stop := context.AfterFunc(ctx, func() { k.fail("closed") })
	defer stop()
	if err := k.greet(); err != nil {
		return failed(err)
	}
	unlinked.tell(nil)
	b.judge(func(m *machine, now time.Time) { m.linked(shard, generation, now) })
	b.place(shard, k)
	b.beat(k)
	for _, l := range b.listeners {
		l.post(true, func() { l.up(k) })
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		k.write()
	}()
	err := k.read()
	b.place(shard, nil)
	why = k.reason()
	k.fail("")
	<-written
	for _, l := range b.listeners {
		l.post(true, func() { l.down(k) })
	}
	if why == "" {
		why = failed(err)
	}
	return why
}

func (b *Bridge) place(shard string, k *link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.links[shard] = k; k == nil {
		delete(b.links, shard)
	}
}

const (
	pulseTick   = 250 * time.Millisecond
	budgetLooks = 4096 // rooms at each tick
)

// pulse has each link hear the node itself, and looks at the servers now and then.
func (b *Bridge) pulse() {
	tick := time.NewTicker(pulseTick)
	defer tick.Stop()
	var nodes census
	for {
		select {
		case <-b.ctx.Done():
			return
		case now := <-tick.C:
			b.mu.Lock()
			list := slices.Collect(maps.Values(b.links))
			b.mu.Unlock()
			for _, k := range list {
				b.beat(k)
			}
			nodes.tick(b, now)
			b.budget.look(now, budgetLooks)
			b.rooms.look(now)
		}
	}
}

// beat does what is due about a link.
func (b *Bridge) beat(k *link) {
	var probe, replace, inspect bool
	b.judge(func(m *machine, now time.Time) { probe, replace, inspect = m.due(k.shard, now) })
	if inspect {
		b.inspect(k)
	}
	switch {
	case replace:
		b.counters.ProbesMissed.Add(1)
		k.fail("what is published does not arrive")
	case probe:
		b.say(k.probe, "1", func(error) { b.judge(func(m *machine, _ time.Time) { m.unsent(k.shard, k.generation) }) })
	}
}

var inspectScript = newScript("inspect")

// inspect tries whether a link's server can be worked with.
func (b *Bridge) inspect(k *link) {
	found := func(unfit, advice string) {
		b.judge(func(m *machine, now time.Time) { m.inspected(k.shard, k.generation, unfit, advice, now) })
	}
	subscribe := "SUBSCRIBE"
	if b.config.Mode == Cluster {
		subscribe = "SSUBSCRIBE"
	}
	b.caller.put("", k.trial, &op{
		call: &call{script: &inspectScript, keys: []string{k.trial}, args: []any{b.publishWord(), subscribe, k.probe}, done: func(reply any, err error) {
			said, wrong := stringsOf(reply)
			if err == nil && (wrong != nil || len(said) != 2) {
				err = errReply
			}
			if k.unfit.tell(err); err != nil {
				said = []string{"the server refuses scripts", ""}
			}
			found(said[0], said[1])
		}},
		fail: func(error) {}, // what ails it is told with the pipeline, or the next beat tells
		size: 64,
	})
}
