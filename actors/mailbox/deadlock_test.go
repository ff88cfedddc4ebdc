package mailbox

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/scheduler"
)

// Why nothing deadlocks, as a model: sessions, rooms and a broker of random
// number with mailboxes that are nearly always full, which post to each other in
// circles. No post waits. What must arrive has a signal of its own before it is
// asked for: a request's reply in its session, a publish's completion, a
// membership's life and the broker's head in its room. Everything else may be
// refused, and then somebody is told.
//
// At rest every request has exactly one answer, nobody is a ghost, and every member
// has seen its room's head.

const (
	bitLeave = 1 << iota
	bitWant
	bitHead
)

type topology struct {
	t        *testing.T
	rooms    []*dlRoom
	sessions []*dlSession
	broker   *dlBroker
	answers  []atomic.Int32 // by request
	open     atomic.Int64   // requests without an answer
	moves    atomic.Int64   // messages handled
}

func (w *topology) answer(id int) {
	w.answers[id].Add(1)
	w.open.Add(-1)
}

type dlRequest struct {
	id   int
	kind int // join, leave, publish
	s    *dlSession
	room int
}

const (
	reqJoin = iota
	reqLeave
	reqPublish
	reqKinds
)

// dlActor is what the three have in common.
type dlActor struct {
	m  *Mailbox
	w  *topology
	t  *testing.T
	on func(b *Batch, msg any)
	at func(b *Batch) // after the batch
}

func (a *dlActor) InvokeUserMessage(msg any) {
	b := msg.(*Batch)
	for msg, ok := b.Next(); ok; msg, ok = b.Next() {
		a.w.moves.Add(1)
		a.on(b, msg)
	}
	if a.at != nil {
		a.at(b)
	}
}

func (a *dlActor) InvokeSystemMessage(any) {}

func (a *dlActor) EscalateFailure(reason, _ any) { a.t.Errorf("%v", reason) }

// dlMember is shared by a session and a room.
type dlMember struct {
	signal Signal
	s      *dlSession
	room   *dlRoom
	leave  atomic.Int64 // request that is to be answered when it has left, +1
	behind atomic.Bool
	joined bool // owned by the room
	owed   bool // owned by the session: a leave is under way
	seen   int  // owned by the session
}

type dlSession struct {
	dlActor
	owed    int
	members []*dlMember
	batch   []dlRequest // requests of the client, in order
}

type dlReply struct {
	signal Signal
	id     int
	left   *dlMember
}

type dlEvent struct {
	member *dlMember
	head   int
}

const dlOwed = 3

func (s *dlSession) receive(b *Batch, msg any) {
	switch msg := msg.(type) {
	case *Raised:
		reply := msg.Owner.(*dlReply)
		s.owed--
		if reply.left != nil {
			reply.left.owed = false
		}
		s.w.answer(reply.id)
	case dlEvent:
		msg.member.seen = max(msg.member.seen, msg.head)
	case dlRequest:
		s.request(b, msg)
	}
}

func (s *dlSession) request(b *Batch, r dlRequest) {
	member := s.members[r.room]
	if s.owed >= dlOwed || r.kind == reqLeave && member.owed {
		s.w.answer(r.id) // rate limited, or a conflict
		return
	}
	s.owed++
	if r.kind == reqLeave {
		member.owed = true
		member.leave.Store(int64(r.id + 1))
		member.room.m.Raise(&member.signal, bitLeave)
		return
	}
	if !member.room.m.PostFrom(b.Turn(), interactive, Item{Msg: r}).Took() {
		s.owed--
		s.w.answer(r.id) // backpressured
	}
}

// wants asks to be fed where a room found the lane full.
func (s *dlSession) wants(*Batch) {
	for _, m := range s.members {
		if m.behind.CompareAndSwap(true, false) {
			m.room.m.Raise(&m.signal, bitWant)
		}
	}
}

type dlRoom struct {
	dlActor
	n       int
	head    atomic.Int64 // the broker's word, for when the lane is full
	known   int
	signal  Signal
	members []*dlMember
}

