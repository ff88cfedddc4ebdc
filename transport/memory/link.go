package memory

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// link is one connection: transport.Conn for the server, and what Client calls.
type link struct {
	// Immutable.
	framing *codec.Framing
	o       Options

	mu sync.Mutex
	// All below is guarded by mu.
	changed chan struct{} // closed at the next change; nil while nobody waits

	up      []message // client to server
	upBytes int       // at most o.Window, but for one message that is longer
	upEnd   *uint16   // the client's close code; nothing is sent behind it

	down    []byte // server to client, at most o.Window
	rest    []byte // what a parked write has left
	in      []byte // the client's own: the message that it is receiving
	ready   func(error)
	parked  *time.Timer // set while a write is parked: cuts the link at its timeout
	owed    bool        // a parked write has ended with owedErr: unlock tells
	owedErr error

	ending *ending // the first cause of the end; set once
	dead   bool    // nothing moves any more; ending is set
}

type message struct {
	body   []byte
	binary bool
}

type ending struct {
	cause  codec.Cause
	reason string
	abrupt bool        // the client sees no close
	timer  *time.Timer // cuts a link whose client does not answer the close
}

func newLink(f *codec.Framing, o Options) *link { return &link{framing: f, o: o} }

func (l *link) Framing() *codec.Framing       { return l.framing }
func (l *link) Name() string                  { return "memory" }
func (l *link) OnReady(ready func(err error)) { l.ready = ready }

func (l *link) Write(b []byte) (bool, error) {
	l.mu.Lock()
	defer l.unlock()
	if l.ending != nil {
		return false, transport.ErrClosed
	}
	if l.parked != nil {
		panic("memory: Write while a write is parked")
	}
	l.rest = append(l.rest, b...)
	l.refill()
	if len(l.rest) == 0 {
		return true, nil
	}
	l.parked = time.AfterFunc(l.o.WriteTimeout, func() { l.cut(codec.CauseOverload, transport.ErrStuck) })
	return false, nil
}

func (l *link) Close(cause codec.Cause, reason string) {
	if cause == codec.CauseAbrupt {
		l.cut(cause, transport.ErrClosed)
		return
	}
	l.mu.Lock()
	defer l.unlock()
	l.end(cause, reason)
}

// end begins the end, with the first cause. Called with mu held.
func (l *link) end(cause codec.Cause, reason string) {
	if l.ending != nil {
		return
	}
	l.ending = &ending{cause: cause, reason: reason}
	l.ending.timer = time.AfterFunc(l.o.WriteTimeout, func() { l.cut(cause, transport.ErrStuck) })
	l.wake()
}

// cut breaks the link off. cause counts if it is the first, err is told to a
// parked write.
func (l *link) cut(cause codec.Cause, err error) {
	l.mu.Lock()
	defer l.unlock()
	if l.dead {
		return
	}
	if l.ending == nil {
		l.ending = &ending{cause: cause}
	}
	l.ending.abrupt = true
	l.up, l.down, l.rest, l.in = nil, nil, nil, nil
	l.die(err)
}

// die stops all movement. Called with mu held, ending set.
func (l *link) die(err error) {
	l.dead = true
	if l.ending.timer != nil {
		l.ending.timer.Stop()
	}
	l.unpark(err)
	l.wake()
}

// refill moves what a parked write has left into the window. Called with mu held.
func (l *link) refill() {
	n := min(len(l.rest), l.o.Window-len(l.down))
	if n <= 0 {
		return
	}
	l.down = append(l.down, l.rest[:n]...)
	if l.rest = l.rest[n:]; len(l.rest) == 0 {
		l.rest = nil
		l.unpark(nil)
	}
	l.wake()
}

// unpark ends a parked write. Called with mu held.
func (l *link) unpark(err error) {
	if l.parked == nil {
		return
	}
	l.parked.Stop()
	l.parked = nil
	l.owed, l.owedErr = true, err
}

