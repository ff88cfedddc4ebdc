package message

import (
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// retrySoon is the hint that goes with refusals for want of place: queues empty
// within a few turns, so that waiting longer gains nothing.
const retrySoon = 100 * time.Millisecond

// Publisher is told what became of its event, exactly once, by a room's actor
// or by whoever removed the message from a queue. It must not block.
type Publisher interface {
	Published(t *scheduler.Turn, p *Publish, ok *codec.PublishResult, err *codec.Error)
}

// Publish offers an event to a room.
type Publish struct {
	By      Publisher
	ID      uint64 // of the client's request; 0: none
	Topic   codec.Topic
	Event   string
	Kind    *Policy // of the room; nil: nothing is counted
	Policy  *EventPolicy
	Data    codec.Data
	Subject string // both empty: the embedder
	Session string
	// Member must be in the room for the event to be taken. Nil: nobody must.
	Member   *Membership
	DedupKey string
	Expires  time.Time // zero: never
	Trace    Trace     // nil: the event is not followed

	// set by Item
	Key      uint64 // coalescing key
	Deadline int64  // Expires by the pool's clock

	replaced bool
}

// Replaces is told that the event took the place of an older one of its key.
func (p *Publish) Replaces() { p.replaced = true }

// Outcome of the event once it is accepted.
func (p *Publish) Outcome() codec.Outcome {
	if p.replaced {
		return codec.Coalesced
	}
	return codec.Accepted
}

// Begin and End are those of its Trace.
func (p *Publish) Begin(s Stage) {
	if p.Trace != nil {
		p.Trace.Begin(s)
	}
}

func (p *Publish) End(s Stage) {
	if p.Trace != nil {
		p.Trace.End(s)
	}
}

// Size is what the message counts in a queue.
func (p *Publish) Size() int {
	return 128 + len(p.Topic.Room) + len(p.Event) + len(p.DedupKey) + p.Data.Len()
}

// Item makes the message ready for a room's mailbox. now is the pool's clock.
func (p *Publish) Item(c *Coalescer, now int64) mailbox.Item {
	p.Key = c.Key(p.Policy, p.Event, p.Subject, p.Session, p.Data)
	if !p.Expires.IsZero() {
		// Saturated at about 146 years, so that the sum stays positive.
		p.Deadline = now + min(int64(time.Until(p.Expires)), 1<<62)
	}
	p.Begin(Queued)
	return mailbox.Item{Msg: p, Size: p.Size(), Key: p.Key, Expires: p.Deadline, Policy: p.Policy.Overflow}
}

// Accept tells the publisher that its event was published, and Refuse that it was
// not.
func (p *Publish) Accept(t *scheduler.Turn, ok *codec.PublishResult) { p.answer(t, ok, nil) }
func (p *Publish) Refuse(t *scheduler.Turn, err *codec.Error)        { p.answer(t, nil, err) }

func (p *Publish) answer(t *scheduler.Turn, ok *codec.PublishResult, err *codec.Error) {
	p.note(ok, err)
	p.By.Published(t, p, ok, err)
}

// Refused notes that no room has taken the event. Its publisher is told by who calls.
func (p *Publish) Refused(err *codec.Error) { p.note(nil, err) }

func (p *Publish) note(ok *codec.PublishResult, err *codec.Error) {
	if p.Kind != nil {
		p.Kind.Meter.Published(ok, err)
	}
	if p.Trace != nil {
		p.Trace.Published(ok, err)
	}
}

// Client is a session as a publisher: it is answered in its outbound queue.
type Client struct{ Out *mailbox.Outbound }

// Published sends the reply, or the error of a publish that asked for none.
func (c Client) Published(t *scheduler.Turn, p *Publish, ok *codec.PublishResult, err *codec.Error) {
	if p.ID == 0 {
		if err != nil {
			c.Out.Control(codec.NewFrame(&codec.ErrorFrame{Err: err, Re: "publish", Room: p.Topic.Room}))
		}
		return
	}
	reply := &codec.Reply{ID: p.ID, Err: err}
	if err == nil {
		reply.OK = ok
	}
	c.Out.Reply(t, backpressure.Control, codec.NewFrame(reply), mailbox.Seat{}, false)
}
