package client

import (
	"cmp"
	"slices"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// whenLost says what becomes of a request whose connection is lost before its
// reply has come.
type whenLost uint8

const (
	isUnknown whenLost = iota // it may have been done: its caller is told so
	isRepeated
	isForgotten // the next hello says it again, or makes it pointless
)

// call is a request on its way.
type call struct {
	request codec.Request
	id      uint64
	size    int       // bytes it is counted with while it waits
	lost    whenLost  // what if
	sent    time.Time // first; zero: never
	until   time.Time // of a ttl or a deadline; zero: none
	own     bool      // the client's own, of which there are few: not bounded
	publish bool
	quit    bool // its caller has gone; only its reply is awaited
	// done is called once, with Client.mu held.
	done func(codec.Result, error)
}

// window is how many requests are in flight at most. The server answers 64 of a
// session at a time.
const window = 48

// repeatFor is for how long after it was first sent a request is repeated. Servers
// remember a dedup key for longer; beyond, a repeat might be done a second time.
const repeatFor = time.Minute

// outbox holds the requests that wait and those in flight, in order of their
// making. It is pure and bounded, in flight by window, waiting by bound.
type outbox struct {
	bound      Bound
	dropOldest bool

	waiting  []*call
	bytes    int              // of waiting, own calls aside
	count    int              // of waiting, own calls aside
	inflight map[uint64]*call // by id
	nextID   uint64
}

// add takes a call in. With a full queue it is refused, or in the policy
// drop-oldest puts out the publish that has waited longest.
func (o *outbox) add(c *call) error {
	for !c.own && !o.fits(c) {
		oldest := slices.IndexFunc(o.waiting, func(w *call) bool { return w.publish })
		if !o.dropOldest || !c.publish || oldest < 0 {
			return ErrFull
		}
		dropped := o.waiting[oldest]
		o.remove(oldest)
		dropped.done(nil, dropped.fate(ErrDropped))
	}
	o.nextID++
	c.id = o.nextID
	o.waiting = append(o.waiting, c)
	o.account(c, 1)
	return nil
}

// fate is err, and that the call may have been done if it was ever sent.
func (c *call) fate(err error) error {
	if c.sent.IsZero() {
		return err
	}
	return unknown(err)
}

func (o *outbox) fits(c *call) bool {
	return o.count == 0 || o.count < o.bound.Items && o.bytes+c.size <= o.bound.Bytes
}

func (o *outbox) account(c *call, n int) {
	if !c.own {
		o.count += n
		o.bytes += n * c.size
	}
}

func (o *outbox) remove(i int) {
	o.account(o.waiting[i], -1)
	o.waiting = slices.Delete(o.waiting, i, i+1)
}

// take returns the next call to be sent, and counts it as in flight; nil when none
// waits or the window is full.
func (o *outbox) take(now time.Time) *call {
	for len(o.waiting) > 0 && len(o.inflight) < window {
		c := o.waiting[0]
		o.remove(0)
		switch err := c.ready(now); {
		case err != nil:
			c.done(nil, err)
		default:
			if c.sent.IsZero() {
				c.sent = now
			}
			o.inflight[c.id] = c
			return c
		}
	}
	return nil
}

// ready brings the request's times up to now.
func (c *call) ready(now time.Time) error {
	if !c.sent.IsZero() && now.Sub(c.sent) >= repeatFor {
		return ErrUnknown
	}
	left := c.until.Sub(now)
	switch r := c.request.(type) {
	case *codec.Publish:
		r.ID = c.id
		if r.HasTTL {
			if left <= 0 {
				return c.fate(codec.NewError(codec.CodeExpired, "it waited for longer than its TTL"))
			}
			r.TTL = left
		}
	case *codec.Command:
		r.ID = c.id
		if r.HasDeadline = !c.until.IsZero(); r.HasDeadline {
			r.Deadline = max(time.Millisecond, left)
		}
	case *codec.Join:
		r.ID = c.id
	case *codec.Leave:
		r.ID = c.id
	case *codec.History:
		r.ID = c.id
	case *codec.PresenceQuery:
		r.ID = c.id
	case *codec.Token:
		r.ID = c.id
	}
	return nil
}

// answered ends the call with this id; nil when there is none in flight.
func (o *outbox) answered(id uint64) *call {
	c := o.inflight[id]
	delete(o.inflight, id)
	return c
}

// cancel is for a caller that has gone: the call is taken out, or if it is in
// flight only awaited.
func (o *outbox) cancel(c *call) (waited bool) {
	c.quit = true
	c.done = func(codec.Result, error) {}
	i := slices.Index(o.waiting, c)
	if i >= 0 {
		o.remove(i)
	}
	return i >= 0
}

// lose ends what was in flight on a lost connection: what may be repeated waits
// again, before everything else and in its old order.
func (o *outbox) lose() {
	flying := o.inflight
	o.inflight = map[uint64]*call{}
	for _, c := range sorted(flying) {
		switch {
		case c.quit || c.lost == isForgotten:
			c.done(nil, nil)
		case c.lost == isRepeated:
			o.waiting = append(o.waiting, c)
			o.account(c, 1)
		default:
			c.done(nil, ErrUnknown)
		}
	}
	slices.SortStableFunc(o.waiting, func(a, b *call) int { return cmp.Compare(a.id, b.id) })
	// What the next hello says is not said twice.
	o.waiting = slices.DeleteFunc(o.waiting, func(c *call) bool {
		gone := c.lost == isForgotten
		if gone {
			o.account(c, -1)
			c.done(nil, nil)
		}
		return gone
	})
}

// fail ends every call.
func (o *outbox) fail(err error) {
	all := append(sorted(o.inflight), o.waiting...)
	o.inflight, o.waiting, o.count, o.bytes = map[uint64]*call{}, nil, 0, 0
	for _, c := range all {
		c.done(nil, c.fate(err))
	}
}

func sorted(calls map[uint64]*call) []*call {
	list := make([]*call, 0, len(calls))
	for _, c := range calls {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *call) int { return cmp.Compare(a.id, b.id) })
	return list
}
