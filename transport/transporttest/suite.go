package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/codec"
)

// Test checks that a transport keeps the promises of package transport.
func Test(t *testing.T, dial Dial) {
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			// Registered first, so that it comes after everything else has ended.
			ignore := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
			rule.test(t, dial)
		})
	}
}

var rules = []struct {
	name string
	test func(*testing.T, Dial)
}{
	{"what is written arrives in order", outboundOrder},
	{"what is sent is read in order and given away", inboundOrder},
	{"large messages pass both ways", largeMessages},
	{"a full socket parks and ready comes once", parkAndReady},
	{"a close comes behind what was written", closeInOrder},
	{"a close comes behind a parked write", closeWhileParked},
	{"only the first of many closes counts", closeFromMany},
	{"a closed connection takes no write", writeAfterClose},
	{"a closed connection hands on no message", messageAfterClose},
	{"a peer that does not read is cut", stuckPeer},
	{"a close of a stuck peer returns and cuts it", closeOfStuckPeer},
	{"a peer that does not answer a close is cut", silentPeer},
	{"a cut is abrupt", cutByServer},
	{"a peer that vanishes ends a parked write", cutWhileParked},
	{"the peer's end is told once", peerEnds},
	{"a receiver that blocks stops the reading", backpressure},
	{"a receiver that panics ends its connection only", panicIsContained},
	{"a message over the limit is refused", tooLarge},
	{"concurrent writes and peer closes never block", writeAndPeerClose},
}

// document makes text of the given length that names its number.
func document(i, size int) []byte {
	b := fmt.Appendf(nil, "%d:", i)
	return append(b, bytes.Repeat([]byte{'a' + byte(i%26)}, max(0, size-len(b)))...)
}

func open(t *testing.T, dial Dial, o Options, prepare func(*session)) (*session, Peer) {
	t.Helper()
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = 64 << 10
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = limit
	}
	a := newAcceptor(prepare)
	p := dial(t, a, o)
	return within(t, a.sessions, "Accept"), p
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func expect(t *testing.T, p Peer, docs ...[]byte) {
	t.Helper()
	ctx := deadline(t)
	for i, want := range docs {
		got, err := p.Recv(ctx)
		if err != nil {
			t.Fatalf("receive %d of %d: %v", i, len(docs), err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("received %d: %d bytes %.20q, want %d bytes %.20q", i, len(got), got, len(want), want)
		}
	}
}

func expectClose(t *testing.T, p Peer, code uint16) *CloseError {
	t.Helper()
	b, err := p.Recv(deadline(t))
	var closed *CloseError
	if !errors.As(err, &closed) {
		t.Fatalf("received %.20q, %v; want a close", b, err)
	}
	if closed.Code != code {
		t.Fatalf("%v, want code %d", closed, code)
	}
	return closed
}

func outboundOrder(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	var wg sync.WaitGroup
	var all [][]byte
	for i := range 2000 {
		all = append(all, document(i, i%300))
	}
	wg.Go(func() {
		for rest, n := all, 1; len(rest) > 0; n = n%16 + 1 {
			n = min(n, len(rest))
			s.write(t, s.frame(rest[:n]...))
			rest = rest[n:]
		}
	})
	expect(t, p, all...)
	group(t, &wg, "the writer")
	p.Close(1000)
	s.end(t, codec.CauseNormal)
}

func inboundOrder(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	const n = 1000
	for i := range n {
		if err := p.Send(document(i, i%300)); err != nil {
			t.Fatal(err)
		}
	}
	p.Close(1000)
	s.end(t, codec.CauseNormal)
	// Compared only now: a buffer that was not given away would have been reused.
	for i := range n {
		if got, want := <-s.inbox, document(i, i%300); !bytes.Equal(got, want) {
			t.Fatalf("message %d: %.20q, want %.20q", i, got, want)
		}
	}
	if s.alive.Load() == 0 {
		t.Error("Alive was never called")
	}
}

func largeMessages(t *testing.T, dial Dial) {
	const size = 64 << 10
	s, p := open(t, dial, Options{MaxMessageBytes: size}, nil)
	for i := range 8 {
		doc := document(i, size)
		var wg sync.WaitGroup
		wg.Go(func() { s.write(t, s.frame(doc)) })
		expect(t, p, doc)
		group(t, &wg, "the writer")
		if err := p.Send(doc); err != nil {
			t.Fatal(err)
		}
		if got := within(t, s.inbox, "a message"); !bytes.Equal(got, doc) {
			t.Fatalf("read %d bytes, want %d", len(got), len(doc))
		}
	}
	p.Close(1000)
	s.end(t, codec.CauseNormal)
}

func parkAndReady(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	for range 2 {
		docs := s.park(t)
		expect(t, p, docs...)
		if err := within(t, s.ready, "ready"); err != nil {
			t.Fatalf("ready: %v", err)
		}
	}
	last := document(0, 10)
	var wg sync.WaitGroup
	wg.Go(func() { s.write(t, s.frame(last)) })
	expect(t, p, last)
	group(t, &wg, "the writer")
	p.Close(1000)
	s.end(t, codec.CauseNormal)
	if got := s.readies.Load(); got != s.parks {
		t.Errorf("%d calls of ready for %d parked writes", got, s.parks)
	}
}

// B080: hrygo/hotplex#33, erigontech/erigon#20923.
// B080: hrygo/hotplex#33, erigontech/erigon#20923.
func backpressure(t *testing.T, dial Dial) {
	release := make(chan struct{})
	s, p := open(t, dial, Options{}, func(s *session) {
		s.onMessage = func(b []byte) { <-release; s.inbox <- b }
	})
	const most, size = 1000, 60 << 10 // 60 MB: more than the buffers in between hold
	sent := make(chan int, most)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(sent)
		for i := 0; i < most && !stop.Load(); i++ {
			if p.Send(document(i, size)) != nil {
				return
			}
			sent <- i
		}
	})
	for stalled := false; !stalled; {
		select {
		case _, more := <-sent:
			if !more {
				t.Fatal("everything was taken although the receiver is blocked")
			}
		case <-time.After(200 * time.Millisecond):
			stalled = true
		}
	}
	stop.Store(true) // after the one that stalls
	close(release)
	group(t, &wg, "the sender")
	p.Close(1000)
	s.end(t, codec.CauseNormal)
	close(s.inbox)
	i := 0
	for got := range s.inbox {
		if !bytes.Equal(got, document(i, size)) {
			t.Fatalf("message %d: %.20q", i, got)
		}
		i++
	}
	if i == 0 {
		t.Error("nothing came after the release")
	}
}

