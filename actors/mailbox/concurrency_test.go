package mailbox

import (
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is an actor that counts; running finds two workers in it at once.
type counter struct {
	m       *Mailbox
	running atomic.Bool
	handled atomic.Int64
	raised  atomic.Int64
	last    [64]int // by sender: the order within a lane
	t       *testing.T
	idle    func()
}

func (c *counter) InvokeUserMessage(msg any) {
	if !c.running.CompareAndSwap(false, true) {
		c.t.Error("two workers in one actor")
	}
	b := msg.(*Batch)
	for msg, ok := b.Next(); ok; msg, ok = b.Next() {
		switch msg := msg.(type) {
		case *Raised:
			c.raised.Add(int64(msg.Bits))
		case [2]int:
			if c.last[msg[0]] >= msg[1] {
				c.t.Errorf("sender %d: %d after %d", msg[0], msg[1], c.last[msg[0]])
			}
			c.last[msg[0]] = msg[1]
			c.handled.Add(1)
		}
	}
	c.running.Store(false)
	c.idle()
}

func (c *counter) InvokeSystemMessage(any)  {}
func (c *counter) EscalateFailure(r, _ any) { c.t.Error(r) }

func TestM6_NoWakeUpIsLostAndOneWorkerRuns(t *testing.T) {
	const senders, each = 64, 2000
	pool := scheduler.NewPool(scheduler.PoolConfig{Workers: 4})
	pool.Start()
	defer pool.Stop()
	var accepted atomic.Int64
	sent := make(chan struct{})
	done := make(chan struct{})
	c := &counter{t: t}
	var once sync.Once
	c.idle = func() {
		select {
		case <-sent:
			if c.handled.Load() == accepted.Load() && c.m.UserMessageCount() == 0 {
				once.Do(func() { close(done) })
			}
		default:
		}
	}
	c.m = New(&Config{Pool: pool, Tenant: scheduler.NewTenant(1), Items: 256, Bytes: 1 << 20}, nil)
	c.m.RegisterHandlers(c, nil)
	c.m.Start()
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				if c.m.Post(interactive, Item{Msg: [2]int{s, i + 1}}).Took() {
					accepted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	close(sent)
	// One more message proves that the actor still wakes, and finds the end.
	var s Signal
	c.m.Raise(&s, 1)
	<-done
	want(t, "handled", c.handled.Load(), accepted.Load())
	t.Logf("%d accepted of %d", accepted.Load(), senders*each)
}

func TestAnEmptyMailboxSleeps(t *testing.T) {
	// A lost wake-up shows best where every post finds the actor about to sleep.
	pool := scheduler.NewPool(scheduler.PoolConfig{Workers: 2})
	pool.Start()
	defer pool.Stop()
	got := make(chan int)
	m := New(&Config{Pool: pool, Tenant: scheduler.NewTenant(1), Items: 4, Bytes: 1 << 10}, nil)
	m.RegisterHandlers(echo{got}, nil)
	m.Start()
	for i := range 20_000 {
		switch i % 3 {
		case 0:
			m.Post(interactive, Item{Msg: i})
		case 1:
			m.Post(control, Item{Msg: i})
		default:
			m.PostSystemMessage(i)
		}
		if g := <-got; g != i {
			t.Fatalf("got %d, want %d", g, i)
		}
	}
}

type echo struct{ got chan<- int }

func (e echo) InvokeUserMessage(msg any) {
	b := msg.(*Batch)
	for msg, ok := b.Next(); ok; msg, ok = b.Next() {
		e.got <- msg.(int)
	}
}
func (e echo) InvokeSystemMessage(msg any)     { e.got <- msg.(int) }
func (e echo) EscalateFailure(reason, msg any) {}

var (
	_ actor.MessageInvoker = echo{}
	_ actor.MessageInvoker = (*counter)(nil)
)

// An actor that does not return from a message is abandoned by another
// goroutine: all that waited is answered, also what its batch had claimed, and
// when it comes back after all it is handed nothing more.
func TestAbandonAnswersWhatAStuckActorHolds(t *testing.T) {
	pool := scheduler.NewPool(scheduler.PoolConfig{Workers: 1})
	pool.Start()
	defer pool.Stop()
	const n = 40
	var told atomic.Int64
	stuck, back, over := make(chan struct{}), make(chan struct{}), make(chan int)
	m := New(&Config{
		Pool: pool, Tenant: scheduler.NewTenant(1), Items: n, Bytes: 1 << 10,
		Removed: func(any, backpressure.Outcome) { told.Add(1) },
	}, nil)
	for i := range n {
		m.Post(interactive, Item{Msg: i})
	}
	m.RegisterHandlers(holding{func(b *Batch) {
		handled := 0
		for _, ok := b.Next(); ok; _, ok = b.Next() {
			if handled++; handled == 1 {
				close(stuck)
				<-back
			}
		}
		over <- handled
	}}, nil)
	m.Start()
	<-stuck
	m.Abandon()
	want(t, "told while it is stuck", told.Load(), n-1)
	close(back)
	want(t, "handled", <-over, 1)
	want(t, "told in all", told.Load(), n-1)
}

type holding struct{ receive func(*Batch) }

func (h holding) InvokeUserMessage(msg any) { h.receive(msg.(*Batch)) }
func (h holding) InvokeSystemMessage(any)   {}
func (h holding) EscalateFailure(any, any)  {}
