package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/codec"
)

// link is one connection. Its goroutines are the client's own, which watches the
// clock, a reader and a writer, and while it lasts one that fetches a token.
type link struct {
	c      *Client
	ctx    context.Context // ends with the link; stops whatever its goroutines wait for
	cancel context.CancelFunc
	ws     *websocket.Conn
	born   time.Time
	heard  atomic.Int64 // when something last came, as time since born
	wg     sync.WaitGroup
	buf    bytes.Buffer // the reader's

	out  chan []byte   // to the writer; sent to with Client.mu held
	stop chan struct{} // closed: the writer writes what it has, and ends
	kick chan struct{} // something is due earlier than it was
	over chan ending   // the first end of the link

	greeted []*Subscription // whom the hello joins; until the welcome

	// Guarded by Client.mu.
	alive    liveness
	drainAt  time.Time     // when to leave a node that asked for it; zero: it did not
	giveUp   time.Time     // while leaving: how long to wait for replies
	leaving  bool          // nothing more is sent
	renewing bool          // new credentials are being fetched
	renewAt  time.Time     // when to fetch some; zero: not
	ahead    time.Duration // of the server's clock before this machine's
}

const (
	// queue is how many frames wait for the writer. The last of its places are the
	// window's: a request in flight takes one at most.
	queue = window + others
	// others is the share of frames that are no requests.
	others = 80
	// largest bounds a frame before the welcome, and whatever the welcome says.
	largest = 64 << 20
	// leaveFor is how long a link that leaves a draining node waits for replies.
	leaveFor = 2 * time.Second
	// keep bounds what the reader's buffer holds on to between frames.
	keep = 64 << 10
	// closeFor is how long an orderly close may take.
	closeFor = 2 * time.Second
)

func newLink(c *Client) *link {
	l := &link{
		c: c, born: time.Now(), out: make(chan []byte, queue),
		stop: make(chan struct{}), kick: make(chan struct{}, 1), over: make(chan ending, 1),
	}
	// Not the client's ctx: closing is orderly.
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *link) kind() websocket.MessageType {
	if l.c.o.Codec == codec.Msgpack {
		return websocket.MessageBinary
	}
	return websocket.MessageText
}

// read returns the next message, in memory of its own size.
func (l *link) read(ctx context.Context) ([]byte, error) {
	kind, r, err := l.ws.Reader(ctx)
	if err != nil {
		return nil, err
	}
	if l.buf.Reset(); l.buf.Cap() > keep {
		l.buf = bytes.Buffer{}
	}
	if _, err := l.buf.ReadFrom(hearing{r, l}); err != nil {
		return nil, err
	}
	if kind != l.kind() {
		return nil, fmt.Errorf("a message of the other kind: %w", codec.ErrMalformed)
	}
	return bytes.Clone(l.buf.Bytes()), nil
}

// hearing notes that something comes, while a long message still does.
type hearing struct {
	io.Reader
	l *link
}

func (h hearing) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.l.touch()
	return n, err
}

func (l *link) touch() { l.heard.Store(int64(time.Since(l.born))) }

// decode reads a frame; one of a type that is not known is nil, and counted.
func (l *link) decode(message []byte) (codec.Document, error) {
	if l.c.o.OnFrame != nil {
		l.c.o.OnFrame(message)
	}
	doc, err := codec.DecodeDocument(l.c.o.Codec, message)
	if errors.Is(err, codec.ErrUnknownType) {
		l.c.mu.Lock()
		l.c.stats.Unknown++
		l.c.mu.Unlock()
		return nil, nil
	}
	return doc, err
}

// serve keeps the connection until it ends, and returns when nothing of it is left.
func (l *link) serve() ending {
	l.wg.Go(l.reads)
	writer := make(chan struct{})
	l.wg.Go(func() { defer close(writer); l.writes() })
	e, asked := l.watch()
	if asked {
		// What was handed over goes out, then the close; both in bounded time.
		stuck := time.AfterFunc(closeFor, l.cancel)
		close(l.stop)
		<-writer
		l.ws.Close(websocket.StatusNormalClosure, "")
		stuck.Stop()
	}
	l.cancel()
	l.ws.CloseNow()
	l.wg.Wait()
	return e
}

// watch waits for the end of the link, and does what is due until then. asked: the
// client is being closed.
func (l *link) watch() (e ending, asked bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case e := <-l.over:
			return e, false
		case <-l.c.ctx.Done():
			return ending{}, true
		case <-l.kick:
		case <-timer.C:
		}
		next, e, ended := l.due(time.Now())
		if ended {
			return e, false
		}
		timer.Reset(time.Until(next))
	}
}

// due does what is due at now, and says when to look again.
func (l *link) due(now time.Time) (next time.Time, e ending, ended bool) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if !now.Before(l.alive.due) && l.alive.check(now, l.born.Add(time.Duration(l.heard.Load()))) {
		return next, ending{err: errors.New("client: nothing came from the server in time")}, true
	}
	next = l.alive.due
	soonest := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	switch {
	case l.drainAt.IsZero():
	case now.Before(l.drainAt):
		soonest(l.drainAt)
	default:
		if !l.leaving {
			l.leaving, l.giveUp = true, now.Add(leaveFor)
		}
		if len(l.c.out.inflight) == 0 || !now.Before(l.giveUp) {
			return next, ending{err: errDrained, soon: true}, true
		}
		soonest(l.giveUp)
	}
	switch {
	case l.renewAt.IsZero():
	case now.Before(l.renewAt):
		soonest(l.renewAt)
	default:
		l.renewAt = time.Time{}
		l.renew()
	}
	for _, s := range l.c.subs {
		switch {
		case s.retryAt.IsZero():
		case now.Before(s.retryAt):
			soonest(s.retryAt)
		default:
			s.retryAt = time.Time{}
			l.c.rejoin(s)
		}
	}
	return next, ending{}, false
}

var errDrained = errors.New("client: the node asked its clients to go elsewhere")

// look has the clock looked at anew.
func (l *link) look() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// end is the first reason for the link's end.
func (l *link) end(e ending) {
	select {
	case l.over <- e:
	default:
	}
}

// send hands a request to the writer. It never waits: those in flight are fewer
// than there are places. Client.mu is held.
func (l *link) send(frame []byte) {
	select {
	case l.out <- frame:
	default:
		panic("client: more requests in flight than the window lets")
	}
}

// trySend hands another frame over, if there is place besides the window's.
// Client.mu is held.
func (l *link) trySend(frame []byte) bool {
	if len(l.out) >= others {
		return false
	}
	l.send(frame)
	return true
}

func (l *link) writes() {
	for {
		var frame []byte
		select {
		case frame = <-l.out:
		case <-l.ctx.Done():
			return
		case <-l.stop:
			select {
			case frame = <-l.out:
			default:
				return
			}
		}
		ctx, cancel := context.WithTimeout(l.ctx, l.c.o.Timeout)
		err := l.ws.Write(ctx, l.kind(), frame)
		cancel()
		if err != nil {
			return // the reader ends too, and knows the server's close if there was one
		}
	}
}

func (l *link) reads() {
	for {
		message, err := l.read(l.ctx)
		if err != nil {
			l.end(endedBy(err))
			return
		}
		doc, err := l.decode(message)
		if err != nil {
			l.end(endedBy(err))
			return
		}
		l.c.receive(l, doc, len(message))
	}
}
