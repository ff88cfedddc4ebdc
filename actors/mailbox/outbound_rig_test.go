package mailbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// outRig is a session's outbound queue over a wire that the test fills and
// empties, and the mailbox of a room that is told what slots want.
type outRig struct {
	*rig
	out     Outbound
	wire    wire
	account *backpressure.Account
	room    *Mailbox
	wants   recorder // what the room was told
	slots   [4]Signal
}

// lines frames documents as lines of JSON.
var lines = &codec.Framing{
	Name: "lines", Protocol: codec.Protocols()[0],
	Wrap: func(dst, doc []byte) []byte { return append(append(dst, doc...), '\n') },
}

func newOutRig(t *testing.T, items, size int) *outRig {
	r := &outRig{account: backpressure.NewAccount(nil, 0)}
	r.rig = newRig(t, 64, func(c *options) { c.Sink, c.Frames = &r.out, r.account })
	r.wire.limit = 1 << 30
	cfg := &OutboundConfig{Items: items, Bytes: size, Unacked: 4}
	r.out.Init(cfg, &r.wire, lines, r.m)

	r.room = New(&Config{Pool: r.pool, Tenant: scheduler.NewTenant(1), Items: 1, Bytes: 1}, nil)
	r.wants.box = r.room
	r.room.RegisterHandlers(&r.wants, nil)
	r.room.Start()
	for i := range r.slots {
		r.slots[i].Init(i)
	}
	r.run()
	return r
}

// newOpenRig is one whose welcome has gone out.
func newOpenRig(t *testing.T, items, size int) *outRig {
	r := newOutRig(t, items, size)
	r.out.Open(codec.NewFrame(&codec.Pong{}), nil)
	r.run()
	r.wire.take()
	return r
}

// push does what a room does in its turn, and lets nothing be written before the
// next run.
func (r *outRig) push(do func(t *scheduler.Turn)) {
	o := &r.out
	was := o.state & scheduled
	o.state |= scheduled // so that do wakes nobody
	do(new(scheduler.Turn))
	o.state = o.state&^scheduled | was
}

// run writes what may be written, and comes to rest.
func (r *outRig) run() {
	r.out.mu.Lock()
	wake := (r.out.items > 0 || r.out.behind > 0) && r.out.schedule()
	r.out.mu.Unlock()
	if wake {
		r.pool.Ready(&r.m.task, nil)
	}
	r.rig.run()
}

func seat(slot int, gen uint32) Seat { return Seat{Slot: uint16(slot), Gen: gen} }

// enter makes the slot one of the room's.
func (r *outRig) enter(s Seat) { r.out.Join(s, r.room, &r.slots[s.Slot], 1) }

// opened is enter with the reply to the join gone out.
func (r *outRig) opened(s Seat) {
	r.enter(s)
	r.out.Reserve()
	r.push(func(t *scheduler.Turn) { r.out.Reply(t, backpressure.Interactive, named("join"), s, true) })
	r.run()
	r.wire.take()
}

// named is a small frame that the wire shows as its name.
func named(name string) *codec.Frame { return codec.NewFrame(&codec.Left{Room: name}) }

type eventOption func(*Delivery)

func buffered(d *Delivery) { d.Buffered = true }

func with(p backpressure.Policy) eventOption { return func(d *Delivery) { d.Policy = p } }
func keyed(key uint64) eventOption           { return func(d *Delivery) { d.Key = key } }
func until(at int64) eventOption             { return func(d *Delivery) { d.Expires = at } }
func by(session string) eventOption          { return func(d *Delivery) { d.Event.Session = session } }

func event(name string, l backpressure.Lane, options ...eventOption) Delivery {
	e := codec.NewEvent(codec.Topic{Tenant: "t", Room: "r"}, name, codec.Data{}, codec.Origin{EID: "e"})
	d := Delivery{Event: e, Lane: l}
	for _, o := range options {
		o(&d)
	}
	return d
}

