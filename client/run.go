package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// run makes one connection after the other until the client is closed. It is the
// client's own goroutine, and ends after those of its connections.
func (c *Client) run() {
	defer close(c.done)
	for {
		plan := c.ended(c.connect())
		if plan.final {
			return
		}
		again := time.NewTimer(plan.wait)
		select {
		case <-again.C:
		case <-c.ctx.Done():
			again.Stop()
			return
		}
		if !c.attempt() {
			return
		}
	}
}

// attempt reports whether there is to be another one.
func (c *Client) attempt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing != nil {
		return false
	}
	c.life.attempt()
	c.status.State, c.status.Wait = Connecting, 0
	c.say()
	return true
}

// ended does what follows the end of a connection or of an attempt.
func (c *Client) ended(e ending) plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil {
		c.link = nil
		c.out.lose()
	}
	for _, s := range c.subs {
		s.feed.lost()
	}
	if c.closing != nil {
		return plan{final: true}
	}
	if errors.Is(e.err, ErrClosed) {
		c.end(e.err)
		return plan{final: true}
	}
	p := c.life.ended(time.Now(), e, c.o.Token != nil)
	if p.final {
		c.end(e.err)
		return p
	}
	c.hasToken = c.hasToken && !p.renew
	c.status.State, c.status.Live, c.status.Err, c.status.Wait = Waiting, false, e.err, p.wait
	c.say()
	return p
}

// connect makes one connection and stays with it until its end.
func (c *Client) connect() ending {
	token, err := c.credentials()
	if err != nil {
		return ending{err: fmt.Errorf("client: token: %w", err)}
	}
	l := newLink(c)
	defer l.cancel()
	if e, ok := l.dial(); !ok {
		return e
	}
	defer l.ws.CloseNow()
	welcome, size, e, ok := l.hello(token)
	if !ok {
		return e
	}
	c.welcomed(l, welcome, size)
	return l.serve()
}

// credentials are those that are kept, or new ones where those are not good.
func (c *Client) credentials() (string, error) {
	c.mu.Lock()
	token, good := c.token, c.hasToken && (c.expires.IsZero() || time.Now().Before(c.expires))
	c.mu.Unlock()
	if c.o.Token == nil || good {
		return token, nil
	}
	return c.ask(c.ctx)
}

// ask has the callback make new credentials.
func (c *Client) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	token, err := c.o.Token(ctx)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token, c.hasToken, c.expires, c.asked = token, true, time.Time{}, time.Now()
	return token, nil
}

// greeting is the hello for the next connection, with the subscriptions that it
// joins: as many as half a message holds; the others are joined after the welcome.
func (c *Client) greeting(token string) (*codec.Hello, []*Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hello := &codec.Hello{Token: token, Client: c.o.Name, Resume: c.resume}
	var subs []*Subscription
	size := 0
	for _, s := range c.subs {
		if size += joinSize + s.join.Data.Len(); size > c.maxBytes/2 {
			break
		}
		s.retryAt = time.Time{}
		hello.Rooms = append(hello.Rooms, codec.HelloRoom{Join: s.request()})
		subs = append(subs, s)
	}
	return hello, subs
}

// joinSize is what a room, its position and what is around them take at most.
const joinSize = 256

// welcomed takes the welcome, and makes l the client's connection unless the client
// was closed meanwhile.
func (c *Client) welcomed(l *link, w *codec.Welcome, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	l.alive = newLiveness(now, w.Ping, w.Pong)
	if c.closing != nil {
		return
	}
	c.life.welcomed(now)
	c.link, c.received = l, size
	c.resume, c.maxBytes = w.Resume, w.MaxMessageBytes
	l.ahead = time.UnixMilli(w.Now).Sub(now)
	c.expires = l.local(w.Exp)
	c.stats.Connections++
	if w.Resumed {
		c.stats.Resumed++
	}
	c.status = Status{State: Connected, Live: w.Live, Session: Session{
		ID: w.Session, Tenant: w.Tenant, Subject: w.Subject, Node: w.Node, Resumed: w.Resumed, Expires: c.expires,
	}}
	for i, s := range l.greeted {
		switch {
		case i >= len(w.Rooms):
			s.feed.lost() // joined below
		case c.subs[s.join.Room] != s:
			if c.subs[s.join.Room] == nil && w.Rooms[i].OK != nil {
				c.leave(s.join.Room, func(codec.Result, error) {})
			}
		case w.Rooms[i].Err != nil:
			c.joinAnswered(s, nil, w.Rooms[i].Err, size)
		default:
			c.joinAnswered(s, w.Rooms[i].OK, nil, size)
		}
	}
	l.greeted = nil
	c.say()
	c.pump()
	for _, s := range c.subs {
		c.rejoin(s)
	}
}
