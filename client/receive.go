package client

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// receive takes one frame of a link; doc is nil for one of a type that is not
// known.
func (c *Client) receive(l *link, doc codec.Document, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return
	}
	c.received = size
	switch d := doc.(type) {
	case *codec.Event:
		c.feed(d.Topic.Room, func(f *feed) { f.event(d, size) })
	case *codec.Reset:
		c.feed(d.Room, func(f *feed) { f.reset(d, size) })
	case *codec.PresenceFrame:
		c.feed(d.Room, func(f *feed) { f.changed(d, size) })
	case *codec.PositionFrame:
		c.feed(d.Room, func(f *feed) { f.moveTo(d.Position) })
	case *codec.Left:
		c.left(d)
	case *codec.Reply:
		c.replied(l, d)
	case *codec.Ping:
		l.trySend(codec.AppendRequest(nil, c.o.Codec, &codec.Pong{}))
	case *codec.Status:
		c.status.Live = d.Live
		c.say()
	case *codec.Expiring:
		l.expiring(d.In)
	case *codec.Drain:
		if l.drainAt.IsZero() {
			l.drainAt = time.Now().Add(c.life.backoff.within(spread{d.ReconnectMin, d.ReconnectMax}))
			l.look()
		}
	case *codec.ErrorFrame:
		c.stats.Refused++
	}
}

// feed lets a room's subscription, if there is one, take a frame. mu is held.
func (c *Client) feed(room string, take func(*feed)) {
	s := c.subs[room]
	if s == nil {
		return
	}
	take(&s.feed)
	s.wake()
}

// left ends a membership, or when its room was merely stopped joins it again. mu is
// held.
func (c *Client) left(d *codec.Left) {
	s := c.subs[d.Room]
	if s == nil || s.feed.state == asked {
		return // of an older membership
	}
	if d.Reason != codec.LeftStopped {
		s.finish(&LeftError{Room: d.Room, Reason: d.Reason})
		return
	}
	s.feed.lost()
	c.later(s, 0)
}

func (c *Client) replied(l *link, d *codec.Reply) {
	request := c.out.answered(d.ID)
	if request == nil {
		return
	}
	if d.Err != nil {
		request.done(nil, d.Err)
	} else {
		request.done(d.OK, nil)
	}
	c.pump()
	if l.leaving {
		l.look()
	}
}
