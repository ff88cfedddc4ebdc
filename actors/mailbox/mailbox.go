package mailbox

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

// The control lane carries small messages that must get through while the
// others are full, so its bound is the same for every actor.
const (
	ControlItems = 64
	ControlBytes = 64 << 10
)

// Config is what the mailboxes of one kind of actor are made of. They share it,
// so it must not change.
type Config struct {
	Pool   *scheduler.Pool
	Class  scheduler.Class
	Tenant *scheduler.Tenant
	Items  int // bound of each lane but control, in messages
	Bytes  int // bound of each lane but control, in bytes, below 2 GiB

	// Lanes lends the queues. Nil: the mailbox makes its own when a second message
	// waits and keeps them.
	Lanes *LanePool

	// Account is charged 32 bytes and the message's size for every queued
	// message; a post that it refuses is Backpressured. Nil: not charged.
	Account *backpressure.Account

	// Frames is charged for what waits in the Outbound of a session, if that is the
	// mailbox's.
	Frames *backpressure.Account

	// Removed gets every message that leaves the queue unhandled, and why:
	// replaced (Coalesced), dropped (Backpressured), Expired or Closed. Never
	// called under the mailbox's lock. Nil: nobody wants to know.
	Removed func(msg any, o backpressure.Outcome)

	// Timing is told how long some messages waited. Nil: nothing is measured.
	Timing Timing
}

// Sink is work of the actor that does not come as messages: a session's
// outbound queue. Drain runs on the worker, after the batch, and reports
// whether there is more to do; it has to spend what it costs, and to keep to
// control work in a control turn.
type Sink interface {
	Drain(t *scheduler.Turn) (more bool)
}

// Item is one message with what the queue has to know about it.
type Item struct {
	Msg     any
	Size    int                 // bytes, for the bounds and the ledger
	Key     uint64              // coalescing key, for CoalesceLatest
	Expires int64               // by the clock of Turn.Now; 0: never
	Policy  backpressure.Policy // what happens when the lane is full
}

// Mailbox implements actor.Mailbox and scheduler.Runner. Make it with New.
//
// There is one for each session, so its size counts, and so do the atomic
// operations and the cache lines of a message that finds it idle. It fills four
// lines: what every post needs, the task, the flow, the rest.
type Mailbox struct {
	cfg *Config // immutable

	look atomic.Uint32 // what a run has to look at

	// guarded by mu
	ready backpressure.Ready // lanes that are not empty
	state state
	mu    sync.Mutex
	sole  soleItem

	// owned by the scheduler
	task scheduler.Task
	flow scheduler.Flow

	// guarded by mu
	q       *lanes // nil: no more than one message waits, which is sole
	signals signalList
	urgent  int32               // signals that count as control work
	picker  backpressure.Picker // which lane is next
	system  systemQueue
	invoker actor.MessageInvoker

	sink Sink // immutable
}

// What a run has to look at, known without the lock. The first two are set and
// cleared under mu, and set before the pool is told of what they stand for: so a
// run that did not see them yet is followed by another.
const (
	special uint32 = 1 << iota // state or system messages: all of it
	filled                     // lanes or signals; kept only where there is a sink, else always set
	halted                     // suspended, paused or closed since the batch began
)

// state is a set of reasons, so that each has one writer and they cannot
// overwrite each other.
type state uint8

const (
	started   state = 1 << iota // Start was called: the task may run
	suspended                   // protoactor: failed or about to restart
	paused                      // the actor: lanes wait
	poisoned                    // protoactor: stop when the lanes are empty
	closed                      // for good
	awake                       // the pool was told, and no run has left the mailbox empty since
)

func (s state) has(any state) bool { return s&any != 0 }

// foreign is how a message that came through the PID waits in its lane:
// protoactor has to see it alone. That lane is foreignLane.
type foreign struct{ msg any }

const foreignLane = backpressure.Interactive

// New makes a mailbox that takes posts at once. Nothing runs before Start,
// which protoactor calls when it has registered the actor. sink is drained after
// each batch, and a panic in it is a panic of the actor; nil: there is none.
func New(cfg *Config, sink Sink) *Mailbox {
	m := &Mailbox{cfg: cfg, sink: sink}
	m.flow.Init(cfg.Tenant)
	m.task.Init(m, &m.flow, cfg.Class)
	m.look.Store(special | filled)
	return m
}

// Flow is the mailbox's own flow within its tenant.
func (m *Mailbox) Flow() *scheduler.Flow { return &m.flow }

// Task is what the scheduler runs.
func (m *Mailbox) Task() *scheduler.Task { return &m.task }
