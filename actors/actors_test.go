package actors

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

func TestALifeInOrder(t *testing.T) {
	w := newWorld(t, nil)
	var log []string
	ref := w.root(stops(), &puppet{log: &log})
	w.post(ref, "a", "b")
	ref.Stop()
	ref.Stop()
	want(t, "post after Stop", ref.Post(backpressure.Control, mailbox.Item{}), backpressure.Closed)
	w.run()
	want(t, "calls", log, []string{"started", "a", "b", "stopping", "stopped"})
	w.down()
}

func TestAParentEndsAfterItsChildrenAndIsTold(t *testing.T) {
	w := newWorld(t, nil)
	var log []string
	var ended []*Ref
	var first, second *Ref
	parent := &puppet{log: &log, child: func(r *Ref) { ended = append(ended, r) }}
	parent.started = func(c *Context) {
		first, _ = c.Spawn(stops(), &puppet{}, w.mailbox())
		second, _ = c.Spawn(stops(), &puppet{}, w.mailbox())
	}
	ref := w.root(resumes(), parent)
	first.Stop()
	w.run()
	want(t, "told", ended, []*Ref{first})
	ref.Stop()
	w.run()
	want(t, "told", ended, []*Ref{first, second})
	want(t, "calls", log, []string{"started", "child stopped", "stopping", "child stopped", "stopped"})
	w.down()
}

func TestNothingReachesALaterActor(t *testing.T) {
	// Numbers are used again, but a PID is of one actor.
	w := newWorld(t, nil)
	first := w.root(stops(), &puppet{})
	stale := actor.PID{Address: first.PID.Address, Id: first.PID.Id, RequestId: first.PID.RequestId}
	first.Stop()
	w.run()
	var log []string
	second := w.root(stops(), &puppet{log: &log})
	want(t, "number", second.PID.RequestId, first.PID.RequestId)
	for _, pid := range []*actor.PID{first.PID, &stale} {
		w.system.root.Poison(pid)
		w.system.root.Stop(pid)
	}
	w.run()
	want(t, "calls", log, []string{"started"})
	second.Stop()
	w.down()
}

func TestAFamilyEndsOnceHoweverOftenItIsStopped(t *testing.T) {
	// A second end would be taken for that of the family of the next instance.
	w := newWorld(t, nil)
	var log []string
	var child *Ref
	next := &puppet{log: &log, started: func(c *Context) { child, _ = c.Spawn(stops(), &puppet{}, w.mailbox()) }}
	ref := w.root(restarts(5, 0), &puppet{restart: func() Actor { return next }})
	ref.PostSystemMessage(&actor.Restart{})
	ref.PostSystemMessage(&actor.Restart{})
	w.run()
	ref.Stop()
	w.pool.Step()
	want(t, "calls", log, []string{"started", "stopping"})
	w.run()
	want(t, "calls", log, []string{"started", "stopping", "child stopped", "stopped"})
	want(t, "child", child.Post(backpressure.Control, mailbox.Item{}), backpressure.Closed)
	w.down()
}

func TestOnlyAParentSpawns(t *testing.T) {
	w := newWorld(t, nil)
	var err error
	w.root(stops(), childless{func(c *Context) { _, err = c.Spawn(stops(), &puppet{}, w.mailbox()) }}).Stop()
	w.down()
	want(t, "error", err, ErrClosed)
}

type childless struct{ started func(*Context) }

func (a childless) Started(c *Context)   { a.started(c) }
func (childless) Receive(*mailbox.Batch) {}
func (childless) Stopping()              {}
func (childless) Stopped()               {}

func TestAnActorThatEndsSpawnsNoMore(t *testing.T) {
	// protoactor stops the children of an actor once, so a later one would
	// never end, and neither would its parent.
	w := newWorld(t, nil)
	var errs []error
	p := &puppet{}
	spawn := func() {
		_, err := p.c.Spawn(stops(), &puppet{}, w.mailbox())
		errs = append(errs, err)
	}
	p.ending, p.ended = spawn, spawn
	w.root(stops(), p).Stop()
	w.down()
	want(t, "errors", errs, []error{ErrClosed, ErrClosed})
	_, err := w.system.SpawnRoot(stops(), &puppet{}, w.mailbox())
	want(t, "root after Close", errors.Is(err, ErrClosed), true)
}