// dlDone is the completion of a publish.
type dlDone struct {
	signal Signal
	r      dlRequest
}

func (r *dlRoom) receive(b *Batch, msg any) {
	switch msg := msg.(type) {
	case *Raised:
		if msg.Bits&bitHead != 0 {
			r.arrived(b, int(r.head.Load()))
			return
		}
		if done, ok := msg.Owner.(*dlDone); ok {
			r.reply(done.r.s, &dlReply{id: done.r.id})
			return
		}
		member := msg.Owner.(*dlMember)
		if msg.Bits&bitLeave != 0 {
			member.joined = false
			id := int(member.leave.Load() - 1)
			r.reply(member.s, &dlReply{id: id, left: member})
		}
		if msg.Bits&bitWant != 0 && member.joined {
			r.feed(b, member)
		}
	case dlRequest:
		member := msg.s.members[r.n]
		if msg.kind == reqJoin {
			member.joined = true
			r.feed(b, member)
			r.reply(msg.s, &dlReply{id: msg.id})
			return
		}
		if !r.w.broker.m.PostFrom(b.Turn(), interactive, Item{Msg: dlPublish{r, msg}}).Took() {
			r.reply(msg.s, &dlReply{id: msg.id}) // unavailable
		}
	case int:
		r.arrived(b, msg)
	}
}

func (r *dlRoom) reply(s *dlSession, reply *dlReply) {
	reply.signal.Init(reply)
	if !s.m.Raise(&reply.signal, 1) {
		r.t.Error("a reply is refused")
	}
}

func (r *dlRoom) arrived(b *Batch, head int) {
	if head <= r.known {
		return
	}
	r.known = head
	for _, m := range r.members {
		if m.joined {
			r.feed(b, m)
		}
	}
}

func (r *dlRoom) feed(b *Batch, m *dlMember) {
	if r.known > 0 && !m.s.m.PostFrom(b.Turn(), bulk, Item{Msg: dlEvent{m, r.known}}).Took() {
		m.behind.Store(true) // its lane is full, so it will run, and ask
	}
}

type dlBroker struct {
	dlActor
	heads []int
}

type dlPublish struct {
	room *dlRoom
	r    dlRequest
}

func (k *dlBroker) receive(b *Batch, msg any) {
	p := msg.(dlPublish)
	k.heads[p.room.n]++
	head := k.heads[p.room.n]
	if !p.room.m.PostFrom(b.Turn(), bulk, Item{Msg: head}).Took() {
		p.room.head.Store(int64(head))
		p.room.m.Raise(&p.room.signal, bitHead)
	}
	done := &dlDone{r: p.r}
	done.signal.Init(done)
	if !p.room.m.Raise(&done.signal, 1) {
		k.t.Error("a completion is refused")
	}
}

func newTopology(t *testing.T, rnd *rand.Rand, pool *scheduler.Pool) *topology {
	w := &topology{t: t}
	tenants := []*scheduler.Tenant{scheduler.NewTenant(1), scheduler.NewTenant(1 + rnd.IntN(4))}
	box := func(a *dlActor, class scheduler.Class) {
		a.t, a.w = t, w
		a.m = New(&Config{
			Pool: pool, Tenant: tenants[rnd.IntN(2)], Class: class,
			Items: 1 + rnd.IntN(3), Bytes: 1 << 20,
		}, nil)
	}
	w.broker = &dlBroker{heads: make([]int, 1+rnd.IntN(4))}
	box(&w.broker.dlActor, scheduler.Actor)
	w.broker.on = w.broker.receive
	for n := range w.broker.heads {
		r := &dlRoom{n: n}
		box(&r.dlActor, scheduler.Actor)
		r.on = r.receive
		r.signal.Init(r)
		w.rooms = append(w.rooms, r)
	}
	for range 1 + rnd.IntN(12) {
		s := &dlSession{}
		box(&s.dlActor, scheduler.Session)
		s.on, s.at = s.receive, s.wants
		for _, r := range w.rooms {
			m := &dlMember{s: s, room: r}
			m.signal.Init(m)
			s.members = append(s.members, m)
			r.members = append(r.members, m)
		}
		w.sessions = append(w.sessions, s)
	}
	requests := 0
	for _, s := range w.sessions {
		for range rnd.IntN(60) {
			s.batch = append(s.batch, dlRequest{requests, rnd.IntN(reqKinds), s, rnd.IntN(len(w.rooms))})
			requests++
		}
	}
	w.answers = make([]atomic.Int32, requests)
	w.open.Store(int64(requests))
	for _, a := range w.actors() {
		a.m.RegisterHandlers(a, nil)
		a.m.Start()
	}
	return w
}