func panicIsContained(t *testing.T, dial Dial) {
	a := newAcceptor(func(s *session) {
		s.onMessage = func(b []byte) {
			if bytes.HasPrefix(b, []byte("13:")) {
				panic("a receiver's fault")
			}
			s.inbox <- b
		}
	})
	o := Options{MaxMessageBytes: 1 << 10, WriteTimeout: limit}
	p1, p2 := dial(t, a, o), dial(t, a, o)
	s1, s2 := within(t, a.sessions, "Accept"), within(t, a.sessions, "Accept")
	if err := p1.Send(document(13, 10)); err != nil {
		t.Fatal(err)
	}
	expectClose(t, p1, 1011)
	if err := p2.Send(document(1, 10)); err != nil {
		t.Fatal(err)
	}
	// Accept runs on the reader goroutines: which session is whose is open.
	var ended, living *session
	select {
	case cause := <-s1.closed:
		s1.closed <- cause
		ended, living = s1, s2
	case cause := <-s2.closed:
		s2.closed <- cause
		ended, living = s2, s1
	}
	ended.end(t, codec.CauseInternal)
	within(t, living.inbox, "the other connection's message")
	p2.Close(1000)
	living.end(t, codec.CauseNormal)
}

func tooLarge(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{MaxMessageBytes: 1000}, nil)
	if err := p.Send(document(0, 1000)); err != nil {
		t.Fatal(err)
	}
	within(t, s.inbox, "the message at the limit")
	_ = p.Send(document(1, 1001)) // may fail already: the server stops reading it
	s.end(t, codec.CauseTooLarge)
	expectClose(t, p, 1009)
	select {
	case b := <-s.inbox:
		t.Errorf("a message of %d bytes was handed on", len(b))
	default:
	}
}

// B082: coder/websocket#248.
