package mailbox

import (
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// Delivery is one event on its way to members.
type Delivery struct {
	Event    *codec.Event
	Key      uint64 // for CoalesceLatest; 0, or an odd number
	Expires  int64  // by the pool's clock; 0: never
	Lane     backpressure.Lane
	Policy   backpressure.Policy
	Buffered bool
	// Acks: the kind of the room has require_ack events, and this, a buffered one,
	// moves what the member may acknowledge.
	Acks bool
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
	whole := run.Whole != nil && live && !seat.NoEcho
	if whole {
		run.Whole.In(o.framing)
	} else {
		o.encode(run.Events, live)
	}
	o.mu.Lock()
	if o.state.has(finishing | ended) {
		o.mu.Unlock()
		return 0, false
	}
	if whole && o.offerWhole(seat, &run) {
		posted = len(run.Events)
	} else {
		posted, full = o.offerEach(seat, run.Events, live)
	}
	wake := o.items > 0 && o.schedule()
	if wake {
		o.woken = woken(t.Now(), run.Events[0].Lane)
	}
	tell := o.withheld().take()
	o.mu.Unlock()
	if wake {
		t.Wake(&o.m.task, flow)
	}
	o.tell(tell)
	return posted, full
}

// encode makes the bytes of what is about to be offered. Nothing is encoded under
// mu: it takes time, and a panic in it must leave the queue as it is.
func (o *Outbound) encode(events []Delivery, live bool) {
	for i := range events {
		if live || !events[i].Buffered {
			events[i].Event.In(o.framing)
		}
	}
}

// offerWhole pushes a run as one entry. False: it does not fit as one.
func (o *Outbound) offerWhole(seat Seat, run *Run) bool {
	whole := run.Whole.In(o.framing)
	size := len(whole.Bytes())
	acks := run.Events[0].Acks
	if acks && !o.allows(seat, unacked(run.Events)) || !o.charge(len(run.Events), size) {
		return false
	}
	if acks {
		o.await(seat, run.Events)
	}
	o.enter(run.Events[0].Lane, backpressure.Entry[outEntry]{
		Item: outEntry{frame: whole, slot: seat.Slot + 1, gen: seat.Gen, more: uint8(len(run.Events) - 1)}, Size: size,
	})
	return true
}

func (o *Outbound) offerEach(seat Seat, events []Delivery, live bool) (posted int, full bool) {
	for i := range events {
		d := &events[i]
		if seat.NoEcho && o.withheld().own(d.Event) {
			if d.Buffered && live && !full {
				o.keepBack(seat, d)
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
		if full = !o.offerBuffered(seat, events[i:i+1], true); !full {
			posted++
		}
	}
	if full {
		o.setBehind(seat, true)
	}
	return posted, full
}

// offerBuffered pushes a buffered event, if window and queue have place for it.
// live: the slot is left behind if not, which counts.
func (o *Outbound) offerBuffered(seat Seat, one []Delivery, live bool) bool {
	d, refused := &one[0], &o.cfg.Counts.Behind
	ok := !d.Acks || o.allows(seat, unacked(one))
	if !ok {
		refused = &o.cfg.Counts.Unacked
	}
	if ok = ok && o.offer(seat, d); ok && d.Acks {
		o.await(seat, one)
	}
	if !ok && live {
		refused.Add(1)
	}
	return ok
}

// keepBack passes over a buffered event of the session's own.
func (o *Outbound) keepBack(seat Seat, d *Delivery) {
	o.withheld().keep(o, seat, d.Event.Position)
	if s := o.seated(seat); s != nil && s.acks != nil {
		s.acks.last = d.Event.Position
	}
}

// Feed answers a want with the events that come next for a slot that is behind.
// head: they reach the room's newest, so that the slot is live again if all fit.
// posted is how many did.
func (o *Outbound) Feed(t *scheduler.Turn, flow *scheduler.Flow, seat Seat, events []Delivery, head bool) (posted int, live bool) {
	o.encode(events, true)
	o.mu.Lock()
	if o.state.has(finishing | ended) {
		o.mu.Unlock()
		return 0, false
	}
	for i := range events {
		d := &events[i]
		if seat.NoEcho && o.withheld().own(d.Event) {
			o.keepBack(seat, d)
		} else if !o.offerBuffered(seat, events[i:i+1], false) {
			break
		}
		posted++
	}
	o.cfg.Counts.Fed.Add(uint64(posted))
	live = head && posted == len(events)
	o.setBehind(seat, !live)
	run := o.schedule()
	tell := o.withheld().take()
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
// place by being one a membership at a time. What was sent before it needs no
// acknowledgement any more.
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
	frame := f.In(o.framing)
	o.mu.Lock()
	if int(o.control) >= limit || o.state.has(ended) {
		o.mu.Unlock()
		return false
	}
	o.control++
	o.push(backpressure.Control, frame, Seat{}, unasked)
	run := o.schedule()
	o.mu.Unlock()
	if run {
		o.m.cfg.Pool.ReadyControl(&o.m.task)
	}
	return true
}

func (o *Outbound) pushReserved(t *scheduler.Turn, lane backpressure.Lane, f *codec.Frame, seat Seat, kind outKind) {
	frame := f.In(o.framing)
	o.mu.Lock()
	if o.state.has(ended) {
		if kind&^markBit == reply {
			o.owed.Add(-1)
		}
		o.mu.Unlock()
		return
	}
	o.push(lane, frame, seat, kind)
	if kind == plain|markBit {
		o.withheld().told(seat.Slot)
		if s := o.seated(seat); s != nil {
			o.absolve(s)
		}
	}
	run := o.schedule()
	o.mu.Unlock()
	switch {
	case !run:
	case lane == backpressure.Control:
		o.m.cfg.Pool.ReadyControl(&o.m.task)
	case t != nil:
		t.Wake(&o.m.task, nil)
	default:
		o.m.cfg.Pool.Ready(&o.m.task, nil)
	}
}

// push appends past the bounds. Under mu.
func (o *Outbound) push(lane backpressure.Lane, frame *codec.Encoded, seat Seat, kind outKind) {
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
	if o.items == 1+int32(e.Item.more) && o.q == nil {
		o.sole, o.lane = soleEntry{e.Item, e.Key, e.Expires}, lane
		return
	}
	o.queues().append(lane, e)
}

// offer pushes one event within the bounds, by its policy. Under mu.
func (o *Outbound) offer(seat Seat, d *Delivery) bool {
	if d.Buffered {
		// It tells where the membership stands; one that does not fit leaves the
		// slot behind, which is fed from there.
		o.withheld().told(seat.Slot)
	}
	frame := d.Event.In(o.framing)
	size := len(frame.Bytes())
	e := backpressure.Entry[outEntry]{
		Item: outEntry{frame: frame, slot: seat.Slot + 1, gen: seat.Gen},
		Size: size, Expires: d.Expires,
	}
	switch {
	case d.Policy == backpressure.DropOldest:
		e.Item.kind = passing
	case !d.Buffered && d.Lane >= backpressure.Bulk:
		e.Item.kind = spare
	}
	if d.Policy == backpressure.CoalesceLatest && d.Key != 0 {
		// Of another room, or to a later membership, it is another event.
		e.Key = d.Key ^ uint64(seat.Slot)<<1 ^ uint64(seat.Gen)<<17
		if replaced, found := o.replace(d.Lane, e); replaced {
			o.cfg.Counts.Coalesced[d.Lane].Add(1)
			return true
		} else if found {
			o.cfg.Counts.Dropped[d.Lane][d.Policy].Add(1)
			return false
		}
	}
	// An empty queue takes one whatever the ledger says, so that a member who
	// drains always gets on.
	for (o.items > 0 || o.state.has(parked)) && !o.charge(1, size) {
		if !o.giveWay(d) {
			if !d.Buffered {
				o.cfg.Counts.Dropped[d.Lane][d.Policy].Add(1)
			}
			return false
		}
	}
	if o.items == 0 {
		o.force(size)
	}
	o.enter(d.Lane, e) // the bounds are those of all lanes together, just seen to
	return true
}

// giveWay takes one waiting event out in favour of d: what is kept nowhere, for an
// event that is kept or that somebody waits for, else what d's own policy lets go.
// Only the front of a lane is looked at: replies, buffered events and whatever else
// was promised its place may share it, and stay. False: there is none.
func (o *Outbound) giveWay(d *Delivery) bool {
	if o.items == 0 {
		return false
	}
	if d.Buffered || d.Lane == backpressure.Interactive {
		for l := backpressure.Lossy; l >= backpressure.Bulk; l-- {
			if o.takeOut(l, passing) || o.takeOut(l, spare) {
				o.cfg.Counts.Shed[l].Add(1)
				return true
			}
		}
	}
	if d.Policy == backpressure.DropOldest && o.takeOut(d.Lane, passing) {
		o.cfg.Counts.Dropped[d.Lane][d.Policy].Add(1)
		return true
	}
	return false
}

// takeOut drops the front of a lane if it is of that kind.
func (o *Outbound) takeOut(l backpressure.Lane, kind outKind) bool {
	lane := &o.queues().lane[l]
	front := lane.Front()
	if front == nil || front.Item.kind != kind {
		return false
	}
	o.popped(front)
	lane.Drop()
	return true
}

// replace puts an event in the place of the one with its key that still waits, be
// the queue full or not. found and not replaced: the newer does not fit there, and
// the older stays.
func (o *Outbound) replace(lane backpressure.Lane, e backpressure.Entry[outEntry]) (replaced, found bool) {
	if o.items == 0 {
		return false, false
	}
	old, found, replaced := o.queues().lane[lane].Replace(e, o.cfg.Bytes-o.bytes)
	if replaced {
		o.popped(&old)
		o.force(e.Size)
	}
	return replaced, found
}

func (o *Outbound) setBehind(seat Seat, behind bool) {
	s := o.slots.at(seat.Slot)
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
