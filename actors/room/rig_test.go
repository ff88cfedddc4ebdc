package room

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// stage is one room on a pool that the test steps by hand, over a broker that
// the test is: nothing runs by itself, and no timer fires.
type stage struct {
	t      *testing.T
	now    int64
	pool   *scheduler.Pool
	tenant *scheduler.Tenant
	queue  *backpressure.Account
	replay *backpressure.Account
	broker *desk
	kind   Kind
	room   *Room
	ended  int
	eids   int
}

func newStage(t *testing.T, kind Kind) *stage {
	t.Helper()
	s := &stage{t: t, now: 1, tenant: scheduler.NewTenant(1), kind: kind, broker: &desk{}}
	s.queue, s.replay = backpressure.NewAccount(nil, 0), backpressure.NewAccount(nil, 0)
	s.broker.epoch = "e0"
	s.pool = scheduler.NewPool(scheduler.PoolConfig{Workers: 1, Now: func() int64 { return s.now }})
	s.open()
	t.Cleanup(func() {
		s.room.Stopping()
		s.room.mb.Abandon()
		s.run()
		if s.replay.Used() != 0 || s.queue.Faults() != 0 {
			t.Errorf("after the room: replay %d, faults %d", s.replay.Used(), s.queue.Faults())
		}
	})
	return s
}

// open makes the room, anew if there was one.
func (s *stage) open() {
	policy, err := s.kind.Policy()
	if err != nil {
		s.t.Fatal(err)
	}
	s.room = New(Config{
		Env: &Env{
			Broker: s.broker, Pool: s.pool, Wheel: scheduler.NewWheel(), Tenant: s.tenant,
			Queue: s.queue, Present: s.queue, Replay: s.replay, Logger: slog.New(slog.DiscardHandler), MaxSnapshot: 1 << 20, MaxEvent: 1 << 20,
			EID:      func() string { s.eids++; return fmt.Sprint("eid", s.eids) },
			Presence: mute{}, Generation: func() uint64 { return 1 },
		},
		Topic: testTopic, Policy: policy, Kind: &s.kind, Ended: func() { s.ended++ },
	})
	s.room.mb.RegisterHandlers(&invoker{t: s.t, receive: s.room.Receive}, nil)
	s.room.Started(nil)
	s.room.mb.Start()
	s.run()
}

// run steps until nothing is ready.
func (s *stage) run() {
	s.t.Helper()
	for range 100_000 {
		if !s.pool.Step() {
			return
		}
	}
	s.t.Fatal("the room does not come to rest")
}

// recovered ends the delay of a handler that has panicked.
func (s *stage) recovered() {
	s.room.mb.Raise(&s.room.own, newHandler)
	s.run()
}

// invoker stands for protoactor.
type invoker struct {
	t       *testing.T
	receive func(*mailbox.Batch)
	fails   bool // the shell may fail
}

func (i *invoker) InvokeUserMessage(msg any) { i.receive(msg.(*mailbox.Batch)) }
func (i *invoker) InvokeSystemMessage(any)   {}
func (i *invoker) EscalateFailure(reason, msg any) {
	if !i.fails {
		i.t.Errorf("the shell failed: %v by %T", reason, msg)
	}
}

// desk is a broker of one topic, which keeps all and forgets when told to.
type desk struct {
	history
	sink    bridge.Sink
	byHand  bool     // reads wait for the test
	reads   []func() // that wait
	count   int      // reads so far
	failing bool     // reads fail
	lost    bool     // arrivals are lost

	attempted *bridge.Attempted // what attempts are answered with; nil: the test does it
	attempts  []func(bridge.Attempted)
	settled   []bridge.Settlement
}

func (d *desk) position() codec.Position { return codec.Position{Epoch: d.epoch, Offset: d.head} }

func (d *desk) Publish(_ codec.Topic, _ bridge.Retention, batch []bridge.Publication, done func([]bridge.Published)) {
	results := make([]bridge.Published, len(batch))
	var events []*codec.Event
	for i, p := range batch {
		results[i].EID = p.Event.EID
		if p.Buffered {
			d.head++
			e := p.Event.At(d.position())
			d.events = append(d.events, e)
			events = append(events, e)
			results[i].Position = e.Position
		}
	}
	done(results)
	if len(events) > 0 && !d.lost {
		d.sink.Arrived(bridge.Batch{Events: events})
	}
}

