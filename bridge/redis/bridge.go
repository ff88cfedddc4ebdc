package redis

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// Bridge is a node's place on Redis. It is the bridge.Broker.
type Bridge struct {
	// immutable
	config    Config
	names     names
	log       *slog.Logger
	seed      maphash.Seed
	client    goredis.UniversalClient
	caller    *caller
	budget    *budget
	rooms     *newRooms
	listeners []*listener
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc

	condition bridge.Condition // has its own lock
	counters  Counters
	tokens    atomic.Uint64 // of batches, given out
	attempts  attempts      // has its own lock
	texts     sync.Pool     // of *texts

	running sync.WaitGroup // keepers, scout and pulse

	topology atomic.Pointer[topology]      // nil: no cluster, or not known yet
	hints    chan struct{}                 // that it has changed
	keepers  map[string]context.CancelFunc // New's, then the scout's
	closing  sync.Once

	mu sync.Mutex
	// guarded by mu
	machine *machine
	telling bool             // a goroutine tells of health, and will look again
	links   map[string]*link // that stand
}

var _ bridge.Broker = (*Bridge)(nil)

// New starts a Bridge, which finds the server by itself: it is connecting until
// then, and whatever is asked of it waits as in any outage.
func New(config Config) (*Bridge, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	b := &Bridge{
		config:  config,
		names:   names{key: config.KeyPrefix, channel: config.ChannelPrefix, cluster: config.Mode == Cluster},
		log:     config.Logger,
		seed:    maphash.MakeSeed(),
		client:  config.newClient(),
		budget:  newBudget(config.TenantBytes),
		rooms:   newNewRooms(config.NewRooms),
		links:   make(map[string]*link),
		hints:   make(chan struct{}, 1),
		keepers: make(map[string]context.CancelFunc),
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.machine = newMachine(time.Now())
	b.condition.Set(b.machine.health)
	b.attempts.init(b)
	b.caller = newCaller(b.ctx, b.client, config.Outage)
	b.caller.build, b.caller.lead = b.buildPublish, b.lead
	b.texts.New = func() any { return b.newTexts() }
	b.caller.ailing = func(f fault, n uint64) {
		if f == elsewhere || f == notHere {
			b.hint()
		}
		b.judge(func(m *machine, now time.Time) { m.called(f, n, now) })
	}
	for range listeners {
		b.listeners = append(b.listeners, newListener(b))
	}
	b.caller.start()
	for _, l := range b.listeners {
		go l.run()
	}
	if cluster, ok := b.client.(*goredis.ClusterClient); ok {
		b.running.Go(func() { b.scout(cluster) })
	} else {
		b.startKeepers("")
	}
	b.running.Go(b.pulse)
	return b, nil
}

func (b *Bridge) newTexts() *texts {
	return &texts{limits: codec.EnvelopeLimits{CompressAbove: max(0, b.config.CompressAbove), MaxData: b.config.PayloadMax}}
}

// Node is this node's name among those on the server.
func (b *Bridge) Node() string { return b.config.Node }

// Counters are what was counted so far.
func (b *Bridge) Counters() *Counters { return &b.counters }

// Health implements bridge.Broker.
func (b *Bridge) Health() bridge.Health { return b.condition.Health() }

// Watch implements bridge.Broker.
func (b *Bridge) Watch(changed func(bridge.Health)) (stop func()) { return b.condition.Watch(changed) }

// judge gives the machine something, and tells whoever watches of a change.
func (b *Bridge) judge(give func(m *machine, now time.Time)) {
	b.mu.Lock()
	give(b.machine, time.Now())
	b.counters.ConnectionLost.Store(b.machine.outages)
	for !b.telling && b.condition.Health() != b.machine.health {
		h, level := b.machine.health, slog.LevelInfo
		if h.State != bridge.Up && !b.machine.closed {
			level = slog.LevelWarn
		}
		b.telling = true
		b.mu.Unlock()
		b.condition.Set(h)
		b.log.Log(b.ctx, level, "redis: bridge", "state", h.State.String(), "why", h.Why)
		b.mu.Lock()
		b.telling = false
	}
	b.mu.Unlock()
}

// Close implements bridge.Broker.
func (b *Bridge) Close() {
	b.closing.Do(func() {
		b.judge(func(m *machine, now time.Time) { m.close(now) }) // first: what follows is no outage
		b.cancel()
		_ = b.client.Close() // ends what is under way; there is nothing to be done about an error
		b.caller.close()
		b.attempts.close()
		b.running.Wait()
		for _, l := range b.listeners {
			l.close()
		}
	})
}

// say publishes a text that is for nodes alone. fail is told that it was not sent.
func (b *Bridge) say(channel, text string, fail func(error)) {
	b.caller.put("", channel, &op{
		call: &call{args: []any{b.publishWord(), channel, text}, done: func(any, error) {}},
		size: int64(64 + len(text)), fail: fail,
	})
}

func (b *Bridge) publishWord() string {
	if b.config.Mode == Cluster {
		return "SPUBLISH"
	}
	return "PUBLISH"
}
