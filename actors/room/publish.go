package room

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// flight is one batch of publishes on its way through the broker. Its signal is
// the slot that their completion has reserved in the room.
type flight struct {
	room      *Room
	signal    mailbox.Signal
	publishes []*message.Publish // nil: nobody waits for that one
	events    []*codec.Event
	results   []bridge.Published // written by the broker's goroutine before signal is raised
}

var (
	errMadeLarge     = codec.NewError(codec.CodeTooLarge, "made larger by the room than a message may be")
	errNotJoined     = codec.NewError(codec.CodeNotJoined, "join the room first")
	errManyPublishes = codec.Retry(codec.CodeBackpressured, codec.ScopeRoom, 100*time.Millisecond, "too many publishes under way")
)

// nobody publishes for the room itself.
type nobody struct{}

func (nobody) Published(*turn, *message.Publish, *codec.PublishResult, *codec.Error) {}

// handlePublish decides about an event.
func (r *Room) handlePublish(p *message.Publish) {
	r.used = r.turn.Now()
	p.End(message.Queued)
	switch {
	case r.unknown != nil:
		p.Refuse(r.turn, r.unknown)
		return
	case p.Member != nil && !r.mine(p.Member).published():
		p.Refuse(r.turn, errNotJoined)
		return
	case r.full():
		p.Refuse(r.turn, errManyPublishes)
		return
	}
	if r.handler != nil {
		e := Event{Name: p.Event, Data: p.Data, From: p.Subject, Session: p.Session}
		p.Begin(message.Handled)
		err := r.handler.publish(r, &e)
		p.End(message.Handled)
		if err == nil && e.Data.Len() > r.cfg.MaxEvent {
			err = errMadeLarge
		}
		if err != nil {
			p.Refuse(r.turn, err)
			return
		}
		p.Data = e.Data
	}
	r.sequence(p)
}

// full: as many publishes as the room's mailbox may hold are on their way.
func (r *Room) full() bool { return r.underway >= r.cfg.Policy.MailboxItems }

// sequence sends an event on its way: what is buffered, or must not come twice,
// through the broker first; the rest to the members at once.
func (r *Room) sequence(p *message.Publish) {
	e := codec.NewEvent(r.cfg.Topic, p.Event, p.Data, codec.Origin{
		EID: r.cfg.EID(), From: p.Subject, Session: p.Session, TS: time.Now().UnixMilli(), Secret: p.Policy.Secret,
	})
	if p.Trace != nil {
		e.Trace = p.Trace.Context()
	}
	fl := r.collecting
	if fl == nil {
		fl = &flight{room: r}
		fl.signal.InitWork(fl)
		r.collecting = fl
	}
	waits := p.Policy.Buffered() || p.DedupKey != ""
	r.batch = append(r.batch, bridge.Publication{
		Event: e, Buffered: p.Policy.Buffered(), DedupKey: p.DedupKey, Expires: p.Expires,
	})
	fl.events = append(fl.events, e)
	r.traced.add(e.EID, p.Trace)
	if waits {
		fl.publishes = append(fl.publishes, p)
		r.underway++
		return
	}
	fl.publishes = append(fl.publishes, nil)
	r.fanout.next = append(r.fanout.next, r.delivery(e, p.Policy, p.Key, p.Deadline))
	p.Accept(r.turn, &codec.PublishResult{Outcome: p.Outcome(), EID: e.EID})
}

// publish hands what a batch of the room has collected to the broker.
func (r *Room) publish() {
	fl := r.collecting
	if fl == nil {
		return
	}
	r.collecting = nil
	done := ignore
	if slices.ContainsFunc(fl.publishes, func(p *message.Publish) bool { return p != nil }) {
		done = fl.done
	}
	r.cfg.Broker.Publish(r.cfg.Topic, r.retention, r.batch, done)
	clear(r.batch)
	r.batch = r.batch[:0]
}

// ignore is for events that are on their way already, whatever the broker says.
func ignore([]bridge.Published) {}

// done is the broker's, on any goroutine.
func (fl *flight) done(results []bridge.Published) {
	fl.results = results
	if !fl.room.mb.Raise(&fl.signal, 1) {
		fl.answer(nil)
	}
}

// landed answers the publishers, and gives the members what had to wait.
func (r *Room) landed(fl *flight) {
	for i, p := range fl.publishes {
		if p == nil {
			continue
		}
		r.underway--
		if res := fl.results[i]; res.Err == nil && !res.Duplicate && !p.Policy.Buffered() {
			r.fanout.next = append(r.fanout.next, r.delivery(fl.events[i], p.Policy, p.Key, p.Deadline))
		}
	}
	fl.answer(r.turn)
}

func (fl *flight) answer(t *turn) {
	for i, p := range fl.publishes {
		if p == nil {
			continue
		}
		res := fl.results[i]
		if res.Err != nil {
			p.Refuse(t, res.Err)
			continue
		}
		p.Accept(t, &codec.PublishResult{
			Outcome: p.Outcome(), EID: res.EID, Position: res.Position, Duplicate: res.Duplicate,
		})
	}
}

func (r *Room) delivery(e *codec.Event, p *EventPolicy, key uint64, expires int64) mailbox.Delivery {
	return mailbox.Delivery{Event: e, Key: key, Expires: expires, Lane: p.Lane, Policy: p.Overflow}
}
