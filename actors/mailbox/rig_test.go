package mailbox

import (
	"fmt"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

// rig is a mailbox on a pool that the test steps by hand, and the actor behind
// it, recorded.
type rig struct {
	t    *testing.T
	now  int64
	pool *scheduler.Pool
	m    *Mailbox
	recorder
	removed []removal
}

// options are what a test sets.
type options struct {
	Config
	Sink Sink
}

type removal struct {
	msg any
	o   backpressure.Outcome
}

func (r removal) String() string { return fmt.Sprintf("%v %v", r.msg, r.o) }

// recorder stands for protoactor's context. It serves either mailbox, ours or
// protoactor's own.
type recorder struct {
	box     actor.Mailbox
	got     []any // user messages, in the order of delivery
	batches []int // their number in each batch
	system  []any // system messages
	failed  []any // guilty messages
	reasons []any // of the failures
	handle  func(msg any)
	onSys   func(msg any)
	onFail  func()
	turn    func(b *Batch)
	after   func() // after each batch
}

func (r *recorder) InvokeUserMessage(msg any) {
	b, ok := msg.(*Batch)
	if !ok {
		r.user(msg)
		return
	}
	if r.turn != nil {
		r.turn(b)
	}
	r.batches = append(r.batches, 0)
	at := len(r.batches) - 1
	for msg, ok := b.Next(); ok; msg, ok = b.Next() {
		r.batches[at]++
		r.user(msg)
	}
	if r.after != nil {
		r.after()
	}
}

func (r *recorder) user(msg any) {
	if s, ok := msg.(*Raised); ok {
		msg = *s
	}
	r.got = append(r.got, msg)
	if r.handle != nil {
		r.handle(msg)
	}
}

func (r *recorder) InvokeSystemMessage(msg any) {
	r.system = append(r.system, msg)
	if r.onSys != nil {
		r.onSys(msg)
	}
}

func (r *recorder) EscalateFailure(reason, message any) {
	r.failed = append(r.failed, message)
	r.reasons = append(r.reasons, reason)
	r.box.PostSystemMessage(&actor.SuspendMailbox{})
	if r.onFail != nil {
		r.onFail()
	}
}

// newRig makes a mailbox of the given bound that is started and has run once.
func newRig(t *testing.T, items int, sets ...func(*options)) *rig {
	t.Helper()
	r := unstarted(t, items, sets...)
	r.start()
	r.run()
	return r
}

func unstarted(t *testing.T, items int, sets ...func(*options)) *rig {
	t.Helper()
	r := &rig{t: t, now: 1}
	r.pool = scheduler.NewPool(scheduler.PoolConfig{Workers: 1, Now: func() int64 { return r.now }})
	o := options{}
	o.Config = Config{
		Pool: r.pool, Tenant: scheduler.NewTenant(1), Items: items, Bytes: 1 << 20,
		Removed: func(msg any, o backpressure.Outcome) {
			if s, ok := msg.(*Raised); ok {
				msg = *s
			}
			r.removed = append(r.removed, removal{msg, o})
		},
	}
	for _, set := range sets {
		set(&o)
	}
	r.m = New(&o.Config, o.Sink)
	r.box = r.m
	return r
}

func (r *rig) start() {
	r.m.RegisterHandlers(r, nil)
	r.m.PostSystemMessage(&actor.Started{})
	r.m.Start()
}

// run steps the pool until nothing is ready.
func (r *rig) run() {
	for range 10_000 {
		if !r.pool.Step() {
			return
		}
	}
	r.t.Fatal("the pool does not come to rest")
}

func (r *rig) post(msgs ...any) {
	r.t.Helper()
	for _, msg := range msgs {
		if o := r.m.Post(backpressure.Interactive, Item{Msg: msg}); !o.Took() {
			r.t.Fatalf("post of %v: %v", msg, o)
		}
	}
}

// stock is protoactor's own mailbox behind the same recorder, for the rules
// that it breaks. Its dispatcher queues, so that it is stepped as well.
type stock struct {
	recorder
	mu    sync.Mutex
	ready []func()
}

func newStock() *stock {
	s := &stock{}
	s.box = actor.Unbounded()()
	s.box.RegisterHandlers(s, s)
	s.box.PostSystemMessage(&actor.Started{})
	s.box.Start()
	s.run()
	return s
}

func (s *stock) Throughput() int { return 300 }

func (s *stock) Schedule(f func()) {
	s.mu.Lock()
	s.ready = append(s.ready, f)
	s.mu.Unlock()
}

func (s *stock) run() {
	for len(s.ready) > 0 {
		f := s.ready[0]
		s.ready = s.ready[1:]
		f()
	}
}

func (s *stock) post(msgs ...any) {
	for _, msg := range msgs {
		s.box.PostUserMessage(msg)
	}
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Fatalf("%s: got %s, want %s", what, g, w)
	}
}
