package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
)

// narrow gives a node and the clients that ask for it kernel buffers of a few KiB,
// so that what a client does not read is the engine's to hold.
func narrow(s *setup) {
	s.listen = func(l net.Listener) net.Listener { return narrowListener{l} }
}

type narrowListener struct{ net.Listener }

const kernelBuffer = 4 << 10

func (l narrowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(kernelBuffer)
	}
	return c, err
}

// narrowDialer makes connections that take little before they are read from.
func narrowDialer() net.Dialer {
	return net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return first(c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, kernelBuffer)
		}), err)
	}}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// skim reads events whose data is large without decoding them, and makes sure that
// none is missing.
func skim(ctx context.Context, c *client, from, to int) error {
	buf := make([]byte, 32<<10)
	for want := from; want <= to; {
		_, r, err := c.ws.Reader(ctx)
		if err != nil {
			return fmt.Errorf("before offset %d: %w", want, err)
		}
		n, err := io.ReadFull(r, buf)
		if err != io.ErrUnexpectedEOF {
			return fmt.Errorf("a message of more than %d bytes, or %v", n, err)
		}
		if !bytes.Contains(buf[:n], []byte(`"t":"event"`)) {
			continue
		}
		if !bytes.Contains(buf[:n], fmt.Appendf(nil, `"offset":%d,`, want)) {
			return fmt.Errorf("not offset %d: …%s", want, buf[max(0, n-200):n])
		}
		want++
	}
	return nil
}

// publish sends a message to chat:1 as often as it is told to try again.
func (n *node) publish(ctx context.Context, t *testing.T, data any) {
	t.Helper()
	for {
		_, err := n.Publish(ctx, engine.Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: data})
		refusal := (*codec.Error)(nil)
		if !errors.As(err, &refusal) || !refusal.Code.Retryable() {
			if err != nil {
				t.Error(err)
			}
			return
		}
		select {
		case <-time.After(refusal.RetryAfter):
		case <-ctx.Done():
		}
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// goBackTo waits until there are as many goroutines as there were: those of what has
// ended take a moment to end themselves.
func goBackTo(t *testing.T, were int) {
	t.Helper()
	for late := time.Now().Add(patience); runtime.NumGoroutine() > were+5; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d goroutines, up from %d", runtime.NumGoroutine(), were)
		}
	}
}

