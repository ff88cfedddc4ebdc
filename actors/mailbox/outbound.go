package mailbox

import (
	"sync"
	"sync/atomic"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
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

	// Dropped counts a frame that a member did not get, for its policy or its
	// deadline. Optional; called under a lock, so it only counts.
	Dropped func(lane backpressure.Lane, p backpressure.Policy, o backpressure.Outcome)

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
// control frames beside. A buffered event that does not fit leaves its slot
// behind: the drain then asks the room for more whenever the queue is under half.
type Outbound struct {
	// immutable after Init
	cfg     *OutboundConfig
	conn    Writer
	framing *codec.Framing
	account *backpressure.Account
	m       *Mailbox // of the session, whose task drains
	session string   // its id, for memberships that want no echo

	// atomic
	owed atomic.Int32 // requests whose reply has not gone out

	// guarded by mu
	mu      sync.Mutex
	sole    soleEntry // what waits when it is one entry, which is the rule
	q       *outLanes // nil while no more than that waits
	first   *codec.Frame
	slots   []outSlot
	one     [1]outSlot // where slots begins: most sessions are in one room
	items   int
	bytes   int
	control int   // control frames that are no replies
	charged int   // entries that the ledger has booked, at least items
	held    int64 // bytes charged because the socket is full
	sent    int64 // when something was last written, by the pool's clock
	behind  int   // slots that wait to be fed
	state   outState
	cause   codec.Cause // with finishing
	reason  string

	withheld *withheld // nil: no membership was ever without echo
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
)

type outLanes struct {
	ready backpressure.Ready // lanes that are not empty
	pick  backpressure.Picker
	lane  [backpressure.Lanes]backpressure.Queue[outEntry]
}

// soleEntry is an entry that waits alone, without queues.
type soleEntry struct {
	backpressure.Entry[outEntry]
	lane backpressure.Lane
}

func (e *soleEntry) waits() bool { return e.Item.frame != nil }

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
)

// markBit makes an entry of any kind open its generation.
const markBit outKind = 0x80

// outSlot is one membership as the queue knows it.
type outSlot struct {
	room   *Mailbox // told when the slot wants to be fed
	signal *Signal
	want   uint32 // bits to raise
	gen    uint32 // generation that the slot is of now
	opened uint32 // generation whose mark has gone out
	behind bool
	asked  bool // want was raised and not yet answered
}

// Seat names a membership to an Outbound.
type Seat struct {
	Slot   uint16
	Gen    uint32
	NoEcho bool // events of the session itself are passed over
}

// Delivery is one event on its way to members.
type Delivery struct {
	Event    *codec.Event
	Key      uint64 // for CoalesceLatest; 0, or an odd number
	Expires  int64  // by the pool's clock; 0: never
	Lane     backpressure.Lane
	Policy   backpressure.Policy
	Buffered bool
}

// Init prepares o for the session whose mailbox is m. It holds everything back
// until Open.
func (o *Outbound) Init(cfg *OutboundConfig, conn Writer, framing *codec.Framing, account *backpressure.Account, m *Mailbox, session string) {
	o.cfg, o.conn, o.framing, o.account, o.m, o.session = cfg, conn, framing, account, m, session
	o.state = corked
	o.slots = o.one[:0]
	conn.OnReady(o.ready)
}

// Framing is how this session's frames are encoded.
func (o *Outbound) Framing() *codec.Framing { return o.framing }

// Sent is when something was last written, by the pool's clock.
func (o *Outbound) Sent() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent
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
	o.mu.Lock()
	for _, s := range seats {
		o.slots[s.Slot].opened = max(o.slots[s.Slot].opened, s.Gen)
	}
	o.first = first
	o.state &^= corked
	run := o.schedule()
	o.mu.Unlock()
	if run {
		o.m.pool.Ready(&o.m.task, nil)
	}
}

// Join makes a seat's slot belong to a room: when it is behind and there is
// place, the bits want are raised on signal in that room's mailbox.
func (o *Outbound) Join(seat Seat, room *Mailbox, signal *Signal, want uint32) {
	o.mu.Lock()
	for int(seat.Slot) >= len(o.slots) {
		o.slots = append(o.slots, outSlot{})
	}
	o.vacate(seat.Slot, outSlot{room: room, signal: signal, want: want, gen: seat.Gen})
	o.mu.Unlock()
}

// Part ends the slot's belonging to its room, which hears no more of it. A slot
// whose Join never came, since the room could not be made, has nothing to end.
func (o *Outbound) Part(slot uint16) {
	o.mu.Lock()
	if int(slot) < len(o.slots) {
		o.vacate(slot, outSlot{})
	}
	o.mu.Unlock()
}

