package room

import (
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// feedBatch is how many events one want is answered with at most.
const feedBatch = scheduler.WriteFrames

// readLimit is how many events one read of the broker asks for at most.
const readLimit = 256

// readBytes bounds one read of the broker.
const readBytes = 1 << 20

// purpose is what a read is for.
type purpose uint8

const (
	forGap     purpose = iota // the room itself missed something
	forMembers                // somebody behind wants what the window does not have
	forOldest                 // what the members want is gone: how much of it
	forHandler                // the handler has not applied everything
)

// Bits of the read's signal.
const (
	readArrived uint32 = 1 << iota
	readAgain
)

// read is the room's one read of the broker in flight; its done raises it.
type read struct {
	signal  mailbox.Signal // bits: readArrived, readAgain
	timer   scheduler.Timer
	busy    bool
	purpose purpose
	since   codec.Position
	failed  supervision.Backoff // waits between reads that failed

	// written by the broker's goroutine before signal is raised, read after
	page bridge.Page
	err  *codec.Error
}

// feed answers a member that wants more: with a batch if the window has it, or
// after a read.
func (r *Room) feed(m *member) {
	if m.queued {
		return
	}
	if !r.feedFrom(m, nil) {
		m.queued = true
		r.waiting = append(r.waiting, m)
	}
}

// feedFrom feeds m from the window, or from a page that was read. False: neither
// has what m wants.
func (r *Room) feedFrom(m *member, page []*codec.Event) bool {
	head := r.seq.pos
	if m.pos.Epoch != head.Epoch || m.pos.Offset > head.Offset {
		return false
	}
	r.win.trim(true, r.turn.Now())
	events, ok := r.win.after(r.feedEvents[:0], m.pos.Offset, head.Offset, feedBatch)
	if !ok {
		events, ok = r.fromPage(page, m.pos.Offset)
	}
	if !ok {
		return false
	}
	if m.state == joining {
		r.accept(m, m.pos, codec.ResetNone)
		if m.state != behind {
			return true // at the head already, or left at once
		}
	}
	batch := appendBuffered(r.feedScratch[:0], r.cfg.Policy, events)
	last := m.pos.Offset + uint64(len(events))
	posted, now := m.Out.Feed(r.turn, r.mb.Flow(), m.Seat, batch, last == head.Offset)
	m.pos.Offset += uint64(posted)
	if now {
		m.become(live)
		r.behind--
	}
	r.turn.Spend(posted/8, 0)
	clear(batch)
	r.feedScratch, r.feedEvents = batch[:0], events[:0]
	return true
}

func (r *Room) fromPage(page []*codec.Event, offset uint64) ([]*codec.Event, bool) {
	if len(page) == 0 || page[0].Position.Offset > offset+1 || page[len(page)-1].Position.Offset <= offset {
		return nil, false
	}
	from := page[offset+1-page[0].Position.Offset:]
	return append(r.feedEvents[:0], from[:min(len(from), feedBatch)]...), true
}

// readNext starts the read that is needed most, if there is none in flight.
func (r *Room) readNext() {
	if r.read.busy || r.phase != open {
		return
	}
	switch {
	case r.seq.gap():
		r.readFrom(forGap, r.seq.ask())
	case len(r.waiting) > 0:
		r.readFrom(forMembers, r.wanted())
	case r.handler != nil && r.handler.lags(r.seq.pos):
		r.readFrom(forHandler, r.handler.applied)
	}
}

// wanted is where the next read for members begins. Where they want what lies far
// below the window, the window grows down to it page by page, so that what was
// read serves whoever comes later; if it cannot grow, a page serves only those
// who wait for it.
func (r *Room) wanted() codec.Position {
	lowest, low := r.lowestWanted(), r.win.low(r.seq.pos.Offset)
	if r.tight || lowest.Epoch != r.seq.pos.Epoch || lowest.Offset+readLimit >= low {
		return lowest
	}
	return codec.Position{Epoch: lowest.Epoch, Offset: low - readLimit}
}

// lowestWanted is the position from which a page serves the most: the lowest of
// those in the room's epoch, else any, since each past epoch is for itself.
func (r *Room) lowestWanted() codec.Position {
	lowest := r.waiting[0].pos
	for _, m := range r.waiting {
		same, best := m.pos.Epoch == r.seq.pos.Epoch, lowest.Epoch == r.seq.pos.Epoch
		if same && (!best || m.pos.Offset < lowest.Offset) {
			lowest = m.pos
		}
	}
	return lowest
}

func (r *Room) readFrom(p purpose, since codec.Position) {
	r.read.busy, r.read.purpose, r.read.since = true, p, since
	req := bridge.ReadRequest{Since: since, HasSince: p != forOldest, Limit: readLimit, Bytes: readBytes}
	r.cfg.Broker.Read(r.cfg.Topic, req, r.readDone)
}

// readDone is the broker's, on any goroutine.
func (r *Room) readDone(p bridge.Page, err *codec.Error) {
	r.read.page, r.read.err = p, err
	r.mb.Raise(&r.read.signal, readArrived)
}

// pageRead takes what a read brought.
func (r *Room) pageRead() {
	page, since := r.read.page, r.read.since
	r.read.page, r.read.busy = bridge.Page{}, false
	if r.read.err != nil {
		r.readFailed()
		return
	}
	r.read.failed = readBackoff()
	switch r.read.purpose {
	case forGap:
		r.fillGap(since, page)
	case forHandler:
		r.handler.pageRead(r, page)
	default:
		r.feedWaiting(page, since)
	}
}

// feedWaiting serves everybody whom a page serves.
func (r *Room) feedWaiting(page bridge.Page, since codec.Position) {
	anew := page.Head.Epoch != r.seq.pos.Epoch
	if anew || page.Head.Offset > r.seq.pos.Offset {
		// The room does not know of it yet; it reads that first.
		r.seq.atLeast(page.Head)
	}
	oldest := r.read.purpose == forOldest
	if page.Reset == codec.ResetExpired && !oldest && since.Epoch == page.Head.Epoch {
		// How much is gone is one more read, whoever many are waiting for it. It would say
		// nothing of a past epoch: who has a position of that is told by this one.
		r.readFrom(forOldest, codec.Position{})
		return
	}
	low := page.Head.Offset // all at or above it can be served
	if len(page.Events) > 0 {
		low = page.Events[0].Position.Offset - 1
	}
	if page.Reset == codec.ResetNone && page.Head.Epoch == r.seq.pos.Epoch {
		r.tight = !r.win.prepend(page.Events, r.seq.pos.Offset, r.turn.Now()) || r.tight
	}
	// Snapshots are taken on the way, and whoever finds that one does not return
	// must find everybody who waits.
	var still []*member
	for _, m := range r.waiting {
		m.queued = false
		switch {
		case m.state != joining && m.state != behind:
		case page.Reset != codec.ResetNone && m.pos == since && anew:
			m.queued = true // it goes on where the room will, not in a history that may be gone
			still = append(still, m)
		case page.Reset != codec.ResetNone && m.pos == since:
			r.lost(m, page.Reset)
		case oldest && m.pos.Epoch == page.Head.Epoch && m.pos.Offset < low:
			r.lost(m, codec.ResetExpired)
		default:
			if m.pos == since && page.Reset == codec.ResetNone && !oldest {
				m.pos.Epoch = page.Head.Epoch // it holds, whatever epoch it was of
			}
			if !r.feedFrom(m, page.Events) {
				m.queued = true
				still = append(still, m)
			}
		}
	}
	r.waiting = still
}

// lost tells a member that its position cannot be served.
func (r *Room) lost(m *member, reason codec.ResetReason) {
	if m.state == joining {
		r.accept(m, r.seq.pos, reason)
		return
	}
	if reason == codec.ResetExpired {
		reason = codec.ResetOverflow // it had it, and fell behind
	}
	r.reset(m, reason)
}

// fillGap goes on with the room's own order.
func (r *Room) fillGap(since codec.Position, page bridge.Page) {
	deliver, reset := r.seq.page(since, page)
	if reset == codec.ResetNone {
		if r.take(deliver); !r.seq.gap() {
			r.cfg.Policy.Meter.Gap(true)
		}
		return
	}
	r.cfg.Policy.Meter.Gap(false)
	r.win.clear()
	r.fanout.drop()
	if r.handler != nil {
		r.handler.begin(r)
	}
	for _, m := range r.members.list {
		if m != nil && m.state == live {
			r.reset(m, reset)
		}
	}
}

// readFailed waits before the next read. Who waits to join is not kept waiting.
func (r *Room) readFailed() {
	r.read.busy = true // until the timer
	delay, _ := r.read.failed.Next(time.Now())
	r.cfg.Wheel.Set(&r.read.timer, delay)
	waiting := r.waiting
	r.waiting = nil
	for _, m := range waiting {
		if m.state == joining {
			m.queued = false
			r.refuseJoin(m, message.Unavailable(codec.ScopeNode))
		} else {
			r.waiting = append(r.waiting, m)
		}
	}
}

func readBackoff() supervision.Backoff {
	return supervision.Backoff{Initial: 50 * time.Millisecond, Cap: 5 * time.Second, Jitter: 0.5, Window: time.Minute}
}

// take is for events that are next in the room's order, by the sequencer.
func (r *Room) take(events []*codec.Event) {
	if len(events) == 0 {
		return
	}
	r.win.add(events, r.behind > 0 || len(r.waiting) > 0, r.turn.Now())
	r.fanout.next = appendBuffered(r.fanout.next, r.cfg.Policy, events)
	if r.handler != nil {
		r.handler.apply(r, events)
	}
}
