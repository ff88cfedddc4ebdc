package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/engine"
)

// neighbours are members of a room who must miss nothing, whatever others do.
type neighbours struct {
	t    *testing.T
	node *node
	all  []*client
	sent int
}

func newNeighbours(t *testing.T, n *node) *neighbours {
	h := &neighbours{t: t, node: n}
	for _, in := range wires {
		c, _ := enter(t, n, in, "acme/neighbour-"+string(in), "chat:1")
		h.all = append(h.all, c)
	}
	return h
}

// whole publishes one more event and makes sure that all have all.
func (h *neighbours) whole() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	h.sent++
	if _, err := h.node.Publish(ctx, engine.Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: h.sent}); err != nil {
		h.t.Fatal(err)
	}
	for _, c := range h.all {
		if f := c.until("event"); fmt.Sprint(f["data"]) != fmt.Sprint(h.sent) {
			h.t.Fatalf("event %v of %d", f, h.sent)
		}
	}
}

// CASES B113 (vmihailenco/msgpack#401, #376), B115 (vmihailenco/msgpack#260), B116
// (vmihailenco/msgpack#289, #327) and B118 (socket.io#3036, #1980, #2047): frames that
// crash, exhaust or mislead decoders. The node lives, and neighbours miss nothing.
func TestB113_B115_B116_B118_HostileFrames(t *testing.T) {
	n := serve(t, nil)
	h := newNeighbours(t, n)
	open := hex.EncodeToString(pack(nil, "open"))
	hostile := map[string]struct {
		in    wire
		frame string // hex, or JSON
		code  int    // 0: it is answered, and the connection goes on
	}{
		"array of 2^32-1":                   {inMsgpack, "dd ffffffff", 4400},
		"map of 2^32-1":                     {inMsgpack, "df ffffffff", 4400},
		"bin of 2^32-1":                     {inMsgpack, "c6 ffffffff", 4400},
		"text of 2^32-1":                    {inMsgpack, "db ffffffff", 4400},
		"extension of 2^32-1":               {inMsgpack, "c9 ffffffff", 4400},
		"nested array of 2^25":              {inMsgpack, "92 dd 02000000", 4400},
		"a map of 2^32-1 in a field":        {inMsgpack, "82 a174 a470696e67 " + open + " df ffffffff", 4400},
		"a map as key of the frame":         {inMsgpack, "81 81 a178 c3 c3", 4400},
		"a map as key within a field":       {inMsgpack, "82 a174 a470696e67 " + open + " 81 81 a178 c3 c3", 4400},
		"numbers as keys of the frame":      {inMsgpack, "82 a174 a470696e67 01 02", 4400},
		"a reserved byte":                   {inMsgpack, "c1", 4400},
		"a hundred thousand open arrays":    {inMsgpack, strings.Repeat("91", 60_000), 4400},
		"half a frame":                      {inMsgpack, "82 a174", 4400},
		"a valid frame and one byte":        {inMsgpack, "82 a174 a470696e67 a26964 01 00", 4400},
		"sixty thousand open brackets":      {inJSON, strings.Repeat("[", 60_000), 4400},
		"sixty thousand open objects":       {inJSON, strings.Repeat(`{"a":`, 12_000), 4400},
		"NaN":                               {inJSON, `{"t":"ping","id":NaN}`, 4400},
		"a number of sixty thousand digits": {inJSON, `{"t":"ping","x":` + strings.Repeat("9", 60_000) + `}`, 0},
		"keys in two cases":                 {inJSON, `{"t":"ping","T":"hello","ID":5}`, 0},
		"a kind of the server":              {inJSON, `{"t":"event","room":"chat:1","event":"message","data":1,"eid":"x","epoch":"e","offset":9}`, 0},
		"left, from a client":               {inJSON, `{"t":"left","room":"chat:1","reason":"kicked"}`, 0},
		"an id of 2^53+1":                   {inJSON, `{"t":"leave","id":9007199254740993,"room":"chat:1"}`, 0},
	}
	var before, after runtime.MemStats
	for name, c := range hostile {
		bytes := []byte(c.frame)
		if c.in == inMsgpack {
			bytes = unhex(t, c.frame)
		}
		for _, greeted := range []bool{true, false} {
			eve := dial(t, n, c.in)
			if greeted {
				eve.hello("acme/eve", "chat:1")
			}
			runtime.ReadMemStats(&before)
			eve.raw(c.in.kind(), bytes)
			if c.code != 0 || !greeted {
				if code, _ := eve.closed(); code != 4400 {
					t.Errorf("%s, greeted %v: closed %d", name, greeted, code)
				}
			} else {
				eve.say(`{"t":"ping","id":1}`)
				for {
					f, err := eve.receive()
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if f.text("t") == "pong" && fmt.Sprint(f["id"]) == "1" {
						break
					}
				}
				eve.cut()
			}
			runtime.ReadMemStats(&after)
			if grew := after.TotalAlloc - before.TotalAlloc; grew > 4<<20 {
				t.Errorf("%s: %d bytes were allocated", name, grew)
			}
			h.whole()
		}
	}
}

