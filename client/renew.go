package client

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// renew fetches new credentials, for the server has said that they end. Without
// success the old ones go on to their end, after which the server closes and the
// next connection asks again. Client.mu is held, by the reader.
func (l *link) renew() {
	if l.c.o.Token == nil || l.renewing {
		return
	}
	l.renewing = true
	l.wg.Go(func() {
		token, err := l.c.ask(l.ctx)
		l.c.mu.Lock()
		defer l.c.mu.Unlock()
		if err == nil {
			err = l.c.add(&call{
				request: &codec.Token{Token: token}, lost: isForgotten, own: true, done: l.renewed,
			})
		}
		if err != nil {
			l.renewed(nil, err)
		}
	})
}

// renewed ends a renewal with the server's answer, or for want of one. Client.mu is
// held.
func (l *link) renewed(r codec.Result, err error) {
	c := l.c
	l.renewing = false
	if ok, is := r.(*codec.TokenResult); is {
		c.resume, c.expires = ok.Resume, l.local(ok.Exp)
		c.status.Session.Expires = c.expires
	}
	if c.link == l && c.closing == nil {
		c.status.Err = err
		c.say()
	}
}

// local is an instant of the server's clock by this machine's, which need not agree
// with it; zero for none.
func (l *link) local(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).Add(-l.ahead)
}
