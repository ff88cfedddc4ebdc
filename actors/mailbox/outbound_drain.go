package mailbox

import (
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/internal/telemetry"
	"github.com/yaza-dev/pulse/scheduler"
)

// Drain writes one gathered write of at most scheduler.WriteFrames frames and
// WriteBytes bytes, or one larger frame, and reports whether more is to be
// written. In a control turn it writes control frames only. It runs on the
// session's task, so that there is one drain at a time, and holds no lock while
// it writes.
func (o *Outbound) Drain(t *scheduler.Turn) (more bool) {
	o.mu.Lock()
	if o.state.has(corked | parked | ended) {
		o.state &^= scheduled
		o.mu.Unlock()
		return false
	}
	buf, frames := o.gather(t)
	size := len(buf)
	if frames == 0 {
		return o.settle(t)
	}
	woken := o.woken
	o.woken = 0
	o.mu.Unlock()

	done, err := o.write(t, buf, woken)
	t.Wrote(frames, size)

	o.mu.Lock()
	o.sent = t.Now()
	switch {
	case err != nil:
		// The connection is dead, and its receiver hears of it.
		o.end()
		o.mu.Unlock()
		return false
	case o.state.has(ended): // ready said so
		o.mu.Unlock()
		return false
	case !done && !o.state.has(readied):
		o.park(size)
		o.mu.Unlock()
		return false
	}
	o.state &^= readied
	return o.settle(t)
}

// write measures some of the writes, and how long the queue waited for this one.
func (o *Outbound) write(t *scheduler.Turn, buf []byte, since wokenAt) (done bool, err error) {
	timing := o.cfg.Timing
	if timing == nil || !t.Sample(telemetry.EveryDrain) {
		return o.conn.Write(buf)
	}
	if since != 0 {
		timing.Waited(since.wait(t.Now()))
	}
	began := t.Pool().Now()
	done, err = o.conn.Write(buf)
	timing.Wrote(time.Duration(t.Pool().Now() - began))
	return done, err
}

// gather takes frames for one write. Under mu. The result is the worker's
// buffer, or a frame itself when it goes alone.
func (o *Outbound) gather(t *scheduler.Turn) (buf []byte, frames int) {
	buf = t.Buffer[:0]
	for o.leads() {
		if t.Control || frames == scheduler.WriteFrames {
			return buf, frames
		}
		buf = append(buf, o.led().Bytes()...)
		frames++
	}
	if o.sole.waits() {
		return o.gatherSole(t, buf, frames)
	}
	if o.q == nil {
		return buf, frames
	}
	lanes := o.q.ready
	if t.Control {
		lanes &= backpressure.Ready(0).With(backpressure.Control)
	}
	for frames < scheduler.WriteFrames {
		l, ok := o.q.pick.Pick(lanes)
		if !ok {
			break
		}
		q := &o.q.lane[l]
		e := q.Front()
		if e == nil {
			o.q.ready &^= 1 << l
		}
		if e == nil || o.waits(&e.Item) {
			lanes &^= 1 << l
			continue
		}
		if frames > 0 && len(buf)+e.Size > scheduler.WriteBytes {
			break
		}
		frame, n, expired := e.Item.frame, 1+int(e.Item.more), e.Expired(t.Now())
		passes := !expired && o.passes(&e.Item)
		o.popped(e)
		q.Drop()
		if expired {
			o.cfg.Counts.Expired[l].Add(1)
		}
		if !passes {
			continue
		}
		b := frame.Bytes()
		frames += n
		if len(b) > scheduler.WriteBytes {
			return b, frames
		}
		buf = append(buf, b...)
	}
	return buf, frames
}

// gatherSole is gather when one entry waits.
func (o *Outbound) gatherSole(t *scheduler.Turn, buf []byte, frames int) ([]byte, int) {
	if o.waits(&o.sole.outEntry) || t.Control && o.lane != backpressure.Control {
		return buf, frames
	}
	e := o.sole.entry()
	frame, n, expired := e.Item.frame, 1+int(e.Item.more), e.Expired(t.Now())
	passes := !expired && o.passes(&e.Item)
	if passes && frames > 0 && len(buf)+e.Size > scheduler.WriteBytes {
		return buf, frames
	}
	o.sole = soleEntry{}
	o.popped(&e)
	if expired {
		o.cfg.Counts.Expired[o.lane].Add(1)
	}
	if !passes {
		return buf, frames
	}
	b := frame.Bytes()
	if frames == 0 {
		return b, n // as it is: shared, and only read
	}
	return append(buf, b...), frames + n
}

