package transporttest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

func closeInOrder(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	docs := [][]byte{document(0, 10), document(1, 2000), document(2, 10)}
	s.write(t, s.frame(docs...))
	s.conn.Close(codec.CauseRestart, "100-200")
	expect(t, p, docs...)
	if closed := expectClose(t, p, 1012); closed.Reason != "100-200" {
		t.Errorf("reason %q", closed.Reason)
	}
	s.end(t, codec.CauseRestart)
}

func closeWhileParked(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	docs := s.park(t)
	s.conn.Close(codec.CauseTakenOver, "")
	expect(t, p, docs...)
	expectClose(t, p, 4409)
	if err := within(t, s.ready, "ready"); err != nil {
		t.Errorf("ready: %v", err)
	}
	s.end(t, codec.CauseTakenOver)
}

func closeFromMany(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	s.conn.Close(codec.CauseForbidden, "first")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { s.conn.Close(codec.CauseOverload, "later") })
	}
	group(t, &wg, "Close")
	if closed := expectClose(t, p, 4403); closed.Reason != "first" {
		t.Errorf("reason %q", closed.Reason)
	}
	s.end(t, codec.CauseForbidden)
	s.conn.Close(codec.CauseOverload, "after the end")
	select {
	case again := <-s.closed:
		t.Errorf("Closed came again: %v", again)
	default:
	}
}

func writeAfterClose(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	s.conn.Close(codec.CauseNormal, "")
	if done, err := s.conn.Write(s.frame(document(0, 10))); done || !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Write after Close: %v, %v", done, err)
	}
	expectClose(t, p, 1000)
	s.end(t, codec.CauseNormal)
	if done, err := s.conn.Write(s.frame(document(0, 10))); done || !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Write after the end: %v, %v", done, err)
	}
}

func messageAfterClose(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	s.conn.Close(codec.CauseNormal, "")
	_ = p.Send(document(0, 10)) // a transport may know already that it is closed
	p.Close(1000)
	s.end(t, codec.CauseNormal)
	if n := len(s.inbox); n != 0 {
		t.Errorf("%d messages after Close", n)
	}
}

func stuckPeer(t *testing.T, dial Dial) {
	s, _ := open(t, dial, Options{WriteTimeout: 400 * time.Millisecond}, nil)
	s.park(t)
	if err := within(t, s.ready, "ready"); !errors.Is(err, transport.ErrStuck) {
		t.Errorf("ready(%v), want ErrStuck", err)
	}
	s.end(t, codec.CauseOverload)
	if _, err := s.conn.Write(s.frame(document(0, 10))); err == nil {
		t.Error("a cut connection takes a write")
	}
}

func closeOfStuckPeer(t *testing.T, dial Dial) {
	for _, cut := range []bool{true, false} { // or it ends by the write's timeout
		timeout := time.Second
		if cut {
			timeout = 10 * limit
		}
		s, p := open(t, dial, Options{WriteTimeout: timeout}, nil)
		s.park(t)
		var wg sync.WaitGroup
		wg.Go(func() { s.conn.Close(codec.CauseRestart, "") })
		group(t, &wg, "the return of Close")
		if cut {
			p.Cut()
		}
		if err := within(t, s.ready, "ready"); err == nil {
			t.Error("ready(nil) of a peer that never read")
		}
		s.end(t, codec.CauseRestart)
	}
}

func silentPeer(t *testing.T, dial Dial) {
	s, _ := open(t, dial, Options{WriteTimeout: 200 * time.Millisecond}, nil)
	s.conn.Close(codec.CauseTimeout, "")
	s.end(t, codec.CauseTimeout)
}

func cutByServer(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	s.conn.Close(codec.CauseAbrupt, "")
	s.end(t, codec.CauseAbrupt)
	expectClose(t, p, 1006)
}

func cutWhileParked(t *testing.T, dial Dial) {
	s, p := open(t, dial, Options{}, nil)
	s.park(t)
	p.Cut()
	if err := within(t, s.ready, "ready"); err == nil {
		t.Error("ready(nil) of a peer that is gone")
	}
	s.end(t, codec.CauseAbrupt)
	if got := s.readies.Load(); got != s.parks {
		t.Errorf("%d calls of ready for %d parked writes", got, s.parks)
	}
}

func peerEnds(t *testing.T, dial Dial) {
	for _, end := range []struct {
		name string
		by   func(Peer)
		want codec.Cause
	}{
		{"1000", func(p Peer) { p.Close(1000) }, codec.CauseNormal},
		{"1001", func(p Peer) { p.Close(1001) }, codec.CauseGoingAway},
		{"3000", func(p Peer) { p.Close(3000) }, codec.CauseAbrupt},
		{"cut", func(p Peer) { p.Cut() }, codec.CauseAbrupt},
	} {
		t.Run(end.name, func(t *testing.T) {
			s, p := open(t, dial, Options{}, nil)
			s.write(t, s.frame(document(0, 10)))
			end.by(p)
			s.end(t, end.want)
			s.conn.Close(codec.CauseInternal, "")
			select {
			case again := <-s.closed:
				t.Errorf("Closed came again: %v", again)
			default:
			}
		})
	}
}

func writeAndPeerClose(t *testing.T, dial Dial) {
	for range 12 {
		s, p := open(t, dial, Options{}, nil)
		frame := s.frame(document(0, 100))
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				start := time.Now()
				done, err := s.conn.Write(frame)
				if took := time.Since(start); took > limit/2 {
					t.Errorf("Write took %v", took)
				}
				if err != nil {
					return
				}
				if !done && within(t, s.ready, "ready") != nil {
					return
				}
			}
		})
		p.Close(1000)
		ctx := deadline(t)
		for {
			if _, err := p.Recv(ctx); err != nil {
				break
			}
		}
		group(t, &wg, "the writer")
		s.end(t, codec.CauseNormal)
	}
}
