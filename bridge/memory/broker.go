package memory

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// Config is what a Broker needs to know.
type Config struct {
	// HistoryBytes bounds everything that the broker keeps. 0: 1 GiB.
	HistoryBytes int64

	// TenantHistoryBytes bounds a tenant; asked when a tenant's first record is
	// made, without a lock held. nil, or 0 from it: HistoryBytes.
	TenantHistoryBytes func(tenant string) int64

	// NewRooms is how many records a tenant may make a second, in bursts of ten
	// seconds' worth; asked as TenantHistoryBytes is. nil, or 0 from it: no limit.
	NewRooms func(tenant string) int

	// Now is the clock. nil: time.Now, whose instants are compared monotonically.
	Now func() time.Time
}

const sweepEvery = 10 * time.Second

// Broker is a bridge.Broker that lives in one process.
type Broker struct {
	// immutable
	config  Config
	began   time.Time
	account *backpressure.Account
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed by the sweeper at its end

	condition bridge.Condition // has its own lock

	tokens atomic.Uint64 // of attempts, given out

	sweeping sync.Mutex // one sweep at a time: it visits what another would have removed; taken before a tenant's mu

	relief sync.Mutex // one goroutine at a time makes room on the node; taken before a tenant's mu

	mu sync.RWMutex // taken after a tenant's mu, or alone
	// guarded by mu
	tenants map[string]*tenant // nil once closed
}

var _ bridge.Broker = (*Broker)(nil)

