package actors

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a System on a pool that the test steps by hand.
type world struct {
	t        *testing.T
	pool     *scheduler.Pool
	tenant   *scheduler.Tenant
	system   *System
	failures []Failure
	delayed  []func() // what the clock was asked to run later
	delays   []time.Duration
}

func newWorld(t *testing.T, logger *slog.Logger) *world {
	w := &world{t: t, tenant: scheduler.NewTenant(1)}
	w.pool = scheduler.NewPool(scheduler.PoolConfig{Workers: 1})
	w.system = NewSystem(Config{
		Logger: logger, Clock: w,
		Failed: func(f Failure) { w.failures = append(w.failures, f) },
	})
	return w
}

func (w *world) After(d time.Duration, f func()) {
	w.delays = append(w.delays, d)
	w.delayed = append(w.delayed, f)
}

// elapse runs what was delayed.
func (w *world) elapse() {
	for _, f := range w.delayed {
		f()
	}
	w.delayed = nil
	w.run()
}

func (w *world) run() {
	for range 100_000 {
		if !w.pool.Step() {
			return
		}
	}
	w.t.Fatal("the pool does not come to rest")
}

func (w *world) mailbox() *mailbox.Mailbox {
	return mailbox.New(&mailbox.Config{Pool: w.pool, Tenant: w.tenant, Items: 16, Bytes: 1 << 20}, nil)
}

func (w *world) root(k *Kind, a Actor) *Ref {
	w.t.Helper()
	ref, err := w.system.SpawnRoot(k, a, w.mailbox())
	if err != nil {
		w.t.Fatal(err)
	}
	w.run()
	return ref
}

func (w *world) post(ref *Ref, msgs ...any) {
	w.t.Helper()
	for _, msg := range msgs {
		if o := ref.Post(backpressure.Interactive, mailbox.Item{Msg: msg}); !o.Took() {
			w.t.Fatalf("post of %v: %v", msg, o)
		}
	}
	w.run()
}

// left is what is still known of actors: in protoactor's registry, its guardian
// apart, and in ours.
func (w *world) left() int {
	n := w.system.table.size() + len(w.system.successors) + len(w.system.failures) - 1
	for _, m := range w.system.proto.ProcessRegistry.LocalPIDs.LocalPIDs {
		n += m.Count()
	}
	return n
}

func (w *world) down() {
	w.t.Helper()
	w.run()
	select {
	case <-w.system.Close():
	default:
		w.t.Fatalf("%d actors have not ended", w.system.Live())
	}
	want(w.t, "registry", w.left(), 0)
}

// puppet is an actor made of functions, which logs its calls.
type puppet struct {
	c       *Context
	log     *[]string
	started func(c *Context)
	on      func(msg any)
	ending  func()
	ended   func()
	child   func(*Ref)
	restart func() Actor
}

func (p *puppet) Started(c *Context) {
	p.c = c
	p.say("started")
	if p.started != nil {
		p.started(c)
	}
}

func (p *puppet) Receive(b *mailbox.Batch) {
	for msg, ok := b.Next(); ok; msg, ok = b.Next() {
		p.say(fmt.Sprint(msg))
		if f, ok := msg.(func()); ok {
			f()
		} else if p.on != nil {
			p.on(msg)
		}
	}
}

func (p *puppet) Stopping() {
	p.say("stopping")
	if p.ending != nil {
		p.ending()
	}
}

func (p *puppet) Stopped() {
	p.say("stopped")
	if p.ended != nil {
		p.ended()
	}
}

func (p *puppet) ChildStopped(r *Ref) {
	p.say("child stopped")
	if p.child != nil {
		p.child(r)
	}
}

func (p *puppet) Restart() Actor {
	p.say("restart")
	if p.restart == nil {
		return nil
	}
	return p.restart()
}

func (p *puppet) say(what string) {
	if p.log != nil {
		*p.log = append(*p.log, what)
	}
}

func stops() *Kind { return &Kind{Name: "session"} }
func resumes() *Kind {
	return &Kind{Name: "tenant", Rule: supervision.Rule{Directive: supervision.Resume}}
}
func restarts(max int, first time.Duration) *Kind {
	return &Kind{Name: "room", Rule: supervision.Rule{
		Directive: supervision.Restart,
		Backoff:   supervision.Backoff{Initial: first, Cap: time.Hour, MaxRestarts: max, Window: time.Hour},
	}}
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Fatalf("%s: got %s, want %s", what, g, w)
	}
}