func (w *topology) actors() []*dlActor {
	all := []*dlActor{&w.broker.dlActor}
	for _, r := range w.rooms {
		all = append(all, &r.dlActor)
	}
	for _, s := range w.sessions {
		all = append(all, &s.dlActor)
	}
	return all
}

// atRest checks what must hold when nothing is left to do.
func (w *topology) atRest() {
	for id := range w.answers {
		want(w.t, fmt.Sprint("answers to request ", id), w.answers[id].Load(), 1)
	}
	for _, a := range w.actors() {
		want(w.t, "messages left", a.m.UserMessageCount(), 0)
	}
	for n, r := range w.rooms {
		want(w.t, "head known to the room", r.known, w.broker.heads[n])
		for _, m := range r.members {
			want(w.t, "replies owed", m.s.owed, 0)
			if m.joined {
				want(w.t, "event seen by a member", m.seen, r.known)
			}
			m.joined = false
		}
		if !r.m.CloseIfIdle() {
			w.t.Fatal("a room without members does not close")
		}
	}
}

func TestDL_NothingDeadlocks(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		pool := scheduler.NewPool(scheduler.PoolConfig{Workers: 1})
		w := newTopology(t, rnd, pool)
		left := len(w.answers)
		for left > 0 {
			s := w.sessions[rnd.IntN(len(w.sessions))]
			if len(s.batch) > 0 && rnd.IntN(3) > 0 && s.m.Post(interactive, Item{Msg: s.batch[0]}).Took() {
				s.batch = s.batch[1:]
				left--
			} else {
				pool.Step()
			}
		}
		for steps := 0; pool.Step(); steps++ {
			if steps > 1_000_000 {
				t.Fatalf("seed %d: no rest", seed)
			}
		}
		w.atRest()
	}
}

func TestDL_NothingDeadlocksOnManyWorkers(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		pool := scheduler.NewPool(scheduler.PoolConfig{Workers: 1 + rnd.IntN(4)})
		w := newTopology(t, rnd, pool)
		pool.Start()
		var clients sync.WaitGroup
		for _, s := range w.sessions {
			clients.Go(func() {
				for _, r := range s.batch { // the reader waits for its own session only
					for !s.m.Post(interactive, Item{Msg: r}).Took() {
						runtime.Gosched()
					}
				}
			})
		}
		clients.Wait()
		rest := make(chan struct{})
		go func() {
			defer close(rest)
			for !w.quiet() {
				runtime.Gosched()
			}
		}()
		select {
		case <-rest:
		case <-time.After(20 * time.Second):
			t.Fatalf("seed %d: %d requests without an answer", seed, w.open.Load())
		}
		pool.Stop()
		w.atRest()
	}
}

// quiet reports that every request is answered and no actor is awake: two looks
// at all of them, with no message handled from the first to the last. What an
// actor posted before it was seen asleep is seen by the second look, or moved.
func (w *topology) quiet() bool {
	moves := w.moves.Load()
	for range 2 {
		for _, a := range w.actors() {
			a.m.mu.Lock()
			busy := a.m.state.has(awake) || a.m.pending()
			a.m.mu.Unlock()
			if busy {
				return false
			}
		}
	}
	return w.open.Load() == 0 && w.moves.Load() == moves
}