// unlock lets go of mu, and then tells of a parked write that has ended.
func (l *link) unlock() {
	owed, err := l.owed, l.owedErr
	l.owed, l.owedErr = false, nil
	l.mu.Unlock()
	if owed {
		l.ready(err)
	}
}

// read is the reader goroutine.
func (l *link) read(a transport.Acceptor, r transport.Request) {
	defer l.contain()
	receiver := a.Accept(l, r)
	l.deliver(receiver)
	receiver.Closed(l.cause())
}

// deliver hands messages on until there are no more.
func (l *link) deliver(receiver transport.Receiver) {
	defer l.contain()
	for m := l.next(); m != nil; m = l.next() {
		receiver.Alive()
		receiver.Message(m.body, m.binary)
	}
}

// contain ends the link, and it alone, for a panic of its Acceptor or Receiver.
func (l *link) contain() {
	if fault := recover(); fault != nil {
		l.Close(codec.CauseInternal, "internal error")
	}
}

func (l *link) cause() codec.Cause {
	l.mu.Lock()
	defer l.unlock()
	return l.ending.cause
}

// next waits for a message; nil when there will be none.
func (l *link) next() *message {
	l.mu.Lock()
	defer l.unlock()
	for {
		switch {
		case l.dead:
			return nil
		case len(l.up) > 0:
			m := l.up[0]
			l.up = l.up[1:]
			l.upBytes -= len(m.body)
			l.wake()
			if l.ending != nil {
				continue // the server is done with this client
			}
			if len(m.body) > l.o.MaxMessageBytes {
				l.end(codec.CauseTooLarge, "message too large")
				return nil
			}
			return &m
		case l.upEnd != nil:
			l.end(codec.CauseOf(*l.upEnd), "")
			return nil
		}
		l.wait(nil)
	}
}

func (l *link) send(doc []byte, binary bool) error {
	l.mu.Lock()
	defer l.unlock()
	for {
		switch {
		case l.upEnd != nil, l.dead:
			return transport.ErrClosed
		case l.upBytes == 0 || l.upBytes+len(doc) <= l.o.Window:
			l.up = append(l.up, message{append([]byte(nil), doc...), binary})
			l.upBytes += len(doc)
			l.wake()
			return nil
		}
		l.wait(nil)
	}
}

func (l *link) peerClose(code uint16) {
	l.mu.Lock()
	defer l.unlock()
	if l.upEnd == nil {
		l.upEnd = &code
		l.wake()
	}
}

func (l *link) recv(ctx context.Context) ([]byte, error) {
	l.mu.Lock()
	defer l.unlock()
	for {
		if b := l.assemble(); b != nil {
			return b, nil
		}
		if e := l.ending; e != nil {
			if e.abrupt {
				return nil, &CloseError{Code: codec.CauseAbrupt.CloseCode()}
			}
			if !l.dead {
				l.die(nil)
			}
			return nil, &CloseError{Code: e.cause.CloseCode(), Reason: e.reason}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.wait(ctx.Done())
	}
}

// assemble takes out of the window what the message in progress still needs, no
// more, and returns the message when it is whole. Called with mu held.
func (l *link) assemble() []byte {
	for {
		need := headerSize - len(l.in)
		if need <= 0 {
			size := int(binary.BigEndian.Uint32(l.in))
			if need += size; need == 0 {
				b := l.in[headerSize:]
				l.in = nil
				return b
			}
		}
		n := min(need, len(l.down))
		if n == 0 {
			return nil
		}
		l.in = append(l.in, l.down[:n]...)
		l.down = l.down[n:]
		l.refill()
	}
}

// wait lets go of mu until the next change, or until stop. Called with mu held.
func (l *link) wait(stop <-chan struct{}) {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	changed := l.changed
	l.unlock()
	select {
	case <-changed:
	case <-stop:
	}
	l.mu.Lock()
}

// wake tells everyone who waits that something changed. Called with mu held.
func (l *link) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
