package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Client is one session with a server, kept over lost connections. Every method
// may be called from any goroutine. It is made by New and ends with Close.
type Client struct {
	o      Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   chan struct{} // closed when no goroutine is left but OnStatus's

	mu      sync.Mutex // guards what follows; never held over I/O or over a callback
	life    lifecycle
	status  Status
	changed chan struct{} // closed, and made anew, when status changes
	link    *link         // the connection that is welcome, or nil
	out     outbox
	subs    map[string]*Subscription // by room
	stats   Stats
	closing error // what ends it for good, once something does

	token     string    // as the callback gave it last
	hasToken  bool      // and that it is not known to be bad
	asked     time.Time // when the callback gave it
	resume    string    // of the session; in memory only
	maxBytes  int       // of a message, by the last welcome; before it cautious
	expires   time.Time
	received  int // size of the frame that is being taken
	notifying chan struct{}
}

// Stats count since New.
type Stats struct {
	Connections uint64 // that were welcome
	Resumed     uint64 // of these, with the same session as before
	Unknown     uint64 // frames that this build does not know
	Refused     uint64 // frames without a reply (TryPublish, Ack) that the server refused
	Missed      uint64 // events that are not buffered, lost to slow consumers
}

// New starts a client. It returns at once: requests wait for the connection, as
// long as their ctx lets them. The error lists what is wrong with o.
func New(o Options) (*Client, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{
		o: o, ctx: ctx, cancel: cancel, done: make(chan struct{}),
		life:      newLifecycle(rand.Int64N),
		changed:   make(chan struct{}),
		out:       outbox{bound: o.Requests, dropOldest: o.DropOldest, inflight: map[uint64]*call{}},
		subs:      map[string]*Subscription{},
		maxBytes:  16 << 10,
		notifying: make(chan struct{}, 1),
	}
	c.status.State = Connecting
	if o.OnStatus != nil {
		go c.notify()
	}
	go c.run()
	return c, nil
}

// Close ends the session and waits until the client's goroutines have ended, some
// seconds at most where the server does not answer. What waits ends with
// ErrClosed. Closing again is harmless.
func (c *Client) Close() {
	c.mu.Lock()
	c.end(ErrClosed)
	c.mu.Unlock()
	c.cancel()
	<-c.done
}

// Status is where the connection stands now.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// Stats are the client's counts so far.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Session waits until the client is connected and returns what the server said of
// it. The error is ctx's, or wraps ErrClosed.
func (c *Client) Session(ctx context.Context) (Session, error) {
	for {
		c.mu.Lock()
		s, changed := c.status, c.changed
		c.mu.Unlock()
		switch s.State {
		case Connected:
			return s.Session, nil
		case Closed:
			return Session{}, s.Err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Session{}, ctx.Err()
		}
	}
}

// say makes a change of the status known. mu is held.
func (c *Client) say() {
	close(c.changed)
	c.changed = make(chan struct{})
	select {
	case c.notifying <- struct{}{}:
	default: // the newest status is read when OnStatus is done
	}
}

// notify calls OnStatus until it has heard of the end.
func (c *Client) notify() {
	for range c.notifying {
		s := c.Status()
		c.o.OnStatus(s)
		if s.State == Closed {
			return
		}
	}
}

// end closes the client for good; the first reason counts. mu is held.
func (c *Client) end(err error) {
	if c.closing != nil {
		return
	}
	if !errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	c.closing = err
	c.life.close()
	c.out.fail(err)
	for _, s := range c.subs {
		s.finish(err)
	}
	c.status.State, c.status.Live, c.status.Err, c.status.Wait = Closed, false, err, 0
	c.say()
}

// answer is what becomes of a call.
type answer struct {
	result codec.Result
	err    error
}

// do sends a request and waits for what becomes of it, or for ctx.
func (c *Client) do(ctx context.Context, request *call) (codec.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answers := make(chan answer, 1)
	request.done = func(r codec.Result, err error) { answers <- answer{r, err} }
	c.mu.Lock()
	err := c.add(request)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.out.cancel(request)
	c.mu.Unlock()
	select {
	case a := <-answers: // it came in time after all
		return a.result, a.err
	default:
	}
	if request.reads() {
		return nil, ctx.Err()
	}
	return nil, request.fate(ctx.Err())
}

// add takes a request in and sends what can be sent. mu is held.
func (c *Client) add(request *call) error {
	if c.closing != nil {
		return c.closing
	}
	if err := c.out.add(request); err != nil {
		return err
	}
	c.pump()
	return nil
}

// pump sends what waits, as far as the window lets it. mu is held.
func (c *Client) pump() {
	if c.link == nil || c.link.leaving {
		return
	}
	for {
		request := c.out.take(time.Now())
		if request == nil {
			return
		}
		frame := codec.AppendRequest(nil, c.o.Codec, request.request)
		if len(frame) > c.maxBytes {
			// The server would close the connection over it.
			c.out.answered(request.id)
			request.done(nil, codec.NewError(codec.CodeTooLarge, "the request is over the server's max_message_bytes"))
			continue
		}
		c.link.send(frame)
	}
}
