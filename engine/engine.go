package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/actors/session"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/actors/tenant"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport/ws"
)

// ErrClosed is the answer of an Engine that is closing or closed.
var ErrClosed = errors.New("engine: closed")

// maxHandshakes bounds the authenticators at work at once.
const maxHandshakes = 32

// Engine is a running node.
type Engine struct {
	// immutable
	cfg        Config
	pool       *scheduler.Pool
	wheel      *scheduler.Wheel
	system     *actors.System
	broker     bridge.Broker
	ownBroker  *memory.Broker // nil: the embedder's
	presence   bridge.Presence
	leases     *sessions
	ownLeases  *memory.Leases // nil: the embedder's
	queue      *backpressure.Account
	replay     *backpressure.Account
	out        *mailbox.OutboundConfig
	coalesce   *message.Coalescer
	sockets    *ws.Handler
	admission  *admission
	reach      session.Reach   // what sessions are told of the broker, by watch alone
	leaving    session.Leaving // what sessions are told of a drain, by drain alone
	guests     guests          // has its own lock
	renewals   renewals        // likewise
	unwatch    func()
	proxies    proxies
	shaking    ws.Handshakes     // what is computed of handshakes at once, fair by address
	handshakes *scheduler.Gate   // authenticators at work at once, fair by address
	strangers  *scheduler.Tenant // whom their work is charged to
	unjudged   throttle          // has its own lock
	unread     throttle          // likewise
	rushed     throttle          // likewise
	undecided  throttle          // likewise

	sessionLanes, roomLanes mailbox.LanePool // have their own locks

	reloading sync.Mutex                       // held by Reload
	kindMeter func(name string) *message.Meter // of a kind that is declared; nil: nothing is measured

	counts      counts
	connections connections // has its own lock
	timing      timings     // zero: nothing is measured
	unmeasure   func()      // takes the instruments back
	tracing     *tracing    // nil: nothing is followed

	lifetimes

	// atomic
	terms       atomic.Pointer[terms] // what Reload changes
	kinds       message.Declared      // likewise
	events      atomic.Uint64         // ids given out
	generations atomic.Uint64         // of changes of presence; begins at the time of Start
	sessions    atomic.Int64
	stuckActors atomic.Int64 // that the watchdog has named, ever
	wasLive     atomic.Bool  // the broker, as watch was told last

	// guarded by mu
	mu      sync.Mutex
	tenants map[string]*node
	labels  labels
}

// node is a tenant on this node, with what its rooms and sessions share.
type node struct {
	*tenant.Tenant
	rooms    *room.Env
	sessions *session.Env
	rates    session.Rates // of what clients ask for
	label    string        // of its metrics
}

