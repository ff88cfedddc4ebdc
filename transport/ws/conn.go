package ws

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// conn is one connection, as its session writes to it.
type conn struct {
	// Immutable.
	framing *codec.Framing
	timeout time.Duration // Config.WriteTimeout

	// The socket's reading side is the reader goroutine's, its writing side belongs
	// to the owner that out names. Closing it is anybody's.
	socket socket

	ready func(error) // set before the first Write

	over atomic.Bool // cause is set; for the reader, who asks with each message

	mu  sync.Mutex // never held over I/O or a call to the outside
	out outbox     // guarded by mu

	// Guarded by mu: how the connection ends.
	cause   codec.Cause   // the first cause; 0 while there is none
	refusal error         // why a Write is refused; nil while it is not
	cutter  *time.Timer   // closes the socket of an end that takes too long
	settled chan struct{} // made by the reader who waits for the writing side to be done
	gone    bool          // the reader has let the socket go
}

func (c *conn) Framing() *codec.Framing       { return c.framing }
func (c *conn) Name() string                  { return "websocket" }
func (c *conn) OnReady(ready func(err error)) { c.ready = ready }

func (c *conn) Write(b []byte) (bool, error) {
	c.mu.Lock()
	if c.refusal != nil {
		defer c.mu.Unlock()
		return false, c.refusal
	}
	if !c.out.claim() {
		defer c.mu.Unlock()
		if c.out.write != nil {
			panic("ws: Write while a write is parked")
		}
		c.out.write = append([]byte(nil), b...)
		return false, nil
	}
	c.mu.Unlock()

	rest, err := c.socket.attempt(b)
	switch {
	case err != nil:
		return false, c.fail(err)
	case rest != nil:
		go c.finish(rest, kindWrite)
		return false, nil
	}
	if p, ok := c.next(); ok {
		c.drive(p)
	}
	return true, nil
}

// Ping implements transport.Pinger.
func (c *conn) Ping() {
	c.mu.Lock()
	c.out.ping = true
	c.leave()
}

// pong answers a ping. Only the newest one is answered when there are several,
// which RFC 6455, section 5.5.3, allows, and which bounds a client's pings.
func (c *conn) pong(payload []byte) {
	c.mu.Lock()
	c.out.pong = append([]byte{}, payload...)
	c.leave()
}

func (c *conn) Close(cause codec.Cause, reason string) {
	if cause == codec.CauseAbrupt {
		c.end(cause, nil)
		c.socket.cut()
		return
	}
	c.end(cause, closeFrame(cause.CloseCode(), reason))
}

// end begins the end with the first cause, and sends its close frame, if it has
// one, behind what waits to be written.
func (c *conn) end(cause codec.Cause, frame []byte) {
	c.mu.Lock()
	if c.cause != 0 {
		c.mu.Unlock()
		return
	}
	c.begin(cause)
	c.refuse(transport.ErrClosed)
	c.cutLater()
	c.out.close = frame
	c.leave()
}

// flushRecords sends what TLS has written of its own accord while it read.
func (c *conn) flushRecords() {
	c.mu.Lock()
	c.out.records = true
	c.leave()
}

// leave lets go of mu, and sees to it that what was put into the outbox goes out:
// by the owner that there is, or else by the caller.
func (c *conn) leave() {
	var p piece
	mine := c.out.claim()
	if mine {
		p, mine = c.out.take()
	}
	c.mu.Unlock()
	if mine {
		c.drive(p)
	}
}

// refuse makes every later Write return err, or what it already returns. Called
// with mu held.
func (c *conn) refuse(err error) {
	if c.refusal == nil {
		c.refusal = err
	}
}

// cutLater closes the socket when the write timeout is over. Called with mu held.
func (c *conn) cutLater() {
	if c.cutter == nil && !c.gone {
		c.cutter = time.AfterFunc(c.timeout, c.socket.cut)
	}
}

// next is take for an owner; without another piece the ownership is over.
func (c *conn) next() (piece, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.out.take()
	if !ok {
		c.settle()
	}
	return p, ok
}

// settle tells a waiting reader that there is no owner. Called with mu held.
func (c *conn) settle() {
	if c.settled != nil {
		close(c.settled)
		c.settled = nil
	}
}

// drive writes p and what waits behind it as far as the socket takes it at once,
// and leaves the rest to a writer goroutine. The caller is the owner.
func (c *conn) drive(p piece) {
	for ok := true; ok; {
		rest, err := c.socket.attempt(p.b)
		if err != nil {
			c.failPiece(p.kind, err)
			return
		}
		if rest != nil {
			go c.finish(rest, p.kind)
			return
		}
		k := p.kind
		p, ok = c.next()
		c.tell(k, nil)
	}
}

// finish is the writer goroutine: it owns the writing side until nothing is left.
func (c *conn) finish(rest *leftover, k kind) {
	for ok := true; ok; {
		if err := c.socket.finish(rest, c.timeout); err != nil {
			c.failPiece(k, err)
			return
		}
		var p piece
		p, ok = c.next()
		c.tell(k, nil)
		if ok {
			var err error
			if rest, err = c.socket.prepare(p.b); err != nil {
				c.failPiece(p.kind, err)
				return
			}
			k = p.kind
		}
	}
}

// tell ends a parked write. It comes after the ownership was passed on or given
// up, so that the write that follows finds the socket free.
func (c *conn) tell(k kind, err error) {
	if k == kindWrite {
		c.ready(err)
	}
}

func (c *conn) failPiece(k kind, err error) {
	c.tell(k, c.fail(err))
}

// fail ends the writing side for good, and the ownership with it. A peer that did
// not read in time is cut. After any other fault the reader goes on for a while:
// what the peer sent before, perhaps its close, may still be there to be read, and
// says better why the connection ends.
func (c *conn) fail(err error) error {
	stuck := errors.Is(err, os.ErrDeadlineExceeded)
	if stuck {
		err = transport.ErrStuck
	}
	c.mu.Lock()
	c.out.owned, c.out.dead = false, true
	waiting := c.out.write != nil
	c.out.write = nil
	c.refuse(err)
	if stuck && c.cause == 0 {
		c.begin(codec.CauseOverload)
	}
	c.cutLater()
	c.settle()
	c.mu.Unlock()
	if stuck {
		c.socket.cut()
	}
	if waiting {
		c.ready(err)
	}
	return err
}

// begin takes note of the first cause. Called with mu held.
func (c *conn) begin(cause codec.Cause) {
	c.cause = cause
	c.over.Store(true)
}

// firstCause is why the connection ends; the end has begun.
func (c *conn) firstCause() codec.Cause {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// flushed waits until nothing is being written: the close frame has gone out, or
// the writing side is dead, which the cutter sees to. Only the reader waits.
func (c *conn) flushed() { c.await(false) }

// release is the reader's last word: the socket is closed, and no goroutine or
// timer of the connection is left or will be.
func (c *conn) release() {
	c.mu.Lock()
	c.gone = true
	if c.cutter != nil {
		c.cutter.Stop()
	}
	c.mu.Unlock()
	c.socket.cut()
	c.await(true)
}

// await waits until the writing side has no owner, and with last for ever none.
func (c *conn) await(last bool) {
	for {
		c.mu.Lock()
		if !c.out.owned {
			c.out.dead = c.out.dead || last
			c.mu.Unlock()
			return
		}
		settled := make(chan struct{})
		c.settled = settled
		c.mu.Unlock()
		<-settled
	}
}