// masked is a frame of a client with a mask of zeros.
func masked(opcode byte, payload []byte) []byte {
	head := []byte{0x80 | opcode, 0x80 | byte(len(payload)), 0, 0, 0, 0}
	return append(head, payload...)
}

// CASE B004 (http-kit#259, tinymux#792): one close is answered by one close, and
// nothing behind it is looked at.
func TestB004_NothingBehindACloseIsLookedAt(t *testing.T) {
	n := serve(t, nil)
	h := newNeighbours(t, n)
	eve, _ := enter(t, n, inJSON, "acme/eve", "chat:1")
	publish := []byte(`{"t":"publish","room":"chat:1","event":"message","data":0}`)
	bye := masked(8, []byte{0x03, 0xe8})
	eve.tcp.Write(bytes.Join([][]byte{bye, masked(1, publish), bye, bytes.Repeat([]byte{0xa5}, 1<<20)}, nil)) // it may be cut off
	if err := eve.tcp.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	buf := make([]byte, 4096)
	for {
		k, err := eve.tcp.Read(buf)
		got = append(got, buf[:k]...)
		if err != nil {
			if nerr := net.Error(nil); errors.As(err, &nerr) && nerr.Timeout() {
				t.Fatal("the socket is not closed")
			}
			break
		}
	}
	if !bytes.Equal(got, []byte{0x88, 2, 0x03, 0xe8}) {
		t.Errorf("answered % x", got)
	}
	h.whole()
}

// CASE B011 (lesismal/nbio#232): a reset by the client, a close by the server, a
// missing pong and broadcasts meet on one connection. It ends once, for everybody.
func TestB011_EndsThatMeet(t *testing.T) {
	n := serve(t, func(s *setup) { s.Limits.Ping, s.Limits.PongTimeout = 30*time.Millisecond, 30*time.Millisecond })
	const connections = 300
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var flood, victims sync.WaitGroup
	stop := make(chan struct{})
	flood.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := n.Publish(ctx, engine.Event{Tenant: "acme", Room: "chat:1", Name: "typing", Data: i}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for worker := range 6 {
		victims.Go(func() {
			for i := worker; i < connections; i += 6 {
				subject := fmt.Sprintf("victim%d", i)
				c := dialWith(t, n, wires[i%2], func(o *websocket.DialOptions) {
					o.OnPingReceived = func(context.Context, []byte) bool { return i%3 > 0 }
				})
				c.say(`{"t":"hello","token":"acme/%s","rooms":[{"room":"chat:1"}]}`, subject)
				// On a busy machine it may be closed for its pong before it is welcome.
				if f, err := c.receive(); err == nil && f.text("t") != "welcome" {
					t.Errorf("no welcome: %v", f)
				}
				var both sync.WaitGroup
				both.Go(func() {
					if _, err := n.Disconnect(ctx, "acme", subject); err != nil {
						t.Error(err)
					}
				})
				both.Go(func() {
					if i%2 == 0 {
						c.cut()
					}
				})
				both.Wait()
				for err := error(nil); err == nil; {
					_, _, err = c.ws.Read(ctx)
				}
			}
		})
	}
	victims.Wait()
	close(stop)
	flood.Wait()
	for n.Health().Sessions != 0 {
		if ctx.Err() != nil {
			t.Fatalf("%d sessions are left", n.Health().Sessions)
		}
		runtime.Gosched()
	}
}
