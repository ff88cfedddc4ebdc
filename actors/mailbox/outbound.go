package mailbox

import (
	"sync"
	"sync/atomic"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// MaxOwed is how many requests of one session may wait for their replies. Each
// has its reply's place reserved, past the bounds of the queue.
const MaxOwed = 64

// Writer is what an Outbound needs of a connection. Its rules are those of
// transport.Conn.
type Writer interface {
	Write(b []byte) (done bool, err error)
	OnReady(ready func(err error))
	Close(cause codec.Cause, reason string)
}

// OutboundConfig is shared by all sessions of an engine.
type OutboundConfig struct {
	Items int // frames that may wait for one session, replies apart
	Bytes int // their bytes

	// Unacked is how many require_ack events a membership is sent beyond what it
	// has acknowledged.
	Unacked int

	Counts OutboundCounts // of all of them
	Timing WriteTiming    // nil: nothing is measured

	queues sync.Pool // of *outLanes, so that an idle session holds none
}

// Outbound is a session's second queue: frames that wait for its socket. Rooms
// push, the session's drain pops and writes. No push ever waits.
//
// Order: the frames of a lane go out in the order of their pushes; across lanes
// by weight. What belongs to a membership carries its slot and generation. A
// mark (the reply to a join or a leave, a left) opens its generation when it
// goes out; entries of a later generation wait for their mark, those of an
// earlier one are dropped. So nothing of a room overtakes the join's reply or
// follows its end, whatever lane it is in.
//
// Bounds: Items and Bytes over all lanes, MaxOwed replies and ControlItems other
// control frames beside. What does not fit goes down a ladder: events that are
// kept nowhere give way, the lossy lane's first, then the bulk lane's; a buffered
// event that does not fit even so leaves its slot behind, and the drain asks the
// room for more whenever the queue is under half. A slot whose window of
// unacknowledged events is full is left behind likewise, and asks when it
// acknowledges.
type Outbound struct {
	// immutable after Init
	cfg     *OutboundConfig
	conn    Writer
	framing *codec.Framing
	m       *Mailbox // of the session, whose task drains

	// atomic
	owed atomic.Int32 // requests whose reply has not gone out

	// guarded by mu
	mu      sync.Mutex
	control int32     // control frames that are no replies
	sole    soleEntry // what waits when it is one entry, which is the rule
	q       *outLanes // nil while no more than that waits
	slots   outSlots
	items   int32
	charged int32 // entries that the ledger has booked, at least items
	bytes   int
	held    int64   // bytes charged because the socket is full
	sent    int64   // when something was last written, first when o was made, by the pool's clock
	woken   wokenAt // by a delivery; 0: otherwise
	behind  int16   // slots that wait to be fed
	state   outState
	lane    backpressure.Lane // of the sole entry
	seldom  *seldom           // nil: nothing of it is needed
}

// seldom is what most sessions need for a moment, if ever. Guarded by the Outbound's mu.
type seldom struct {
	first    *leading  // what goes out before all that waits
	withheld *withheld // nil: no membership was ever without echo
	closes   func()    // with finishing: the close that is to follow
}

// rarely is o.seldom, made if need be.
func (o *Outbound) rarely() *seldom {
	if o.seldom == nil {
		o.seldom = new(seldom)
	}
	return o.seldom
}

type outState uint8

const (
	corked    outState = 1 << iota // until the welcome
	parked                         // the socket is full
	scheduled                      // a drain will come
	stopping                       // the session's lanes are paused: Stuffed
	finishing                      // close when empty; pushes are refused
	readied                        // the socket had place again before Write had returned
	ended                          // nothing more goes out
	took                           // what was parked has gone out, and nobody was told yet
)

type outLanes struct {
	ready backpressure.Ready // lanes that are not empty
	pick  backpressure.Picker
	lane  [backpressure.Lanes]backpressure.Queue[outEntry]
}

// soleEntry is an entry that waits alone, without queues.
type soleEntry struct {
	outEntry
	key     uint64
	expires int64
}

func (e *soleEntry) waits() bool { return e.frame != nil }

// entry is what it is in a queue.
func (e *soleEntry) entry() backpressure.Entry[outEntry] {
	return backpressure.Entry[outEntry]{Item: e.outEntry, Size: len(e.frame.Bytes()), Key: e.key, Expires: e.expires}
}

type outEntry struct {
	frame *codec.Encoded
	gen   uint32
	slot  uint16 // membership slot + 1; 0: of no membership
	kind  outKind
	more  uint8 // frames in it beyond the first: a bundle
}

type outKind uint8

const (
	plain   outKind = iota
	unasked         // a control frame that answers nothing reserved
	reply           // gives its reservation back when it goes out
	passing         // an event that later ones may push out: drop_oldest
	spare           // another event of the bulk or lossy lane that is kept nowhere
)

// markBit makes an entry of any kind open its generation.
const markBit outKind = 0x80

// Seat names a membership to an Outbound.
type Seat struct {
	Slot   uint16
	Gen    uint32
	NoEcho bool // events of the session itself are passed over
}

// Init prepares o for the session whose mailbox is m. It holds everything back
// until Open.
func (o *Outbound) Init(cfg *OutboundConfig, conn Writer, framing *codec.Framing, m *Mailbox) {
	o.cfg, o.conn, o.framing, o.m = cfg, conn, framing, m
	o.state, o.sent = corked, m.cfg.Pool.Now()
	conn.OnReady(o.ready)
}

// Mailbox of the session.
func (o *Outbound) Mailbox() *Mailbox { return o.m }

// Conn is what o writes to.
func (o *Outbound) Conn() Writer { return o.conn }

// Framing is how this session's frames are encoded.
func (o *Outbound) Framing() *codec.Framing { return o.framing }

// Sent is when something was last written, or when o was made, by the pool's
// clock.
func (o *Outbound) Sent() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent
}