// Start makes an Engine and starts it. ctx bounds the start only.
func Start(ctx context.Context, cfg Config) (*Engine, error) {
	kinds, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	sealer, err := auth.NewSealer(cfg.DeploymentKeys)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:    cfg,
		wheel:  scheduler.NewWheel(),
		broker: cfg.Broker,
		queue:  backpressure.NewAccount(nil, cfg.Limits.QueueBytes),
		replay: backpressure.NewAccount(nil, cfg.Limits.ReplayBytes),
		out: &mailbox.OutboundConfig{
			Items: cfg.Limits.SessionQueueItems, Bytes: cfg.Limits.SessionQueueBytes, Unacked: cfg.Limits.Unacked,
		},
		coalesce: message.NewCoalescer(),
		tenants:  make(map[string]*node),

		connections: connections{all: make(map[*connection]struct{})},
		labels:      labels{max: cfg.TenantLabels},
		tracing:     newTracing(&cfg),
	}
	e.lifetimes.init()
	e.kinds.Set(kinds)
	e.terms.Store(newTerms(&cfg))
	e.admission = newAdmission(e)
	e.proxies = proxies{trusted: cfg.TrustedProxies, warn: func() {
		cfg.Logger.Warn("a forwarding header came from an address that is no trusted proxy: it is ignored")
	}}
	e.handshakes = scheduler.NewGate(min(maxHandshakes, cfg.Limits.BlockingWorkers))
	e.strangers = scheduler.NewTenant(1)
	e.pool = scheduler.NewPool(scheduler.PoolConfig{
		Workers: cfg.Limits.Workers, BlockingWorkers: cfg.Limits.BlockingWorkers, Stuck: e.stuck,
	})
	e.system = actors.NewSystem(actors.Config{Logger: cfg.Logger, Clock: clock{e.wheel}, Failed: e.failed})
	if e.broker == nil {
		e.ownBroker = memory.New(memory.Config{
			HistoryBytes:       cfg.Limits.HistoryBytes,
			TenantHistoryBytes: func(name string) int64 { return e.terms.Load().tenant(name).HistoryBytes },
			NewRooms:           func(name string) int { return max(0, e.terms.Load().tenant(name).NewRooms) },
		})
		e.broker = e.ownBroker
	}
	if e.presence = cfg.Presence; e.presence == nil {
		e.presence = memory.NewPresence()
	}
	leases := cfg.Leases
	if leases == nil {
		e.ownLeases = memory.NewLeases(cfg.Node, memory.NewLeaseStore(nil))
		leases = e.ownLeases
	}
	e.leases = startSessions(leases, sealer, &e.cfg, func(name string) int { return e.terms.Load().tenant(name).MaxSessions })
	leases.Told(e.told)
	// Above those of an Engine that had the same Presence before.
	e.generations.Store(uint64(time.Now().UnixMicro()))
	e.shaking = ws.Handshakes{
		Timeout: cfg.Limits.HandshakeTimeout, Source: sourceOf,
		Gate: scheduler.NewGate(max(1, runtime.GOMAXPROCS(0)/2)),
	}
	e.sockets = ws.NewHandler(ws.Config{
		Handshakes: e.shaking,
		Acceptor:   e, MaxMessageBytes: cfg.Limits.MaxMessageBytes, WriteTimeout: cfg.Limits.WriteTimeout,
		Compression: cfg.Compression, Logger: cfg.Logger,
	})
	e.wheel.Start()
	e.pool.Start()
	e.unwatch = e.broker.Watch(e.watch)
	if cfg.MeterProvider != nil {
		if err := e.measure(); err != nil {
			return nil, errors.Join(err, e.Close(context.Background()))
		}
	}
	return e, nil
}

// eid is a new id for an event, unique as long as node names are.
func (e *Engine) eid() string {
	return e.cfg.Node + "-" + strconv.FormatUint(e.events.Add(1), 36)
}

// tenant finds a tenant, or starts it.
func (e *Engine) tenant(name string) (*node, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing.Load() {
		return nil, ErrClosed
	}
	if n := e.tenants[name]; n != nil {
		return n, nil
	}
	n := e.newTenant(name)
	if _, err := e.system.SpawnRoot(&tenant.ActorKind, n.Tenant, n.Mailbox()); err != nil {
		return nil, err
	}
	n.label = e.labels.take(name)
	e.tenants[name] = n
	return n, nil
}