func (d *desk) Read(_ codec.Topic, req bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	d.count++
	answer := func() {
		switch {
		case d.failing:
			done(bridge.Page{}, message.Unavailable(codec.ScopeNode))
		case req.HasSince:
			done(d.read(req.Since, req.Limit), nil)
		default:
			done(d.read(codec.Position{Epoch: d.epoch, Offset: d.kept}, req.Limit), nil)
		}
	}
	if d.byHand {
		d.reads = append(d.reads, answer)
		return
	}
	answer()
}

func (d *desk) Subscribe(_ codec.Topic, s bridge.Sink) {
	d.sink = s
	s.Subscribed(d.position(), nil)
}

func (d *desk) Unsubscribe(codec.Topic, bridge.Sink) {}
func (d *desk) Attempt(_ codec.Topic, a bridge.Attempt, done func(bridge.Attempted)) {
	d.attempts = append(d.attempts, done)
	if d.attempted != nil {
		done(*d.attempted)
	}
}

func (d *desk) Settle(_ codec.Topic, s bridge.Settlement) { d.settled = append(d.settled, s) }

func (d *desk) Health() bridge.Health            { return bridge.Health{State: bridge.Up} }
func (d *desk) Watch(func(bridge.Health)) func() { return func() {} }
func (d *desk) Close()                           {}

// peer is a session as its room sees it.
type peer struct {
	s      *stage
	name   string
	mb     *mailbox.Mailbox
	out    mailbox.Outbound
	wire   wire
	member *message.Membership
	gen    uint32
	id     uint64
	ended  int // memberships that the room has ended
}

var testFraming = &codec.Framing{
	Name: "lines", Protocol: codec.Protocols()[0],
	Wrap: func(dst, doc []byte) []byte { return append(append(dst, doc...), '\n') },
}

func (s *stage) peer(name string, items int) *peer {
	p := &peer{s: s, name: name}
	p.mb = mailbox.New(&mailbox.Config{
		Pool: s.pool, Class: scheduler.Session, Tenant: s.tenant, Items: 64, Bytes: 1 << 16, Account: s.queue, Frames: s.queue,
	}, &p.out)
	p.out.Init(&mailbox.OutboundConfig{Items: items, Bytes: 1 << 20, Unacked: 4}, &p.wire, testFraming, p.mb)
	p.mb.RegisterHandlers(&invoker{t: s.t, receive: p.receive}, nil)
	p.mb.Start()
	p.out.Open(codec.NewFrame(&codec.Pong{}), nil)
	s.run()
	p.frames()
	s.t.Cleanup(p.out.End)
	return p
}

func (p *peer) receive(b *mailbox.Batch) {
	for {
		msg, ok := b.Next()
		if !ok {
			return
		}
		if r, ok := msg.(*mailbox.Raised); ok {
			if m, ok := r.Owner.(*message.Membership); ok && m == p.member {
				p.ended++
			}
		}
	}
}

// join asks for membership and returns what came, the reply first.
func (p *peer) join(since ...codec.Position) []string {
	p.post(p.joining(since...))
	p.s.run()
	return p.frames()
}

func (p *peer) joining(since ...codec.Position) *message.Join {
	p.id++
	replaces := p.member
	p.gen += 2
	p.member = &message.Membership{
		Topic: testTopic, Policy: p.s.room.cfg.Policy, Out: &p.out, Subject: p.name, Session: p.name,
		Seat: mailbox.Seat{Slot: 0, Gen: p.gen},
	}
	p.out.Reserve()
	j := &message.Join{M: p.member, ID: p.id, Replaces: replaces}
	if len(since) > 0 {
		j.Position, j.HasPosition = since[0], true
	}
	p.member.Bind(p.s.room.mb)
	return j
}

func (p *peer) post(j *message.Join) {
	p.s.room.mb.Post(backpressure.Interactive, mailbox.Item{Msg: j, Size: j.Size()})
}

func (p *peer) leave() []string {
	p.leaving()
	p.s.run()
	return p.frames()
}

// gone is the end of the session.
func (p *peer) gone() {
	p.member.Gone()
	p.out.End()
}

