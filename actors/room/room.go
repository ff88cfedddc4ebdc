package room

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

type turn = scheduler.Turn

// ActorKind is how rooms are supervised: a fault of the shell restarts it, with
// its members, and stops it when it does not help.
var ActorKind = actors.Kind{Name: "room", Rule: supervision.Rule{
	Directive: supervision.Restart,
	Backoff: supervision.Backoff{
		Initial: 10 * time.Millisecond, Cap: 10 * time.Second, Jitter: 0.5,
		MaxRestarts: 5, Window: 30 * time.Second,
	},
}}

// Env is what the rooms of one tenant share. Immutable.
type Env struct {
	Broker   bridge.Broker
	Presence bridge.Presence
	Pool     *scheduler.Pool
	Wheel    *scheduler.Wheel
	Tenant   *scheduler.Tenant
	Queue    *backpressure.Account // of the tenant's queues
	Present  *backpressure.Account // the part of Queue for who is present
	Keys     *message.Coalescer
	Lanes    *mailbox.LanePool
	Replay   *backpressure.Account // of the tenant's replay_bytes
	EID      func() string         // unique ids for events
	Logger   *slog.Logger
	// MaxSnapshot is the largest snapshot, and list of members, that members are
	// given, in bytes.
	MaxSnapshot int
	// MaxEvent is how large the data of an event may be that a handler publishes, or
	// makes of a client's, in bytes: no larger than a client's could be.
	MaxEvent int
	// Grace is how long presence outlives a lost connection; 0: not at all.
	Grace time.Duration
	// Generation rises for every change that a room makes of Presence.
	Generation func() uint64
	// Timing is told how long rooms' messages wait; nil: nobody asks.
	Timing mailbox.Timing
	// Herd is of the tenant's members; nil: whoever is reset waits for nobody.
	Herd *Herd
	// Linked follows an event that another node follows, on this one; nil: none is.
	Linked func(*codec.Trace) message.Trace
}

// Config is one room.
type Config struct {
	*Env
	Topic  codec.Topic
	Policy *message.Policy
	Kind   *Kind // as declared; immutable
	// Ended is told, by the room itself, that it wants to be stopped.
	Ended func()
}

// lookAgain is when a room that could not end yet, since something is under way in it,
// sees whether it can.
const lookAgain = time.Second

type phase uint8

const (
	starting phase = iota // not subscribed yet
	open
	ended
)

// Bits of the room's own signal.
const (
	again    uint32 = 1 << iota // a fan-out goes on
	lingered                    // the room may have been empty for long
	resubscribe
	newHandler // the handler's delay is over
	timed      // something is due that the handler has asked for
)

// Room is the shell: one per room and node.
type Room struct {
	// immutable
	cfg       Config
	mb        *mailbox.Mailbox
	retention bridge.Retention
	handler   *instance // nil: a kind without code
	presence  *presence // nil: a kind without presence

	// shared with the broker's goroutines, which post
	arrivals arrivals
	read     read

	// owned by the actor
	turn       *turn // during Receive
	hand       any   // the message being handled, answered by whoever takes the room over
	phase      phase
	unknown    *codec.Error // set while nothing is known of the room
	seq        sequencer
	win        window
	members    members
	behind     int       // members in that state
	kicked     []*member // by the handler, in the callback that goes on; each once
	waiting    []*member // who waits for a read
	tight      bool      // the window cannot grow down to what they want
	fanout     fanout
	arrivedNow bool // arrivals wait for the fan-out under way
	batch      []bridge.Publication
	collecting *flight
	traced     traced
	underway   int   // publishes that wait for the broker
	used       int64 // when somebody last wanted something of the room, by the turn's clock
	subscribe  supervision.Backoff

	feedEvents  []*codec.Event
	feedScratch []mailbox.Delivery

	own         mailbox.Signal
	lingerTimer scheduler.Timer
	retryTimer  scheduler.Timer
}