// A panic anywhere ends in a report and never keeps the tree from coming down.
// Without the guard the parent waits for ever in each case but the first two.
func TestAPanicInACallbackNeverWedgesTheTree(t *testing.T) {
	bad := func() { panic("boom") }
	tests := []struct {
		callback string
		child    func(w *world) *puppet
		kind     *Kind
		trigger  any // posted to the child
	}{
		{"", func(*world) *puppet { return &puppet{started: func(*Context) { bad() }} }, stops(), nil},
		{"", func(*world) *puppet { return &puppet{} }, stops(), bad},
		{"stopping", func(*world) *puppet { return &puppet{ending: bad} }, stops(), nil},
		{"stopping", func(*world) *puppet { return &puppet{ending: bad} }, restarts(5, 0), nil},
		{"stopped", func(*world) *puppet { return &puppet{ended: bad} }, stops(), nil},
		{"stopped", func(*world) *puppet { return &puppet{ended: bad} }, resumes(), nil},
		{"restart", func(*world) *puppet { return &puppet{restart: func() Actor { bad(); return nil }} }, restarts(5, 0), bad},
		{"child stopped", func(w *world) *puppet {
			p := &puppet{child: func(*Ref) { bad() }}
			p.started = func(c *Context) { c.Spawn(stops(), &puppet{}, w.mailbox()) }
			return p
		}, stops(), nil},
	}
	for _, tt := range tests {
		t.Run(tt.callback+" of a "+tt.kind.Name, func(t *testing.T) {
			w := newWorld(t, nil)
			var child *Ref
			parent := &puppet{started: func(c *Context) {
				child, _ = c.Spawn(tt.kind, tt.child(w), w.mailbox())
			}}
			ref := w.root(resumes(), parent)
			if tt.trigger != nil {
				w.post(child, tt.trigger)
			}
			ref.Stop()
			w.down()
			found := false
			for _, f := range w.failures {
				found = found || f.Callback == tt.callback && f.Kind == tt.kind.Name && f.Panic != nil
			}
			if !found {
				t.Fatalf("not reported: %+v", w.failures)
			}
		})
	}
}

// Case: lightninglabs/wavelength#1123.
func TestB131_ARestartBringsAFreshInstance(t *testing.T) {
	w := newWorld(t, nil)
	type account struct{ balance int }
	var balances []int
	var fresh func() Actor
	fresh = func() Actor {
		a := &account{}
		return &puppet{restart: fresh, on: func(msg any) {
			balances = append(balances, a.balance)
			if msg == "bad" {
				a.balance = -100
				panic("half changed")
			}
		}}
	}
	ref := w.root(restarts(3, 0), fresh())
	for range 3 {
		w.post(ref, "bad", "look")
	}
	want(t, "balances seen", balances, []int{0, 0, 0, 0, 0, 0})
	w.post(ref, "bad") // one more than the limit
	want(t, "post to a stopped actor", ref.Post(backpressure.Control, mailbox.Item{}), backpressure.Closed)
	want(t, "reports", len(w.failures), 4)
	for i, f := range w.failures {
		want(t, "kind", f.Kind, "room")
		want(t, "gave up", f.GaveUp, i == 3)
	}
	w.down()
}

func TestWaitingMessagesSurviveADelayedRestart(t *testing.T) {
	w := newWorld(t, nil)
	var log []string
	next := &puppet{log: &log}
	ref := w.root(restarts(5, time.Second), &puppet{log: &log, restart: func() Actor { return next }})
	w.post(ref, func() { panic("boom") })
	log = nil
	w.post(ref, "waiting")
	want(t, "during the delay", log, nil)
	w.elapse()
	want(t, "after", log, []string{"restart", "started", "waiting"})
	want(t, "delay", w.delays, []time.Duration{time.Second})
	ref.Stop()
	w.down()
}

func TestARestartThatComesAfterTheEndDoesNothing(t *testing.T) {
	w := newWorld(t, nil)
	var log []string
	ref := w.root(restarts(5, time.Second), &puppet{log: &log})
	w.post(ref, func() { panic("boom") })
	ref.Stop()
	w.run()
	want(t, "live", w.system.Live(), 0)
	log = nil
	w.elapse()
	want(t, "calls", log, nil)
	w.down()
}

func TestARestartDuringTheEndDoesNotBringTheActorBack(t *testing.T) {
	// protoactor sets a stopping actor that waits for its children to restarting.
	w := newWorld(t, nil)
	var log []string
	var child *Ref
	p := &puppet{log: &log, restart: func() Actor { return &puppet{log: &log} }}
	p.started = func(c *Context) { child, _ = c.Spawn(stops(), &puppet{}, w.mailbox()) }
	ref := w.root(restarts(5, 0), p)
	child.PostSystemMessage(&actor.SuspendMailbox{})
	ref.Stop()
	ref.PostSystemMessage(&actor.Restart{})
	w.down()
	want(t, "calls", log, []string{"started", "stopping", "child stopped", "stopped"})
}