func (e *Engine) newTenant(name string) *node {
	limits := e.terms.Load().tenant(name)
	n := &node{}
	n.Tenant = tenant.New(tenant.Config{
		Name:   name,
		Limits: limits.ofTenant(),
		Pool:   e.pool, Wheel: e.wheel, Queue: e.queue, Replay: e.replay,
		NewRoom: func(topic codec.Topic, kind *message.Policy, ended func()) tenant.Room {
			return room.New(room.Config{
				Env: n.rooms, Topic: topic, Policy: kind, Kind: kind.Kind.(*room.Kind), Ended: ended,
			})
		},
		RoomKind: &room.ActorKind, SessionKind: &session.ActorKind, Timing: e.timing.tenants,
		Ended: e.forget,
	})
	n.rooms = &room.Env{
		Broker: e.broker, Presence: e.presence, Pool: e.pool, Wheel: e.wheel, Tenant: n.Flow(), Queue: n.Queue(), Present: n.Present(),
		Keys: e.coalesce, Lanes: &e.roomLanes, Replay: n.Replay(),
		EID: e.eid, Logger: e.cfg.Logger, MaxSnapshot: e.cfg.Limits.MaxFrameBytes - message.AnswerRest,
		MaxEvent:   e.cfg.Limits.MaxMessageBytes,
		Grace:      max(0, e.cfg.Limits.PresenceGrace),
		Generation: func() uint64 { return e.generations.Add(1) },
		Timing:     e.timing.rooms,
		Linked:     e.tracing.linker(),
		Herd:       new(room.Herd),
	}
	n.rates.Set(limited(limits.SessionRate))
	n.rates.SetAll(limited(limits.Rate))
	n.sessions = session.NewEnv(session.Env{
		Node: e.cfg.Node,
		Pool: e.pool, Wheel: e.wheel, Tenant: n.Flow(), Queue: n.Queue(), Frames: n.Frames(), Rates: &n.rates,
		Out: e.out, Lanes: &e.sessionLanes,
		Kinds: &e.kinds, Coalesce: e.coalesce, Rooms: n.Tenant, Broker: e.broker, Presence: e.presence,
		Commands: e.commands(n.Flow()), Authorize: e.authorize(n.Flow()), Sealer: e.leases.sealer,
		Reach: &e.reach, Leaving: &e.leaving,
		Faults: &e.counts.faults, Timing: e.timing.sessions, Trace: e.tracing.follower(),
		Limits: session.Limits{
			Ping: e.cfg.Limits.Ping, Pong: e.cfg.Limits.PongTimeout, WriteTimeout: e.cfg.Limits.WriteTimeout,
			ResumeTTL: e.cfg.Limits.ResumeTTL, MaxRooms: e.cfg.Limits.SessionMaxRooms,
			MaxMessageBytes: e.cfg.Limits.MaxMessageBytes, MaxFrameBytes: e.cfg.Limits.MaxFrameBytes,
		},
	})
	return n
}

// forget drops a tenant that has ended.
func (e *Engine) forget(t *tenant.Tenant) {
	e.mu.Lock()
	if n := e.tenants[t.Name()]; n != nil && n.Tenant == t {
		delete(e.tenants, t.Name())
		e.labels.give(n.label)
	}
	e.mu.Unlock()
}

// all tenants there are now.
func (e *Engine) all() []*node {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*node, 0, len(e.tenants))
	for _, n := range e.tenants {
		list = append(list, n)
	}
	return list
}

// stuck is the watchdog's: a task has not returned for a second. If it is in the
// code of a room's handler the room is taken from it.
func (e *Engine) stuck(task *scheduler.Task, flow *scheduler.Tenant, running time.Duration) {
	for _, n := range e.all() {
		if n.Flow() != flow {
			continue
		}
		e.stuckActors.Add(1)
		if !n.Abandon(task) {
			e.cfg.Logger.Error("an actor does not return", "tenant", n.Name(), "running", running)
		}
	}
}

// failed is told of every panic in an actor.
func (e *Engine) failed(f actors.Failure) {
	if i := slices.Index(restartKinds[:], f.Kind); i >= 0 && f.Callback == "" && f.Directive != supervision.Stop {
		e.counts.restarts[i].Add(1)
	}
	e.cfg.Logger.Error("actor failed", "kind", f.Kind, "callback", f.Callback,
		"directive", f.Directive.String(), "gave_up", f.GaveUp, "panic", f.Panic)
}

// clock runs supervision's delays on the wheel.
type clock struct{ wheel *scheduler.Wheel }

func (c clock) After(d time.Duration, f func()) {
	t := new(scheduler.Timer)
	t.Init(f)
	c.wheel.Set(t, d)
}