// New makes a room and its mailbox, which takes messages at once.
func New(cfg Config) *Room {
	p := cfg.Policy
	r := &Room{
		cfg: cfg,
		retention: bridge.Retention{
			Events: p.History.Events, Age: p.History.Age, Bytes: p.History.Bytes, DedupWindow: max(p.DedupWindow, 0),
		},
		subscribe: readBackoff(),
	}
	r.win = window{account: cfg.Replay, limit: r.retention}
	r.mb = mailbox.New(&mailbox.Config{
		Pool: cfg.Pool, Class: scheduler.Actor, Tenant: cfg.Tenant,
		Items: p.MailboxItems, Bytes: p.MailboxBytes, Lanes: cfg.Lanes, Account: cfg.Queue, Removed: r.removed, Timing: cfg.Timing,
	}, nil)
	r.arrivals.room = r.mb
	r.arrivals.signal.InitWork(&r.arrivals)
	r.read.signal.InitWork(&r.read)
	r.read.failed = readBackoff()
	r.read.timer.Init(func() { r.mb.Raise(&r.read.signal, readAgain) })
	r.own.InitWork(r)
	r.lingerTimer.Init(func() { r.mb.Raise(&r.own, lingered) })
	r.retryTimer.Init(func() { r.mb.Raise(&r.own, resubscribe) })
	if cfg.Kind.New != nil {
		r.handler = &instance{backoff: handlerBackoff(), every: uint64(cmp.Or(cfg.Kind.SnapshotEvery, DefaultSnapshotEvery))}
		r.handler.clock.Init(func() { r.mb.Raise(&r.own, timed) })
		r.handler.timer.Init(func() { r.mb.Raise(&r.own, newHandler) })
	}
	if p.Presence {
		r.presence = newPresence(r)
	}
	r.mb.Pause()
	return r
}

// Mailbox is where the room gets its messages.
func (r *Room) Mailbox() *mailbox.Mailbox { return r.mb }

// Started begins to follow the topic. After a restart of the shell it goes on
// where it was.
func (r *Room) Started(*actors.Context) {
	if r.phase == starting {
		r.cfg.Wheel.Set(&r.lingerTimer, r.cfg.Policy.Linger)
		r.cfg.Broker.Subscribe(r.cfg.Topic, &r.arrivals)
		if r.presence != nil {
			r.cfg.Presence.Watch(r.cfg.Topic, &r.presence.arrivals)
		}
		return
	}
	r.mb.Raise(&r.own, again)
}

// Restart keeps the shell: what failed was one message.
func (r *Room) Restart() actors.Actor { return r }

// Receive is one batch of the room's work.
func (r *Room) Receive(b *mailbox.Batch) {
	r.turn = b.Turn()
	errandsFirst := r.errandsFirst()
	if errandsFirst {
		r.runErrands()
	}
	for !r.slow() {
		msg, ok := b.Next()
		r.hand = msg
		if !ok {
			break
		}
		switch m := msg.(type) {
		case *message.Publish:
			r.handlePublish(m)
		case *message.Join:
			r.handleJoin(m)
		case *message.Command:
			r.handleCommand(m)
		case *mailbox.Raised:
			r.signalled(m.Owner, m.Bits)
		}
		r.hand = nil
	}
	if !errandsFirst {
		r.runErrands()
	}
	r.flush()
	r.turn = nil
}

// slow: the handler has taken its time in this batch, and what it has not got yet
// waits for the next. A handler that is merely slow must not be taken for one that
// does not return.
func (r *Room) slow() bool { return r.handler != nil && r.turn.Overdue() }

func (r *Room) signalled(owner any, bits uint32) {
	switch o := owner.(type) {
	case *message.Membership:
		r.raised(o, bits)
	case *arrivals:
		r.arrivedNow = true
	case *flight:
		r.landed(o)
	case *attempt:
		r.decided(o)
	case *work:
		r.worked(o)
	case *presenceArrivals:
		r.presence.signalled(bits)
	case *read:
		if bits&readArrived != 0 {
			r.pageRead()
		}
		if bits&readAgain != 0 {
			r.read.busy = false
		}
	case *Room:
		r.ownSignal(bits)
	}
}

