package mailbox_test

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/scheduler"
)

// One producer and one actor, and one producer and 10,000 idle actors, on our
// mailbox and on protoactor's default one, in the same run. Read the ratios.

const idleActors = 10_000

// tally counts what it receives and tells when all of a round has come.
type tally struct {
	left atomic.Int64
	done chan struct{}
}

func (t *tally) expect(n int) { t.left.Store(int64(n)); t.done = make(chan struct{}) }

func (t *tally) got(n int64) {
	if t.left.Add(-n) == 0 {
		close(t.done)
	}
}

type receiver struct{ *tally }

func (r receiver) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *mailbox.Batch:
		n := int64(0)
		for _, ok := msg.Next(); ok; _, ok = msg.Next() {
			n++
		}
		if n > 0 {
			r.got(n)
		}
	case *note:
		r.got(1)
	}
}

type note struct{ _ int }

type bench struct {
	*tally
	system *actor.ActorSystem
	pool   *scheduler.Pool
	tenant *scheduler.Tenant
	lanes  mailbox.LanePool
}

func newBench(b *testing.B) *bench {
	s := &bench{tally: &tally{}, pool: scheduler.NewPool(scheduler.PoolConfig{}), tenant: scheduler.NewTenant(1)}
	s.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	s.pool.Start()
	b.Cleanup(s.pool.Stop)
	return s
}

func (s *bench) ours() *mailbox.Mailbox {
	m := mailbox.New(&mailbox.Config{Pool: s.pool, Tenant: s.tenant, Class: scheduler.Session, Items: window, Bytes: 1 << 30, Lanes: &s.lanes}, nil)
	s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return receiver{s.tally} },
		actor.WithMailbox(func() actor.Mailbox { return m })))
	return m
}

func (s *bench) stock() *actor.PID {
	return s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return receiver{s.tally} }))
}

// window is how many messages are on their way at most: no queue is without a
// bound, and without one the faster producer would measure memory.
const window = 64

func BenchmarkOneToOne(b *testing.B) {
	msg := &note{}
	rounds := func(b *testing.B, s *bench, send func()) {
		b.ReportAllocs()
		for left := b.N; left > 0; left -= window {
			n := min(left, window)
			s.expect(n)
			for range n {
				send()
			}
			<-s.done
		}
	}
	b.Run("ours", func(b *testing.B) {
		s := newBench(b)
		m := s.ours()
		rounds(b, s, func() { m.Post(backpressure.Interactive, mailbox.Item{Msg: msg}) })
	})
	b.Run("protoactor", func(b *testing.B) {
		s := newBench(b)
		pid := s.stock()
		rounds(b, s, func() { s.system.Root.Send(pid, msg) })
	})
}

// fanOut is an actor that posts one message to each of the idle ones, as a room
// does: its wakes are gathered in its turn.
type fanOut struct {
	members []*mailbox.Mailbox
	msg     any
}

func (f *fanOut) Receive(ctx actor.Context) {
	b, ok := ctx.Message().(*mailbox.Batch)
	if !ok {
		return
	}
	for _, ok := b.Next(); ok; _, ok = b.Next() {
		for _, m := range f.members {
			m.PostFrom(b.Turn(), backpressure.Interactive, mailbox.Item{Msg: f.msg})
		}
	}
}

func BenchmarkOneToIdle(b *testing.B) {
	msg := &note{}
	per := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/idleActors, "ns/delivery")
	}
	b.Run("ours", func(b *testing.B) {
		s := newBench(b)
		f := &fanOut{msg: msg}
		for range idleActors {
			f.members = append(f.members, s.ours())
		}
		room := mailbox.New(&mailbox.Config{Pool: s.pool, Tenant: s.tenant, Items: 16, Bytes: 1 << 20}, nil)
		s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return f },
			actor.WithMailbox(func() actor.Mailbox { return room })))
		round := func() {
			s.expect(idleActors)
			room.Post(backpressure.Interactive, mailbox.Item{Msg: msg})
			<-s.done
		}
		round() // rings are made at the first message
		b.ReportAllocs()
		for b.Loop() {
			round()
		}
		per(b)
	})
	b.Run("protoactor", func(b *testing.B) {
		s := newBench(b)
		var members []*actor.PID
		for range idleActors {
			members = append(members, s.stock())
		}
		b.ReportAllocs()
		for b.Loop() {
			s.expect(idleActors)
			for _, pid := range members {
				s.system.Root.Send(pid, msg)
			}
			<-s.done
		}
		per(b)
	})
}

func BenchmarkManyToOne(b *testing.B) {
	msg := &note{}
	s := newBench(b)
	m := s.ours()
	b.ReportAllocs()
	s.expect(b.N)
	var wg sync.WaitGroup
	for i := range 8 {
		n := b.N / 8
		if i == 0 {
			n += b.N % 8
		}
		wg.Go(func() {
			for range n {
				for !m.Post(backpressure.Interactive, mailbox.Item{Msg: msg}).Took() {
				}
			}
		})
	}
	wg.Wait()
	<-s.done
}