// lost is what the counts say, each as often as it was counted: "bulk shed",
// "lossy drop_oldest".
func (r *outRig) lost() (list []string) {
	c := &r.out.cfg.Counts
	add := func(n uint64, what ...any) {
		for range n {
			list = append(list, fmt.Sprint(what...))
		}
	}
	for l := range backpressure.Lane(backpressure.Lanes) {
		for p := range backpressure.Policy(backpressure.Policies) {
			add(c.Dropped[l][p].Load(), l, " ", p)
		}
		add(c.Coalesced[l].Load(), l, " coalesced")
		add(c.Shed[l].Load(), l, " shed")
		add(c.Expired[l].Load(), l, " expired")
	}
	return list
}

// deliver is one Deliver to a live member.
func (r *outRig) deliver(s Seat, events ...Delivery) (posted int, full bool) {
	r.push(func(t *scheduler.Turn) { posted, full = r.out.Deliver(t, r.room.Flow(), s, Run{Events: events}, true) })
	return posted, full
}

// reply answers one request in its reserved place.
func (r *outRig) reply(l backpressure.Lane, name string, s Seat, mark bool) {
	r.push(func(t *scheduler.Turn) { r.out.Reply(t, l, named(name), s, mark) })
}

// written runs everything and returns what the wire got, by name.
func (r *outRig) written() []string {
	r.run()
	return r.wire.take()
}

// balanced checks that the ledger holds what the queue says that it holds.
func (r *outRig) balanced() {
	r.t.Helper()
	o := &r.out
	entries := int(o.charged)
	for i := range o.slots.len() {
		if w := o.slots.at(uint16(i)).acks; w != nil {
			entries += w.booked
		}
	}
	if want := int64(entries)*backpressure.EntryBytes + o.held; r.account.Used() != want {
		r.t.Fatalf("ledger %d, the queue booked %d", r.account.Used(), want)
	}
	if o.items > o.charged {
		r.t.Fatalf("%d entries, %d booked", o.items, o.charged)
	}
}

// ended ends the queue and checks that nothing is left.
func (r *outRig) ended() {
	r.t.Helper()
	r.out.End()
	if o := &r.out; o.items != 0 || o.bytes != 0 || o.control != 0 || o.owed.Load() != 0 || r.account.Used() != 0 || r.account.Faults() != 0 {
		r.t.Fatalf("after the end: %d entries, %d bytes, %d control, %d owed, ledger %d",
			o.items, o.bytes, o.control, o.owed.Load(), r.account.Used())
	}
}

// wire is a connection that takes what fits limit.
type wire struct {
	limit  int // bytes that it still takes
	parked bool
	dead   bool
	early  []error // ready is called before Write returns
	ready  func(error)
	got    strings.Builder
	writes []int // their sizes
	closed []string
}

var errDead = errors.New("dead")

func (w *wire) OnReady(ready func(error)) { w.ready = ready }

func (w *wire) Write(b []byte) (bool, error) {
	if w.dead {
		return false, errDead
	}
	if w.parked {
		panic("Write while a write is parked")
	}
	w.writes = append(w.writes, len(b))
	if len(w.early) > 0 {
		err := w.early[0]
		w.early = w.early[1:]
		if err == nil {
			w.got.Write(b)
		}
		w.ready(err)
		return false, nil
	}
	if len(b) > w.limit {
		w.parked = true
	}
	w.limit -= len(b)
	w.got.Write(b) // parked or not, it is the connection's now
	return !w.parked, nil
}

func (w *wire) Close(cause codec.Cause, _ string) { w.closed = append(w.closed, cause.String()) }

// open lets the wire take n more bytes, past what is parked.
func (w *wire) open(n int) {
	w.limit = n
	if w.parked {
		w.parked = false
		w.ready(nil)
	}
}

// take is what the connection was given since, by name.
func (w *wire) take() (names []string) {
	for line := range strings.Lines(w.got.String()) {
		var f struct{ T, Room, Event string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			panic(fmt.Sprintf("%s: %v", line, err))
		}
		switch f.T {
		case "left":
			names = append(names, f.Room)
		case "event":
			names = append(names, f.Event)
		default:
			names = append(names, f.T)
		}
	}
	w.got.Reset()
	return names
}