func (r *Room) ownSignal(bits uint32) {
	if bits&resubscribe != 0 {
		r.cfg.Broker.Subscribe(r.cfg.Topic, &r.arrivals)
	}
	if bits&newHandler != 0 {
		r.handler.waiting = false
		r.handler.begin(r)
	}
	if bits&timed != 0 {
		r.handler.clockAt = 0
	}
	if bits&lingered != 0 {
		r.maybeEnd()
	}
}

// flush does what a batch has led to: publishes go to the broker, events to the
// members, reads to whoever waits.
func (r *Room) flush() {
	if r.phase == ended {
		return
	}
	r.kick()
	r.publish()
	if r.presence != nil {
		r.presence.flush()
	}
	if !r.fanout.busy() {
		r.takeArrived()
		if r.fanout.begin(len(r.members.list)) {
			r.traced.begin(r.fanout.events, r.cfg.Linked)
		}
	}
	if r.fanout.busy() && !r.serve() || r.arrivedNow || len(r.fanout.next) > 0 {
		r.mb.Raise(&r.own, again)
	}
	r.readNext()
	if r.behind == 0 && len(r.waiting) == 0 {
		r.win.trim(false, r.turn.Now())
		r.tight = false
	}
	if r.fanout.busy() || r.phase == starting && r.unknown == nil || r.handler != nil && !r.handler.ready(r.seq.pos) {
		r.mb.Pause()
	} else {
		r.mb.Resume()
	}
	r.planErrands()
}

// takeArrived takes what the broker has brought.
func (r *Room) takeArrived() {
	if !r.arrivedNow {
		return
	}
	r.arrivedNow = false
	a := r.arrivals.take()
	if a.subscribed {
		r.subscribed(a.start, a.err)
	}
	for _, b := range a.batches {
		if b.Events[0].Position.IsZero() {
			r.foreign(b.Events)
			continue
		}
		r.take(r.seq.arrived(b))
	}
	if a.gap {
		r.seq.atLeast(a.head)
	}
}

// foreign gives the members what other nodes published and nobody keeps.
func (r *Room) foreign(events []*codec.Event) {
	for _, e := range events {
		if p := r.cfg.Policy.Event(e.Name); p != nil {
			r.fanout.next = append(r.fanout.next, r.delivery(e, p, 0, 0))
		}
	}
}

// subscribed begins the room at the topic's head, or goes on after the link to
// the broker was made anew.
func (r *Room) subscribed(head codec.Position, err *codec.Error) {
	if err != nil {
		if r.phase == starting {
			if r.unknown = message.Unavailable(codec.ScopeNode); err.Code == codec.CodeQuotaExceeded {
				r.unknown = err // one new room too many, and not the bridge's state
			}
		}
		delay, _ := r.subscribe.Next(time.Now())
		r.cfg.Wheel.Set(&r.retryTimer, delay)
		return
	}
	r.subscribe, r.unknown = readBackoff(), nil
	if r.phase != starting {
		r.seq.atLeast(head)
		return
	}
	r.phase = open
	r.seq.start(head)
	if r.handler != nil {
		r.handler.begin(r)
	}
}

// restartHandler makes another handler after the one in place has panicked, in
// its time, or ends the room when that has happened too often.
func (r *Room) restartHandler() {
	delay, ok := r.handler.backoff.Next(time.Now())
	if !ok {
		r.stop()
		return
	}
	r.cfg.Policy.Meter.Restarted()
	r.handler.waiting = true
	r.mb.Pause()
	r.cfg.Wheel.Set(&r.handler.timer, delay)
}

// rest notes that the room may be empty.
func (r *Room) rest() {
	if r.members.count == 0 && r.phase != ended {
		r.cfg.Wheel.Set(&r.lingerTimer, r.cfg.Policy.Linger)
	}
}