// New starts a broker, and its sweeper.
func New(config Config) *Broker {
	if config.HistoryBytes == 0 {
		config.HistoryBytes = 1 << 30
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	now := config.Now()
	b := &Broker{
		config:  config,
		began:   now,
		account: backpressure.NewAccount(nil, config.HistoryBytes),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
		tenants: make(map[string]*tenant),
	}
	b.condition.Set(bridge.Health{State: bridge.Up, Since: now})
	go b.sweeper()
	return b
}

// Publish implements bridge.Broker.
func (b *Broker) Publish(name codec.Topic, r bridge.Retention, batch []bridge.Publication, done func([]bridge.Published)) {
	results := make([]bridge.Published, len(batch))
	b.makeRoom(need(batch))
	t := b.enter(name.Tenant)
	if t == nil {
		for i := range results {
			results[i].Err = errClosed
		}
		done(results)
		return
	}
	at := b.config.Now()
	p := publishing{tenant: t, retention: r, at: at, now: int64(at.Sub(b.began)), size: len(batch)}
	for i := range batch {
		results[i] = p.one(name.Room, &batch[i])
	}
	var d delivery
	mine := false
	if len(p.fresh) > 0 {
		d = delivery{sinks: p.topic.sinks, kind: arrived, batch: bridge.Batch{Events: p.fresh}}
		var taken bool
		if mine, taken = p.topic.outbox.offer(d); !taken {
			p.topic.outbox.lost = true
		}
	}
	t.mu.Unlock()
	if mine {
		// After done, which need not wait for what others leave in the outbox
		// meanwhile, and even if done panics: nobody else would come.
		defer p.topic.outbox.deliver(&t.mu, d, p.topic.gap)
	}
	done(results)
}

// Read implements bridge.Broker.
func (b *Broker) Read(name codec.Topic, req bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	b.makeRoom(recordNeed)
	t := b.enter(name.Tenant)
	if t == nil {
		done(bridge.Page{}, errClosed)
		return
	}
	now := b.now()
	tp, err := t.open(name.Room, now)
	if err != nil {
		t.mu.Unlock()
		done(bridge.Page{}, err)
		return
	}
	if req.HasSince {
		tp.joined, tp.touched = true, now
	}
	page := tp.history.page(req)
	t.mu.Unlock()
	done(page, nil)
}

// Subscribe implements bridge.Broker.
func (b *Broker) Subscribe(name codec.Topic, s bridge.Sink) {
	b.makeRoom(recordNeed)
	t := b.enter(name.Tenant)
	if t == nil {
		s.Subscribed(codec.Position{}, errClosed)
		return
	}
	now := b.now()
	tp, err := t.open(name.Room, now)
	if err != nil {
		t.mu.Unlock()
		s.Subscribed(codec.Position{}, err)
		return
	}
	d := delivery{sinks: []bridge.Sink{s}, kind: subscribed, head: tp.history.position()}
	mine, taken := tp.outbox.offer(d)
	if taken {
		tp.subscribe(s)
		tp.joined, tp.touched = true, now
	}
	t.mu.Unlock()
	switch {
	case mine:
		tp.outbox.deliver(&t.mu, d, tp.gap)
	case !taken:
		s.Subscribed(codec.Position{}, errManyWaiting)
	}
}

// Unsubscribe implements bridge.Broker.
func (b *Broker) Unsubscribe(name codec.Topic, s bridge.Sink) {
	t := b.enter(name.Tenant)
	if t == nil {
		return
	}
	defer t.mu.Unlock()
	if tp, ok := t.topics.get(name.Room); ok {
		tp.unsubscribe(s)
		tp.touched = b.now()
	}
}

// Health implements bridge.Broker: up until closed.
func (b *Broker) Health() bridge.Health { return b.condition.Health() }

// Watch implements bridge.Broker.
func (b *Broker) Watch(changed func(bridge.Health)) (stop func()) { return b.condition.Watch(changed) }

// Used is what the broker keeps at present, in bytes charged.
func (b *Broker) Used() int64 { return b.account.Used() }

// Close implements bridge.Broker. It frees all history and returns once the
// sweeper has ended. Calls under way end as if they had come before.
func (b *Broker) Close() {
	b.mu.Lock()
	tenants := b.tenants
	if b.tenants != nil {
		b.tenants = nil
		close(b.stop)
	}
	b.mu.Unlock()
	if tenants != nil {
		b.condition.Set(bridge.Health{State: bridge.Down, Why: "closed", Since: b.config.Now()})
	}
	for _, t := range tenants {
		t.mu.Lock()
		waiting := t.discard()
		t.mu.Unlock()
		answers{waiting, bridge.Attempted{Err: errClosed}}.hand()
	}
	<-b.stopped
}

func (b *Broker) now() int64 { return int64(b.config.Now().Sub(b.began)) }

// enter returns a tenant with its lock held, or nil once closed.
func (b *Broker) enter(name string) *tenant {
	for {
		b.mu.RLock()
		t, open := b.tenants[name], b.tenants != nil
		b.mu.RUnlock()
		if !open {
			return nil
		}
		if t == nil {
			b.admit(name)
			continue
		}
		t.mu.Lock()
		if !t.ended {
			return t
		}
		t.mu.Unlock() // the sweeper or Close ended it meanwhile: the name is free
	}
}

// Reconsider asks the Config anew what each tenant may hold. Beyond it a tenant's
// oldest goes when its next comes.
func (b *Broker) Reconsider() {
	b.mu.Lock()
	all := slices.Collect(maps.Values(b.tenants))
	b.mu.Unlock()
	for _, t := range all {
		limit, rooms := b.allows(t.name)
		t.mu.Lock()
		t.limit.Store(limit)
		t.account.SetLimit(limit)
		if t.rooms.rate != float64(rooms) {
			t.rooms = newBucket(rooms, b.now())
		}
		t.mu.Unlock()
	}
}

// allows is what the Config says of a tenant.
func (b *Broker) allows(name string) (limit int64, rooms int) {
	limit = b.config.HistoryBytes
	if b.config.TenantHistoryBytes != nil {
		if own := b.config.TenantHistoryBytes(name); own > 0 {
			limit = min(limit, own)
		}
	}
	if b.config.NewRooms != nil {
		rooms = b.config.NewRooms(name)
	}
	return limit, rooms
}

// admit makes the tenant's entry, unless somebody has meanwhile.
func (b *Broker) admit(name string) {
	limit, rooms := b.allows(name)
	t := newTenant(name, limit, b.account, newBucket(rooms, b.now()))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tenants != nil && b.tenants[name] == nil {
		b.tenants[name] = t
	}
}