func (p *peer) leaving() {
	p.id++
	p.out.Reserve()
	p.out.Part(0)
	p.member.Leave(nil, p.id)
	p.member = nil
}

// publish offers an event and returns what became of it.
func (p *peer) publish(name, data string) string {
	a := p.publishing(name, data)
	p.s.run()
	return a.String()
}

func (p *peer) publishing(name, data string) *answer {
	d, err := codec.MakeData(codec.JSON, []byte(data))
	if err != nil {
		p.s.t.Fatal(err)
	}
	a := &answer{}
	policy := p.s.room.cfg.Policy.Event(name)
	m := &message.Publish{By: a, Topic: testTopic, Event: name, Policy: policy, Data: d, Subject: p.name, Session: p.name, Member: p.member}
	it := m.Item(message.NewCoalescer(), p.s.now)
	p.s.room.mb.Post(policy.Lane, it)
	return a
}

// answer is what a publisher was told.
type answer struct {
	n   int
	ok  *codec.PublishResult
	err *codec.Error
}

func (a *answer) Published(_ *scheduler.Turn, _ *message.Publish, ok *codec.PublishResult, err *codec.Error) {
	a.n++
	a.ok, a.err = ok, err
}

func (a *answer) String() string {
	switch {
	case a.n != 1:
		return fmt.Sprintf("%d answers", a.n)
	case a.err != nil:
		return a.err.Code.String()
	}
	return a.ok.Outcome.String()
}

// frames are what has been written to the peer since, shortened: "event 7",
// "typing", "joined 5", "joined 5 data", "refused internal", "left stopped".
func (p *peer) frames() (list []string) {
	for line := range strings.Lines(p.wire.got.String()) {
		var f struct {
			T, Event, Reason string
			Offset           uint64
			OK               *struct {
				Room      string
				Offset    *uint64
				Recovered bool
				Reset     string
				Data      json.RawMessage
			}
			Err  *struct{ Code string }
			Data json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			p.s.t.Fatalf("%s: %v", line, err)
		}
		var s string
		switch {
		case f.T == "event" && f.Offset > 0:
			s = fmt.Sprint("event ", f.Offset)
		case f.T == "event":
			s = f.Event
		case f.T == "reply" && f.Err != nil:
			s = "refused " + f.Err.Code
		case f.T == "reply" && f.OK.Offset != nil:
			s = fmt.Sprint("joined ", *f.OK.Offset)
			if f.OK.Recovered {
				s += " recovered"
			}
			if f.OK.Reset != "" {
				s += " reset " + f.OK.Reset
			}
			if len(f.OK.Data) > 0 {
				s += " " + string(f.OK.Data)
			}
		case f.T == "reply":
			s = "parted"
		case f.T == "reset":
			s = fmt.Sprint("reset ", f.Reason, " ", f.Offset)
			if len(f.Data) > 0 {
				s += " " + string(f.Data)
			}
		default:
			s = strings.TrimSpace(f.T + " " + f.Reason)
		}
		list = append(list, s)
	}
	p.wire.got.Reset()
	return list
}

// wire is a connection that is full for as long as the test says so.
type wire struct {
	got    strings.Builder
	full   bool
	parked []byte
	ready  func(error)
}

func (w *wire) OnReady(ready func(error)) { w.ready = ready }

func (w *wire) Write(b []byte) (bool, error) {
	if w.full {
		w.parked = append([]byte{}, b...)
		return false, nil
	}
	w.got.Write(b)
	return true, nil
}

func (w *wire) Close(codec.Cause, string) {}

// open lets through what is parked, and all that follows.
func (w *wire) open() {
	w.full = false
	if w.parked != nil {
		w.got.Write(w.parked)
		w.parked = nil
		w.ready(nil)
	}
}

func want(t *testing.T, what string, got any, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Fatalf("%s: got %s, want %s", what, g, w)
	}
}

var testEvents = map[string]EventPolicy{
	Any:      {Delivery: AtLeastOnce, Lane: backpressure.Interactive},
	"typing": {Delivery: Transient, Lane: backpressure.Lossy, Overflow: backpressure.DropOldest},
}

var plain = Kind{Name: "chat", Events: testEvents, History: History{Events: 1000, Age: time.Hour, Bytes: 1 << 20}}