// Took reports whether the peer has taken, since it was last asked, what was parked.
// Such a peer lives, however late its pongs are behind all that it has not read yet.
func (o *Outbound) Took() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	yes := o.state.has(took)
	o.state &^= took
	return yes
}

// Waiting is how many bytes wait for the socket, without what it has taken.
func (o *Outbound) Waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// Reserve books the place of one reply; false: too many are owed already.
func (o *Outbound) Reserve() bool {
	if o.owed.Add(1) > MaxOwed {
		o.owed.Add(-1)
		return false
	}
	return true
}

// Stuffed reports that no request can be taken on, not even to be refused. The
// session's lanes are paused then, until enough has gone out.
func (o *Outbound) Stuffed() bool {
	if o.owed.Load() < MaxOwed {
		return false
	}
	o.mu.Lock()
	stuffed := o.control >= ControlItems && !o.state.has(ended)
	if stuffed {
		o.state |= stopping
		o.m.Pause()
	}
	o.mu.Unlock()
	return stuffed
}

// Open sends the first frame and lets the rest follow. The given seats count as
// opened by it.
func (o *Outbound) Open(first *codec.Frame, seats []Seat) {
	made := first.In(o.framing)
	o.mu.Lock()
	for _, s := range seats {
		slot := o.slots.at(s.Slot)
		slot.opened = max(slot.opened, s.Gen)
	}
	rare := o.rarely()
	rare.first = &leading{frame: made, next: rare.first}
	o.state &^= corked
	run := o.schedule()
	o.mu.Unlock()
	if run {
		o.m.cfg.Pool.Ready(&o.m.task, nil)
	}
}

// Join makes a seat's slot belong to a room: when it is behind and there is
// place, the bits want are raised on signal in that room's mailbox.
func (o *Outbound) Join(seat Seat, room *Mailbox, signal *Signal, want uint32) {
	o.mu.Lock()
	o.slots.reach(seat.Slot)
	o.vacate(seat.Slot, outSlot{room: room, signal: signal, want: want, gen: seat.Gen})
	o.mu.Unlock()
}

