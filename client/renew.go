package client

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// renewPause is the least time between two askings for credentials that do not last.
const renewPause = time.Second

// renewAfter is how long to wait before the callback is asked for other credentials than
// those that it gave age ago, and that end in so long: not at all, unless they end sooner
// after it gave them. Such live shortly, or are kept by it and given again until they
// end, and are about to end as soon as they are given: half of their time has to pass.
func renewAfter(age, in time.Duration) time.Duration {
	if age >= in {
		return 0
	}
	return max(in/2, renewPause)
}

// expiring is told that the credentials end in so long. Client.mu is held, by the reader.
func (l *link) expiring(in time.Duration) {
	now := time.Now()
	l.renewAt = now.Add(renewAfter(now.Sub(l.c.asked), in))
	l.look()
}

// renew fetches new credentials, for the server has said that they end. Without
// success the old ones go on to their end, after which the server closes and the
// next connection asks again. Client.mu is held, by the client's own goroutine.
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