// waits: the membership's mark has not gone out yet. It is queued in another
// lane, before this entry was.
func (o *Outbound) waits(e *outEntry) bool {
	return e.slot != 0 && e.kind&markBit == 0 && e.gen > o.slots.at(e.slot-1).opened
}

// passes: the entry may go out. A mark opens its generation by doing so.
func (o *Outbound) passes(e *outEntry) bool {
	if e.slot == 0 {
		return true
	}
	s := o.slots.at(e.slot - 1)
	if e.kind&markBit != 0 {
		s.opened = max(s.opened, e.gen)
		return true
	}
	return e.gen == s.opened
}

// settle decides, under mu, whether there is more to do, asks for what slots
// that are behind want, and unlocks.
func (o *Outbound) settle(t *scheduler.Turn) (more bool) {
	o.giveBack()
	if o.state.has(stopping) && o.control < ControlItems/2 {
		o.state &^= stopping
		o.m.Resume()
	}
	if o.items > 0 || o.leads() {
		if t.Control || o.progress() {
			o.asks()
			return true
		}
		// Only entries that wait for a mark: its push schedules again.
	}
	if o.state.has(finishing) && o.items == 0 {
		closes := o.seldom.closes
		o.end()
		o.mu.Unlock()
		closes()
		return false
	}
	o.state &^= scheduled
	o.asks()
	return false
}

// progress: some lane's front may go out.
func (o *Outbound) progress() bool {
	if o.leads() {
		return true
	}
	if o.sole.waits() {
		return !o.waits(&o.sole.outEntry)
	}
	if o.q == nil {
		return false
	}
	for l := range backpressure.Lane(backpressure.Lanes) {
		if !o.q.ready.Has(l) {
			continue
		}
		if e := o.q.lane[l].Front(); e != nil && !o.waits(&e.Item) {
			return true
		}
	}
	return false
}

// asks raises the wants of slots that are behind and may be sent something, when
// the queue is under half, and unlocks mu.
func (o *Outbound) asks() {
	if o.behind == 0 || int(o.items) > o.cfg.Items/2 || o.bytes > o.cfg.Bytes/2 {
		o.mu.Unlock()
		return
	}
	type ask struct {
		room   *Mailbox
		signal *Signal
		want   uint32
	}
	var few [8]ask
	asks := few[:0]
	for i := range o.slots.len() {
		s := o.slots.at(uint16(i))
		if s.behind && !s.asked && !o.barred(s) {
			s.asked = true
			asks = append(asks, ask{s.room, s.signal, s.want})
		}
	}
	o.mu.Unlock()
	for _, a := range asks {
		a.room.Raise(a.signal, a.want)
	}
}

// park books what waits for a socket that is full, once, by its bytes. Where the
// ledger has no place for that it stays unbooked, since frames are shared and were
// held before; but then nothing more is taken on until the socket has place.
func (o *Outbound) park(writing int) {
	o.state |= parked
	o.state &^= scheduled
	if n := int64(o.bytes + writing); o.account().Charge(n) {
		o.held = n
	}
}

// ready is the connection's: what was parked has been written, or never will be.
// It may come before the Write that parked has returned.
func (o *Outbound) ready(err error) {
	o.mu.Lock()
	if o.state.has(ended) {
		o.mu.Unlock()
		return
	}
	if err != nil {
		o.end()
		o.mu.Unlock()
		return
	}
	o.state |= took
	if !o.state.has(parked) {
		o.state |= readied
		o.mu.Unlock()
		return
	}
	o.unhold()
	run := o.schedule()
	o.mu.Unlock()
	if run {
		o.m.cfg.Pool.Ready(&o.m.task, nil)
	}
}