func (o *Outbound) vacate(slot uint16, next outSlot) {
	s := &o.slots[slot]
	if s.behind {
		o.behind--
	}
	next.opened = s.opened
	*s = next
	o.withheld.told(slot)
}

// Run is consecutive events on their way to the members of a room.
type Run struct {
	Events []Delivery
	// Whole is all of them as one frame, for members who get all: only if all are
	// buffered and of one lane, and at most BundleMost. Nil: one by one.
	Whole *codec.Frame
}

// A bundle is small enough for a queue that is not nearly full.
const (
	BundleMost  = 16
	BundleBytes = 16 << 10
)

// Deliver pushes a run for a member, in order. live: buffered events too. posted
// is how many buffered ones are done with; full says that the next one did not
// fit and that the slot is behind from here on.
func (o *Outbound) Deliver(t *scheduler.Turn, flow *scheduler.Flow, seat Seat, run Run, live bool) (posted int, full bool) {
	o.mu.Lock()
	if o.state.has(finishing | ended) {
		o.mu.Unlock()
		return 0, false
	}
	if run.Whole != nil && live && !seat.NoEcho && o.offerWhole(seat, &run) {
		posted = len(run.Events)
	} else {
		posted, full = o.offerEach(seat, run.Events, live)
	}
	wake := o.items > 0 && o.schedule()
	tell := o.withheld.take()
	o.mu.Unlock()
	if wake {
		t.Wake(&o.m.task, flow)
	}
	o.tell(tell)
	return posted, full
}

// offerWhole pushes a run as one entry. False: it does not fit as one.
func (o *Outbound) offerWhole(seat Seat, run *Run) bool {
	whole := run.Whole.In(o.framing)
	size := len(whole.Bytes())
	if !o.charge(len(run.Events), size) {
		return false
	}
	o.enter(run.Events[0].Lane, backpressure.Entry[outEntry]{
		Item: outEntry{frame: whole, slot: seat.Slot + 1, gen: seat.Gen, more: uint8(len(run.Events) - 1)}, Size: size,
	})
	return true
}

func (o *Outbound) offerEach(seat Seat, events []Delivery, live bool) (posted int, full bool) {
	for i := range events {
		d := &events[i]
		if seat.NoEcho && d.Event.Session == o.session {
			if d.Buffered && live && !full {
				o.withheld.keep(o, seat, d.Event.Position)
				posted++
			}
			continue
		}
		if !d.Buffered {
			o.offer(seat, d)
			continue
		}
		if !live || full {
			continue
		}
		if full = !o.offer(seat, d); !full {
			posted++
		}
	}
	if full {
		o.setBehind(seat, true)
	}
	return posted, full
}

// Feed answers a want with the events that come next for a slot that is behind.
// head: they reach the room's newest, so that the slot is live again if all fit.
// posted is how many did.
func (o *Outbound) Feed(t *scheduler.Turn, flow *scheduler.Flow, seat Seat, events []Delivery, head bool) (posted int, live bool) {
	o.mu.Lock()
	if o.state.has(finishing | ended) {
		o.mu.Unlock()
		return 0, false
	}
	for i := range events {
		d := &events[i]
		if seat.NoEcho && d.Event.Session == o.session {
			o.withheld.keep(o, seat, d.Event.Position)
		} else if !o.offer(seat, d) {
			break
		}
		posted++
	}
	live = head && posted == len(events)
	o.setBehind(seat, !live)
	run := o.schedule()
	tell := o.withheld.take()
	o.mu.Unlock()
	if run {
		t.Wake(&o.m.task, flow)
	}
	o.tell(tell)
	return posted, live
}

// Behind declares a slot behind without offering it anything: a join that
// resumes. Its next want is raised by the next drain.
func (o *Outbound) Behind(seat Seat) {
	o.mu.Lock()
	o.setBehind(seat, true)
	o.mu.Unlock()
}

// Reply sends the answer to a request for which Reserve was called. With mark it
// opens the seat's generation as it goes out.
func (o *Outbound) Reply(t *scheduler.Turn, lane backpressure.Lane, f *codec.Frame, seat Seat, mark bool) {
	kind := reply
	if mark {
		kind |= markBit
	}
	o.pushReserved(t, lane, f, seat, kind)
}

// Mark sends a frame that ends or re-bases a membership: left, reset. It has its
// place by being one a membership at a time.
func (o *Outbound) Mark(t *scheduler.Turn, lane backpressure.Lane, f *codec.Frame, seat Seat) {
	o.pushReserved(t, lane, f, seat, plain|markBit)
}