// Part ends the slot's belonging to its room, which hears no more of it. A slot
// whose Join never came, since the room could not be made, has nothing to end.
func (o *Outbound) Part(slot uint16) {
	o.mu.Lock()
	if int(slot) < o.slots.len() {
		o.vacate(slot, outSlot{})
	}
	o.mu.Unlock()
}

func (o *Outbound) vacate(slot uint16, next outSlot) {
	s := o.slots.at(slot)
	if s.behind {
		o.behind--
	}
	o.absolve(s)
	next.opened = s.opened
	*s = next
	o.withheld().told(slot)
}

// Finish lets out what is queued, then closes the connection.
func (o *Outbound) Finish(cause codec.Cause, reason string) {
	o.mu.Lock()
	if o.state.has(finishing | ended) {
		o.mu.Unlock()
		return
	}
	o.state = o.state&^corked | finishing
	o.rarely().closes = func() { o.conn.Close(cause, reason) }
	run := o.schedule()
	o.mu.Unlock()
	if run {
		o.m.cfg.Pool.Ready(&o.m.task, nil)
	}
}

// End drops what is queued and gives everything back; pushes go nowhere from
// then on. The connection is for the caller to close.
func (o *Outbound) End() {
	o.mu.Lock()
	o.end()
	o.mu.Unlock()
}

// end is End, under mu.
func (o *Outbound) end() {
	if o.state.has(stopping) {
		o.state &^= stopping
		o.m.Resume() // requests wait, and the reader for them
	}
	o.state = o.state&^scheduled | ended
	for o.leads() {
		o.led()
	}
	o.behind = 0
	for i := range o.slots.len() {
		s := o.slots.at(uint16(i))
		o.absolve(s)
		*s = outSlot{}
	}
	if o.sole.waits() {
		e := o.sole.entry()
		o.sole = soleEntry{}
		o.popped(&e)
	}
	if o.q != nil {
		for l := range o.q.lane {
			for o.q.lane[l].Len() > 0 {
				o.popped(o.q.lane[l].Front())
				o.q.lane[l].Drop()
			}
		}
		o.giveBack()
	}
	o.unhold()
	o.discharge(0)
}

// schedule reports whether the caller has to wake the session's task.
func (o *Outbound) schedule() bool {
	if o.state.has(corked | parked | scheduled | ended) {
		return false
	}
	o.state |= scheduled
	return true
}

// queues are the lanes, borrowed for as long as more than one entry waits.
func (o *Outbound) queues() *outLanes {
	if o.q == nil {
		defer o.join()
		if q, ok := o.cfg.queues.Get().(*outLanes); ok {
			o.q = q
		} else {
			o.q = new(outLanes)
			for l := range o.q.lane {
				o.q.lane[l] = backpressure.NewQueue[outEntry](o.cfg.Items, o.cfg.Bytes)
			}
		}
	}
	return o.q
}

// join puts the entry that waited alone into its lane.
func (o *Outbound) join() {
	if !o.sole.waits() {
		return
	}
	o.q.append(o.lane, o.sole.entry())
	o.sole = soleEntry{}
}

// append puts an entry that has been booked into its lane.
func (q *outLanes) append(lane backpressure.Lane, e backpressure.Entry[outEntry]) {
	q.lane[lane].PushReserved(e)
	q.ready = q.ready.With(lane)
}

func (o *Outbound) giveBack() {
	if o.q != nil && o.items == 0 {
		o.q.ready, o.q.pick = 0, backpressure.Picker{}
		o.cfg.queues.Put(o.q)
		o.q = nil
		o.discharge(base)
	}
}

func (s outState) has(any outState) bool { return s&any != 0 }