func TestAStopDuringARestartEndsTheActor(t *testing.T) {
	w := newWorld(t, nil)
	var log []string
	p := &puppet{log: &log, restart: func() Actor { return &puppet{log: &log} }}
	p.started = func(c *Context) { c.Spawn(stops(), &puppet{}, w.mailbox()) }
	ref := w.root(restarts(5, 0), p)
	ref.PostSystemMessage(&actor.Restart{})
	w.pool.Step() // it has asked for the successor, and waits for its child
	want(t, "successors", len(w.system.successors), 1)
	ref.Stop()
	w.down()
	want(t, "successors kept", len(w.system.successors), 0)
	want(t, "last call", log[len(log)-1], "stopped")
}

func TestARestartKeepsTheRef(t *testing.T) {
	w := newWorld(t, nil)
	var selves []*Ref
	note := func(c *Context) { selves = append(selves, c.Self()) }
	ref := w.root(restarts(5, 0), &puppet{started: note, restart: func() Actor { return &puppet{started: note} }})
	w.post(ref, func() { panic("boom") })
	want(t, "self", selves, []*Ref{ref, ref})
	ref.Stop()
	w.down()
}

func TestChildrenOfARestartedActor(t *testing.T) {
	// One that was spawned by the old instance while it goes would keep the next
	// from starting.
	w := newWorld(t, nil)
	var errs []error
	old, next := &puppet{}, &puppet{}
	old.restart = func() Actor {
		_, err := old.c.Spawn(stops(), &puppet{}, w.mailbox())
		errs = append(errs, err)
		return next
	}
	next.started = func(c *Context) {
		_, err := c.Spawn(stops(), &puppet{}, w.mailbox())
		errs = append(errs, err)
	}
	ref := w.root(restarts(5, 0), old)
	w.post(ref, func() { panic("boom") })
	want(t, "errors", errs, []error{ErrClosed, nil})
	ref.Stop()
	w.down()
}

func TestATenantResumesAndGivesUpAtItsLimit(t *testing.T) {
	w := newWorld(t, nil)
	k := resumes()
	k.Rule.Backoff = supervision.Backoff{MaxRestarts: 2, Window: time.Hour}
	var log []string
	ref := w.root(k, &puppet{log: &log, on: func(any) { panic("boom") }})
	w.post(ref, 1, 2)
	w.post(ref, 3)
	want(t, "calls", log, []string{"started", "1", "2", "3", "stopping", "stopped"})
	w.down()
}

// Case: tqwewe/kameo#351.
func TestB129_AChildThatAsksItsEndingParentIsAnswered(t *testing.T) {
	for _, before := range []bool{true, false} {
		w := newWorld(t, nil)
		answer := "none"
		box := mailbox.New(&mailbox.Config{
			Pool: w.pool, Tenant: w.tenant, Items: 16, Bytes: 1 << 20,
			Removed: func(msg any, o backpressure.Outcome) { answer = o.String() },
		}, nil)
		var child *Ref
		parent, err := w.system.SpawnRoot(resumes(), &puppet{started: func(c *Context) {
			child, _ = c.Spawn(stops(), &puppet{}, w.mailbox())
		}}, box)
		if err != nil {
			t.Fatal(err)
		}
		w.run()
		ask := func() {
			if o := parent.Post(backpressure.Interactive, mailbox.Item{Msg: "ask"}); !o.Took() {
				answer = o.String()
			}
		}
		if before {
			ask()
			parent.Stop()
		} else {
			parent.Stop()
			child.Post(backpressure.Interactive, mailbox.Item{Msg: ask})
			ask()
		}
		w.down()
		want(t, "answer", answer, "closed")
	}
}

