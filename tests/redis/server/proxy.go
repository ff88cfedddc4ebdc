package server

import (
	"bytes"
	"net"
	"runtime"
	"sync"
)

// Proxy is a way to a server that can be cut, and on which replies can be lost.
type Proxy struct {
	listener net.Listener // immutable
	running  sync.WaitGroup

	mu sync.Mutex
	// guarded by mu
	target  string
	pairs   map[*pair]struct{}
	refuse  bool
	swallow []byte // the reply to the next request with this in it is lost, and its connection
	lost    chan struct{}
	closed  bool
	hold    chan struct{} // replies wait for its closing; nil: they do not
	chop    func() int    // gives the size of the next piece that a reply is passed on in; nil: whole
}

// pair is one connection through the proxy.
type pair struct {
	client, server net.Conn
	pubsub         bool // it has subscribed to something
	deaf           bool // replies are not passed on, and the next one ends it
}

// NewProxy listens on a free port, for as long as the test runs.
func NewProxy(tb TB, target string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{listener: l, target: target, pairs: make(map[*pair]struct{})}
	p.running.Go(p.accept)
	tb.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Hold(false)
		_ = l.Close() // ends accept
		p.Cut()
		p.running.Wait()
	})
	return p
}

// Address is the proxy's.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Refuse makes it close, or take again, whatever comes anew.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Redirect leads whatever comes anew elsewhere.
func (p *Proxy) Redirect(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Cut ends all connections; CutLinks those with subscriptions only.
func (p *Proxy) Cut()      { p.cut(func(*pair) bool { return true }) }
func (p *Proxy) CutLinks() { p.cut(func(c *pair) bool { return c.pubsub }) }

func (p *Proxy) cut(which func(*pair) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		if which(c) {
			c.close()
		}
	}
}

func (c *pair) close() {
	_ = c.client.Close() // both ends are being given up
	_ = c.server.Close()
}

// Hold keeps back all that comes on connections with subscriptions, as if whoever reads them
// slept, until it is called with false.
func (p *Proxy) Hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.hold == nil:
		p.hold = make(chan struct{})
	case !on && p.hold != nil:
		close(p.hold)
		p.hold = nil
	}
}

// Chop passes replies on in pieces of these sizes, so that whoever reads them meets their
// borders everywhere. size is called by one connection at a time.
func (p *Proxy) Chop(size func() int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chop = size
}

// write passes on what a server answered.
func (p *Proxy) write(c *pair, answer []byte) error {
	for len(answer) > 0 {
		n := len(answer)
		p.mu.Lock()
		if p.chop != nil {
			n = min(n, p.chop())
		}
		p.mu.Unlock()
		if _, err := c.client.Write(answer[:n]); err != nil {
			return err
		}
		answer = answer[n:]
		runtime.Gosched() // whoever reads may have this piece alone
	}
	return nil
}

// Swallow loses the reply to the next request that has text in it: the server does
// what was asked, and the connection ends. The channel is closed when it has been.
func (p *Proxy) Swallow(text string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow, p.lost = []byte(text), make(chan struct{})
	return p.lost
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse, target := p.refuse || p.closed, p.target
		p.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil || refuse {
			_ = client.Close() // that is the answer
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		c := &pair{client: client, server: server}
		p.mu.Lock()
		p.pairs[c] = struct{}{}
		p.mu.Unlock()
		p.running.Go(func() { p.requests(c) })
		p.running.Go(func() { p.replies(c) })
	}
}

func (p *Proxy) requests(c *pair) {
	defer c.close()
	buffer := make([]byte, 256<<10)
	for {
		n, err := c.client.Read(buffer)
		if n > 0 {
			p.mu.Lock()
			if bytes.Contains(buffer[:n], []byte("ubscribe\r\n")) {
				c.pubsub = true
			}
			if len(p.swallow) > 0 && bytes.Contains(buffer[:n], p.swallow) {
				p.swallow, c.deaf = nil, true
			}
			p.mu.Unlock()
			if _, err := c.server.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) replies(c *pair) {
	defer func() {
		c.close()
		p.mu.Lock()
		delete(p.pairs, c)
		p.mu.Unlock()
	}()
	buffer := make([]byte, 256<<10)
	for {
		n, err := c.server.Read(buffer)
		p.mu.Lock()
		deaf, lost, hold := c.deaf, p.lost, p.hold
		if !c.pubsub {
			hold = nil
		}
		p.mu.Unlock()
		if hold != nil {
			<-hold
		}
		if deaf && n > 0 {
			close(lost)
			return
		}
		if n > 0 {
			if err := p.write(c, buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