// maybeEnd ends a room that nobody is in and that has had nothing to do.
func (r *Room) maybeEnd() {
	if r.members.count > 0 || r.presence != nil && r.presence.busy {
		return // whoever is the last to go says so
	}
	left := r.cfg.Policy.Linger - time.Duration(r.turn.Now()-r.used)
	if left > 0 || len(r.waiting) > 0 || r.underway > 0 || r.read.busy || r.fanout.busy() ||
		r.handler != nil && r.handler.busy() || !r.mb.CloseIfIdle() {
		r.cfg.Wheel.Set(&r.lingerTimer, max(left, lookAgain))
		return
	}
	r.phase = ended
	r.cfg.Ended()
}

// stop ends the room for a fault.
func (r *Room) stop() {
	if r.phase == ended {
		return
	}
	r.cfg.Logger.Error("room stopped", "tenant", r.cfg.Topic.Tenant, "room_kind", r.cfg.Policy.Name)
	r.leaveAll()
	r.cfg.Ended()
}

// leaveAll tells everybody that the room has ended.
func (r *Room) leaveAll() {
	r.phase = ended
	r.unknown = message.Unavailable(codec.ScopeRoom)
	for _, m := range slices.Clone(r.members.list) {
		if m != nil {
			r.left(m, codec.LeftStopped)
		}
	}
	for _, m := range r.waiting {
		if m.state == joining {
			r.refuseJoin(m, message.Unavailable(codec.ScopeRoom))
		}
	}
	r.waiting = nil
	if r.presence != nil {
		r.presence.refuse()
	}
}

// Stopping ends what is still there: the room was told to stop.
func (r *Room) Stopping() {
	if r.handler == nil || !r.handler.isAbandoned() {
		r.shut()
	}
}

// shut tells everybody, and lets everything go.
func (r *Room) shut() {
	r.leaveAll()
	r.publish() // publishers are answered by their flight
	r.cfg.Broker.Unsubscribe(r.cfg.Topic, &r.arrivals)
	r.cfg.Wheel.Clear(&r.lingerTimer)
	r.cfg.Wheel.Clear(&r.retryTimer)
	r.cfg.Wheel.Clear(&r.read.timer)
	if r.handler != nil {
		r.cfg.Wheel.Clear(&r.handler.timer)
		r.handler.shut(r)
	}
	if r.presence != nil {
		r.presence.shut()
	}
	r.win.clear()
}

// Stopped is the end.
func (r *Room) Stopped() {}

// removed answers a request that left the mailbox unhandled. It runs on whatever
// goroutine removed it.
func (r *Room) removed(msg any, o backpressure.Outcome) {
	switch m := msg.(type) {
	case *message.Publish:
		if o == backpressure.Coalesced {
			m.Accept(nil, &codec.PublishResult{Outcome: m.Outcome(), EID: r.cfg.EID()})
			return
		}
		m.Refuse(nil, message.Refusal(o, codec.ScopeRoom))
	case *message.Command:
		m.Removed(o)
	case *message.Join:
		if m.Replaces != nil {
			m.Replaces.Gone() // whatever became of the newer one
		}
		if o != backpressure.Closed && m.M.Dropped() {
			m.Answer(nil, nil, message.Refusal(o, codec.ScopeRoom))
			m.M.Ended()
			return
		}
		known, ok := m.M.Place.(*member)
		if !ok || !known.answered { // else the handler got stuck after that
			m.Answer(nil, nil, message.Refusal(o, codec.ScopeRoom))
			m.M.Ended()
		}
		if ok && known.leaving {
			m.M.ReplyLeave(nil) // it overtook its join, and waited for that to be answered
		}
	case *mailbox.Raised:
		switch owner := m.Owner.(type) {
		case *message.Membership:
			known, ok := owner.Place.(*member)
			if m.Bits&message.Leave != 0 || m.Bits&message.Dropped != 0 && ok && known.leaving {
				owner.ReplyLeave(nil)
			}
		case *flight:
			owner.answer(nil)
		case *attempt:
			owner.drop()
		}
	}
}