// Case: asynkron/protoactor-go#111, Tochemey/goakt#382.
func TestB135_SpawnAndStopAtOnceLeavesNothing(t *testing.T) {
	const spawners = 16
	n := 100_000 / spawners
	if testing.Short() {
		n /= 10
	}
	pool := scheduler.NewPool(scheduler.PoolConfig{})
	pool.Start()
	defer pool.Stop()
	tenant := scheduler.NewTenant(1)
	w := &world{t: t, pool: pool, tenant: tenant, system: NewSystem(Config{})}
	var started, stopped atomic.Int64
	kind := stops()
	var wg sync.WaitGroup
	for range spawners {
		wg.Go(func() {
			for range n {
				parent := &puppet{
					started: func(c *Context) {
						started.Add(1)
						c.Spawn(kind, &puppet{}, w.mailbox())
					},
					ended: func() { stopped.Add(1) },
				}
				ref, err := w.system.SpawnRoot(kind, parent, w.mailbox())
				if err != nil {
					t.Error(err)
					return
				}
				ref.Stop()
			}
		})
	}
	wg.Wait()
	select {
	case <-w.system.Close():
	case <-time.After(30 * time.Second):
		t.Fatalf("%d actors have not ended", w.system.Live())
	}
	want(t, "started", started.Load(), int64(spawners*n))
	want(t, "stopped", stopped.Load(), int64(spawners*n))
	want(t, "registry", w.left(), 0)
}

func TestM9_EnvelopesAndAutomaticAnswersWork(t *testing.T) {
	w := newWorld(t, nil)
	ref := w.root(stops(), &puppet{})
	root := w.system.root
	f := root.RequestFuture(ref.PID, &actor.Touch{}, time.Minute)
	w.run()
	res, err := f.Result()
	if err != nil {
		t.Fatal(err)
	}
	want(t, "who", res.(*actor.Touched).Who.Id, ref.PID.Id)
	root.Poison(ref.PID)
	w.down()
}

func TestM15_NoSecretReachesTheLog(t *testing.T) {
	var out bytes.Buffer
	w := newWorld(t, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	const secret = "s3cr3t"
	ref := w.root(restarts(5, 0), &puppet{restart: func() Actor { return &puppet{} }})
	w.post(ref, func() { panic(secret) })
	ref.PostSystemMessage(struct{ token string }{secret}) // logged as unknown
	w.run()
	ref.Stop()
	w.run()
	w.system.root.Send(ref.PID, secret) // a dead letter
	w.system.root.Logger().With("token", secret).Warn("x", "string", secret, slog.Group("g", "token", secret),
		"self", ref.PID, "reason", mailbox.NewPanic(secret, nil))
	for _, must := range []string{"unknown system message", "room~", "reason.type=string", "reason.stack="} {
		if !strings.Contains(out.String(), must) {
			t.Fatalf("the log says nothing of %q:\n%s", must, out.String())
		}
	}
	if strings.Contains(out.String(), secret) {
		t.Fatalf("the log tells the secret:\n%s", out.String())
	}
}

func TestM16_DeadLettersStartNoGoroutine(t *testing.T) {
	throttles := func() int {
		buf := make([]byte, 1<<20)
		return strings.Count(string(buf[:runtime.Stack(buf, true)]), "NewThrottle")
	}
	w := newWorld(t, nil)
	gone := actor.NewPID("nonhost", "gone")
	for range 100 {
		w.system.root.Send(gone, "x")
	}
	want(t, "goroutines", throttles(), 0)

	control := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(50*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	control.Root.Send(gone, "x")
	if throttles() == 0 {
		t.Fatal("control: protoactor's own system starts none")
	}
}

// What an idle actor holds on the heap beside its own struct: the mailbox, its place in
// its family, and protoactor's context and PID.
func TestAnIdleActorIsSmall(t *testing.T) {
	const n, promise = 8_000, 560
	w := newWorld(t, nil)
	kind := stops()
	shared := mailbox.Config{Pool: w.pool, Tenant: w.tenant, Items: 16, Bytes: 1 << 20}
	refs := make([]*Ref, n)
	parent := &puppet{}
	parent.on = func(any) {
		for i := range refs {
			refs[i], _ = parent.c.Spawn(kind, idle{}, mailbox.New(&shared, nil))
		}
	}
	round := func() (bytes uint64) {
		ref := w.root(resumes(), parent)
		before := heap()
		w.post(ref, "spawn")
		bytes = heap() - before
		ref.Stop()
		for w.pool.Step() {
		}
		clear(refs)
		return bytes
	}
	round() // what the tables have grown to is used again
	per := round() / n
	t.Logf("%d bytes per idle actor", per)
	if per > promise {
		t.Fatalf("%d bytes per idle actor, promised %d", per, promise)
	}
	w.down()
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

type idle struct{}

func (idle) Started(*Context)       {}
func (idle) Receive(*mailbox.Batch) {}
func (idle) Stopping()              {}
func (idle) Stopped()               {}