// CASE B049 (grafov/bcast#9, #12): members that do not read, in a room with 200
// who do. Memory stays within what is configured, no goroutine is added, the others
// lose nothing; and who reads in the end gets all that is there, or is told.
func TestB049_MembersThatDoNotRead(t *testing.T) {
	const others, events, each, size = 200, 2000 / lavish, 50, 8 << 10
	const declared = 1<<20 /* the room's history */ + 1<<20 /* its encoding */ +
		2<<20 /* two sessions' queues */ + 256*size /* what the room keeps at hand for who is behind */
	n := serve(t, func(s *setup) {
		narrow(s)
		s.Limits.WriteTimeout, s.Limits.Ping = 5*time.Minute, 5*time.Minute
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	readers := make([]*client, others)
	for i := range readers {
		readers[i], _ = enter(t, n, inJSON, fmt.Sprintf("acme/m%d", i), "chat:1")
	}
	n.dialer = narrowDialer()
	never, _ := enter(t, n, inMsgpack, "acme/never", "chat:1")
	late, _ := enter(t, n, inJSON, "acme/late", "chat:1")

	// In rounds, so that no reader falls behind what the room keeps because the
	// machine is busy.
	data := strings.Repeat("x", size)
	round := func(at int) {
		t.Helper()
		var reading sync.WaitGroup
		for _, r := range readers {
			reading.Go(func() {
				if err := skim(ctx, r, at+1, at+each); err != nil {
					t.Error(err)
				}
			})
		}
		for range each {
			n.publish(ctx, t, data)
		}
		reading.Wait()
	}
	before := liveHeap()
	round(0)
	goroutines := runtime.NumGoroutine()
	for at := each; at < events && !t.Failed(); at += each {
		round(at)
		goBackTo(t, goroutines)
	}
	grew := liveHeap() - before
	t.Logf("the live heap grew by %d KiB, declared are %d KiB", grew>>10, declared>>10)
	if grew > declared+declared/4 {
		t.Errorf("the live heap grew by %d bytes, declared are %d", grew, declared)
	}
	// The client's own check says that nothing was left out unannounced.
	resets := 0
	for {
		f := late.next()
		switch f.text("t") {
		case "reset":
			resets++
			if f.text("reason") != "overflow" {
				t.Errorf("reset: %v", f)
			}
		case "event", "ping":
		default:
			t.Errorf("%v", f)
		}
		if f.offset() == events {
			break
		}
	}
	if resets == 0 {
		t.Error("more was published than is kept, and nobody was told")
	}
	if n.Health().Sessions != others+2 {
		t.Errorf("%d sessions", n.Health().Sessions)
	}
	never.cut()
}

// A client that takes nothing for the write timeout is cut off, and its place given
// back. It comes again and resumes.
func TestAClientThatTakesNothingIsCutOff(t *testing.T) {
	n := serve(t, func(s *setup) {
		narrow(s)
		s.Limits.WriteTimeout = 3 * time.Second // which nobody else needs, busy as the machine is
	})
	bob, _ := enter(t, n, inJSON, "acme/bob", "chat:1")
	n.dialer = narrowDialer()
	stuck, _ := enter(t, n, inJSON, "acme/stuck", "chat:1")
	data := strings.Repeat("x", 8<<10)
	const sent = 100 // far more than the kernel takes
	for range sent {
		bob.ask(`{"t":"publish","room":"chat:1","event":"message","data":%q}`, data)
	}
	for deadline := time.Now().Add(patience); n.Health().Sessions == 2; {
		if time.Now().After(deadline) {
			t.Fatal("it is not cut off")
		}
		bob.say(`{"t":"ping","id":1}`)
		bob.until("pong")
	}
	for range sent {
		bob.until("event")
	}
	seen := uint64(0)
	epoch := ""
	for {
		f, err := stuck.receive()
		if err != nil {
			if code := websocket.CloseStatus(err); code != -1 && code != 1013 {
				t.Errorf("closed %d", code)
			}
			break
		}
		if f["offset"] != nil {
			seen, epoch = f.offset(), f.text("epoch")
		}
	}
	if seen == 0 || seen >= sent {
		t.Fatalf("it had %d of %d", seen, sent)
	}
	n.dialer = net.Dialer{}
	again, w := enter(t, n, inJSON, "acme/stuck", fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":%d}`, epoch, seen))
	ok := frame(w["rooms"].([]any)[0].(map[string]any)["ok"].(map[string]any))
	for at := ok.offset(); at < sent; at = again.until("event").offset() {
	}
}

// Clients that vanish by the hundred while publishing goes on: the rest miss
// nothing, and everything is given back.
func TestHundredsOfClientsAreKilled(t *testing.T) {
	const waves, killed, staying, events = 4, 150, 20, 300
	n := serve(t, func(s *setup) { // those who stay read between the waves, which take their time
		s.Limits.WriteTimeout, s.Limits.Ping = 5*time.Minute, 5*time.Minute
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	members := make([]*client, staying)
	for i := range members {
		members[i], _ = enter(t, n, wires[i%2], fmt.Sprintf("acme/m%d", i), "chat:1")
	}
	data := strings.Repeat("x", 512)
	wave := func(t *testing.T) {
		victims := make([]*client, killed)
		for i := range victims {
			victims[i], _ = enter(t, n, wires[i%2], fmt.Sprintf("acme/v%d", i), "chat:1", "chat:2")
		}
		var killing sync.WaitGroup
		killing.Go(func() {
			for _, v := range victims {
				v.say(`{"t":"publish","room":"chat:2","event":"message","data":"last words"}`)
				v.cut()
			}
		})
		for range events {
			n.publish(ctx, t, data)
		}
		killing.Wait()
	}
	var heap int64
	var goroutines int
	for i := range waves {
		t.Run(fmt.Sprint("wave ", i), wave)
		for _, m := range members {
			for m.order.rooms["chat:1"].offset < uint64((i+1)*events) {
				m.next()
			}
		}
		for n.Health().Sessions != staying {
			if ctx.Err() != nil {
				t.Fatalf("%d sessions are left", n.Health().Sessions)
			}
			runtime.Gosched()
		}
		if i == 1 { // what is made once is made by now, and the history is full
			heap, goroutines = liveHeap(), runtime.NumGoroutine()
		}
	}
	goBackTo(t, goroutines)
	if grew := liveHeap() - heap; grew > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grew)
	}
}