// Control sends a frame of the control lane that answers no request. False: too
// many wait already.
func (o *Outbound) Control(f *codec.Frame) bool {
	return o.pushUnasked(f, ControlItems/2)
}

// Refuse answers a request for which Reserve had no place, after Stuffed said
// that there is one more for this.
func (o *Outbound) Refuse(f *codec.Frame) {
	o.pushUnasked(f, 2*ControlItems)
}

func (o *Outbound) pushUnasked(f *codec.Frame, limit int) bool {
	o.mu.Lock()
	if o.control >= limit || o.state.has(ended) {
		o.mu.Unlock()
		return false
	}
	o.control++
	o.push(backpressure.Control, f, Seat{}, unasked)
	run := o.schedule()
	o.mu.Unlock()
	if run {
		o.m.pool.ReadyControl(&o.m.task)
	}
	return true
}

// Finish lets out what is queued, then closes the connection.
func (o *Outbound) Finish(cause codec.Cause, reason string) {
	o.mu.Lock()
	if o.state.has(finishing | ended) {
		o.mu.Unlock()
		return
	}
	o.state = o.state&^corked | finishing
	o.cause, o.reason = cause, reason
	run := o.schedule()
	o.mu.Unlock()
	if run {
		o.m.pool.Ready(&o.m.task, nil)
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
	o.first = nil
	o.behind = 0
	for i := range o.slots {
		o.slots[i] = outSlot{}
	}
	if o.sole.waits() {
		o.popped(&o.sole.Entry)
		o.sole = soleEntry{}
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

func (o *Outbound) pushReserved(t *scheduler.Turn, lane backpressure.Lane, f *codec.Frame, seat Seat, kind outKind) {
	o.mu.Lock()
	if o.state.has(ended) {
		if kind&^markBit == reply {
			o.owed.Add(-1)
		}
		o.mu.Unlock()
		return
	}
	o.push(lane, f, seat, kind)
	if kind == plain|markBit {
		o.withheld.told(seat.Slot)
	}
	run := o.schedule()
	o.mu.Unlock()
	switch {
	case !run:
	case lane == backpressure.Control:
		o.m.pool.ReadyControl(&o.m.task)
	case t != nil:
		t.Wake(&o.m.task, nil)
	default:
		o.m.pool.Ready(&o.m.task, nil)
	}
}

// push appends past the bounds. Under mu.
func (o *Outbound) push(lane backpressure.Lane, f *codec.Frame, seat Seat, kind outKind) {
	frame := f.In(o.framing)
	size := len(frame.Bytes())
	e := backpressure.Entry[outEntry]{Item: outEntry{frame: frame, kind: kind}, Size: size}
	if kind != unasked {
		e.Item.slot, e.Item.gen = seat.Slot+1, seat.Gen
	}
	if kind == reply {
		e.Item.slot = 0
	}
	o.force(size)
	o.enter(lane, e)
}

// enter appends an entry that has been booked to its lane, or keeps it as the
// sole one. Under mu.
func (o *Outbound) enter(lane backpressure.Lane, e backpressure.Entry[outEntry]) {
	if o.items == 1+int(e.Item.more) && o.q == nil {
		o.sole = soleEntry{e, lane}
		return
	}
	q := o.queues()
	q.lane[lane].PushReserved(e)
	q.ready = q.ready.With(lane)
}

// offer pushes one event within the bounds, by its policy. Under mu.
func (o *Outbound) offer(seat Seat, d *Delivery) bool {
	if d.Buffered {
		// It tells where the membership stands; one that does not fit leaves the
		// slot behind, which is fed from there.
		o.withheld.told(seat.Slot)
	}
	frame := d.Event.In(o.framing)
	size := len(frame.Bytes())
	e := backpressure.Entry[outEntry]{
		Item: outEntry{frame: frame, slot: seat.Slot + 1, gen: seat.Gen},
		Size: size, Expires: d.Expires,
	}
	if d.Key != 0 {
		// Of another room, or to a later membership, it is another event.
		e.Key = d.Key ^ uint64(seat.Slot)<<1 ^ uint64(seat.Gen)<<17
	}
	if d.Policy == backpressure.DropOldest {
		e.Item.kind = passing
	}
	// An empty queue takes one whatever the ledger says, so that a member who
	// drains always gets on.
	for o.items > 0 && !o.charge(1, size) {
		o.dropped(d.Lane, d.Policy, backpressure.Backpressured)
		// Replies, buffered events and whatever else was promised its place share
		// the lane, and stay.
		if d.Policy != backpressure.DropOldest {
			return false
		}
		lane := &o.queues().lane[d.Lane]
		old := lane.Front()
		if old == nil || old.Item.kind != passing {
			return false
		}
		o.popped(old)
		lane.Drop()
	}
	if o.items == 0 {
		o.force(size)
	}
	if d.Policy != backpressure.CoalesceLatest || o.items == 1 && o.q == nil {
		o.enter(d.Lane, e) // the bounds are those of all lanes together, just seen to
		return true
	}
	q := o.queues()
	lane := &q.lane[d.Lane]
	var room [1]backpressure.Entry[outEntry]
	outcome, removed := lane.Push(e, d.Policy, room[:0])
	for i := range removed {
		o.popped(&removed[i])
		o.dropped(d.Lane, d.Policy, outcome)
	}
	if !outcome.Took() {
		o.popped(&e)
		o.dropped(d.Lane, d.Policy, outcome)
		return false
	}
	q.ready = q.ready.With(d.Lane)
	return true
}

// chunk is how many entries are booked at once, and base how many stay booked
// while the queue is empty, so that a member who keeps up costs the ledger, which
// all sessions share, nothing per frame.
const (
	chunk = 16
	base  = 4
)

// charge books n more frames of size bytes in all, if the session's and the
// ledger's bounds allow.
func (o *Outbound) charge(n, size int) bool {
	if o.items+n > o.cfg.Items || o.bytes+size > o.cfg.Bytes {
		return false
	}
	if o.items+n > o.charged {
		if !o.account.Charge(chunk * backpressure.EntryBytes) {
			return false
		}
		o.charged += chunk
	}
	if o.state.has(parked) {
		if !o.account.Charge(int64(size)) {
			return false
		}
		o.held += int64(size)
	}
	o.items += n
	o.bytes += size
	return true
}

// force books one more frame whatever the bounds say: its place was promised.
func (o *Outbound) force(size int) {
	if o.items == o.charged {
		n := chunk
		if o.charged == 0 {
			n = base
		}
		o.account.Force(int64(n) * backpressure.EntryBytes)
		o.charged += n
	}
	if o.state.has(parked) {
		o.account.Force(int64(size))
		o.held += int64(size)
	}
	o.items++
	o.bytes += size
}

// popped books an entry that has left the queue, whichever way. Its bytes were
// charged only if the socket is full: frames are shared, and those who drain
// hold them for a moment.
func (o *Outbound) popped(e *backpressure.Entry[outEntry]) {
	o.items -= 1 + int(e.Item.more)
	o.bytes -= e.Size
	if o.state.has(parked) {
		o.account.Release(int64(e.Size))
		o.held -= int64(e.Size)
	}
	switch e.Item.kind &^ markBit {
	case reply:
		o.owed.Add(-1)
	case unasked:
		o.control--
	}
}

// discharge gives the ledger back all but keep entries.
func (o *Outbound) discharge(keep int) {
	if o.charged > keep {
		o.account.Release(int64(o.charged-keep) * backpressure.EntryBytes)
		o.charged = keep
	}
}

func (o *Outbound) dropped(l backpressure.Lane, p backpressure.Policy, out backpressure.Outcome) {
	if o.cfg.Dropped != nil {
		o.cfg.Dropped(l, p, out)
	}
}

func (o *Outbound) setBehind(seat Seat, behind bool) {
	s := &o.slots[seat.Slot]
	if s.gen != seat.Gen || s.room == nil {
		return // of an earlier membership
	}
	s.asked = false
	if s.behind == behind {
		return
	}
	s.behind = behind
	if behind {
		o.behind++
	} else {
		o.behind--
	}
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
	lane := o.sole.lane
	if o.sole.Key != 0 { // later ones must find it
		o.q.lane[lane].Push(o.sole.Entry, backpressure.CoalesceLatest, nil)
	} else {
		o.q.lane[lane].PushReserved(o.sole.Entry)
	}
	o.q.ready = o.q.ready.With(lane)
	o.sole = soleEntry{}
}

func (o *Outbound) giveBack() {
	if o.q != nil && o.items == 0 {
		o.q.ready, o.q.pick = 0, backpressure.Picker{}
		o.cfg.queues.Put(o.q)
		o.q = nil
		o.discharge(base)
	}
}

func (o *Outbound) unhold() {
	if o.held > 0 {
		o.account.Release(o.held)
		o.held = 0
	}
	o.state &^= parked
}

func (s outState) has(any outState) bool { return s&any != 0 }
