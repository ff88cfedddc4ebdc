package mailbox_test

import (
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

// Messages from one sender to one actor, and from one actor to 10,000 idle ones, on
// our mailbox and on protoactor's default one with its default dispatcher. Rounds
// of both alternate in one process; what counts is its processor time for a
// message, and the median of the pairs' ratios.

const (
	idleActors = 10_000

	// window is how many messages are on their way at most: no queue is without a
	// bound, and without one the faster producer would measure memory.
	window = 64
)

type note struct{ _ int }

// side is one of the mailboxes that are compared: round sends messages and returns when all have
// been handled.
type side struct {
	name     string
	round    func()
	messages int
}

// compare alternates ours with theirs, and with others that are only told.
func compare(b *testing.B, rounds int, ours, theirs side, others ...side) {
	b.ReportAllocs()
	measure := func(s side) float64 {
		before := processorTime()
		for range rounds {
			s.round()
		}
		return float64(processorTime()-before) / float64(rounds*s.messages)
	}
	sides := append([]side{ours, theirs}, others...)
	for _, s := range sides {
		measure(s)
	}
	b.ResetTimer()
	took := make([][]float64, len(sides))
	var ratio []float64
	for i := range max(b.N, 11) {
		for j := range sides {
			at := (i + j) % len(sides)
			took[at] = append(took[at], measure(sides[at]))
		}
		ratio = append(ratio, took[0][i]/took[1][i])
	}
	n := len(ratio)
	for i, s := range sides {
		slices.Sort(took[i])
		b.ReportMetric(took[i][n/2], s.name+"-cpu-ns/message")
	}
	slices.Sort(ratio)
	b.ReportMetric(ratio[n/2], "ratio")
	b.ReportMetric(ratio[0], "ratio-min")
	b.ReportMetric(ratio[n-1], "ratio-max")
	b.ReportMetric(0, "ns/op")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// receiver counts on its own, and tells when it has got as many as are expected.
type receiver struct {
	got, expected int // owned by the actor while messages are under way
	all           chan struct{}
}

func (r *receiver) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *mailbox.Batch:
		for _, ok := msg.Next(); ok; _, ok = msg.Next() {
			r.count()
		}
	case *note:
		r.count()
	}
}

func (r *receiver) count() {
	if r.got++; r.got == r.expected {
		r.got = 0
		r.all <- struct{}{}
	}
}

// crowd is what the idle actors share: how many of them have not got their message.
type crowd struct {
	left atomic.Int64
	all  chan struct{}
}

type idler struct{ *crowd }

func (i idler) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *mailbox.Batch:
		for _, ok := msg.Next(); ok; _, ok = msg.Next() {
			i.got()
		}
	case *note:
		i.got()
	}
}

func (i idler) got() {
	if i.left.Add(-1) == 0 {
		i.all <- struct{}{}
	}
}

type rigged struct {
	system *actor.ActorSystem
	pool   *scheduler.Pool
	tenant *scheduler.Tenant
	lanes  mailbox.LanePool
}

func newRigged(b *testing.B) *rigged {
	s := &rigged{pool: scheduler.NewPool(scheduler.PoolConfig{}), tenant: scheduler.NewTenant(1)}
	s.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	s.pool.Start()
	b.Cleanup(s.pool.Stop)
	return s
}

func (s *rigged) ours(class scheduler.Class, a actor.Actor) *mailbox.Mailbox {
	m := mailbox.New(&mailbox.Config{Pool: s.pool, Tenant: s.tenant, Class: class, Items: window, Bytes: 1 << 20, Lanes: &s.lanes}, nil)
	s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(func() actor.Mailbox { return m })))
	return m
}

func (s *rigged) bare(pool *barePool, a actor.Actor) *bare {
	m := &bare{pool: pool}
	s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(func() actor.Mailbox { return m })))
	return m
}

func (s *rigged) theirs(a actor.Actor) *actor.PID {
	return s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
}

func BenchmarkOneToOne(b *testing.B) {
	s, msg := newRigged(b), &note{}
	x := &receiver{expected: window, all: make(chan struct{}, 1)}
	y := &receiver{expected: window, all: make(chan struct{}, 1)}
	m, pid := s.ours(scheduler.Actor, x), s.theirs(y)
	compare(b, 2000,
		side{"ours", func() {
			for range window {
				m.Post(backpressure.Interactive, mailbox.Item{Msg: msg})
			}
			<-x.all
		}, window},
		side{"protoactor", func() {
			for range window {
				s.system.Root.Send(pid, msg)
			}
			<-y.all
		}, window})
}

// fanOut is an actor that sends a message to each of the idle ones.
type fanOut struct {
	mailboxes []*mailbox.Mailbox
	pids      []*actor.PID
}

func (f *fanOut) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *mailbox.Batch:
		for n, ok := msg.Next(); ok; n, ok = msg.Next() {
			for _, m := range f.mailboxes {
				m.PostFrom(msg.Turn(), backpressure.Interactive, mailbox.Item{Msg: n})
			}
		}
	case *note:
		for _, pid := range f.pids {
			ctx.Send(pid, msg)
		}
	}
}

func BenchmarkOneToIdle(b *testing.B) {
	s, msg := newRigged(b), &note{}
	c := &crowd{all: make(chan struct{}, 1)}
	f := &fanOut{}
	for range idleActors {
		f.mailboxes = append(f.mailboxes, s.ours(scheduler.Session, idler{c}))
		f.pids = append(f.pids, s.theirs(idler{c}))
	}
	m, pid := s.ours(scheduler.Actor, f), s.theirs(f)
	bares := &fanOutBare{}
	pool := newBarePool(b)
	for range idleActors {
		bares.members = append(bares.members, s.bare(pool, idler{c}))
	}
	sender := s.bare(pool, bares)
	compare(b, 10,
		side{"ours", func() {
			c.left.Store(idleActors)
			m.Post(backpressure.Interactive, mailbox.Item{Msg: msg})
			<-c.all
		}, idleActors},
		side{"protoactor", func() {
			c.left.Store(idleActors)
			s.system.Root.Send(pid, msg)
			<-c.all
		}, idleActors},
		side{"bare", func() {
			c.left.Store(idleActors)
			sender.PostUserMessage(msg)
			<-c.all
		}, idleActors})
}

func BenchmarkManyToOne(b *testing.B) {
	s, msg := newRigged(b), &note{}
	x := &receiver{expected: b.N, all: make(chan struct{}, 1)}
	m := s.ours(scheduler.Actor, x)
	b.ReportAllocs()
	var wg sync.WaitGroup
	for i := range 8 {
		n := b.N / 8
		if i == 0 {
			n += b.N % 8
		}
		wg.Go(func() {
			for range n {
				for !m.Post(backpressure.Interactive, mailbox.Item{Msg: msg}).Took() {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	<-x.all
}
