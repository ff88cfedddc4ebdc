package protocol

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// seeds are frames that are in order, of every type; strangers send what becomes
// of them by chance.
var seeds = []string{
	`{"t":"hello","token":"x","rooms":[{"room":"storm"},{"room":"storm:2","epoch":"e","offset":1}]}`,
	`{"t":"join","id":1,"room":"storm","presence":false,"data":{"a":[1,2.5,null,true,"x"]}}`,
	`{"t":"join","id":2,"room":"storm:3","epoch":"abc","offset":9007199254740991,"echo":false}`,
	`{"t":"leave","id":3,"room":"storm"}`,
	`{"t":"publish","id":4,"room":"storm","event":"said","data":{"deep":[[[[[[1]]]]]],"n":18446744073709551615},"dedup_key":"k","ttl_ms":5}`,
	`{"t":"publish","room":"storm","event":"said","data":"\ud83d\ude00 text"}`,
	`{"t":"command","id":5,"room":"storm","name":"do","data":1,"deadline_ms":10,"dedup_key":"k"}`,
	`{"t":"ack","room":"storm","epoch":"e","offset":3}`,
	`{"t":"history","id":6,"room":"storm","limit":10,"reverse":true}`,
	`{"t":"presence","id":7,"room":"storm","limit":5,"after":"bob"}`,
	`{"t":"token","id":8,"token":"y"}`,
	`{"t":"ping","id":9}`, `{"t":"pong"}`, `{"t":"unheard of","id":10}`,
}

// hostile is put into frames here and there.
var hostile = []string{
	`"`, `\`, `{`, `}`, `[`, `]`, `,`, `:`, `null`, `1e999`, `-0`, `0x1`, "\x00", "\xff", "\xed\xa0\x80", `\ud800`, `\u0000`,
	strings.Repeat("[", 100), strings.Repeat("9", 400), `"t":"ping"`, `"id":0`, `"id":-1`, `"id":1.5`, `"room":"../.."`, `"__proto__":{}`,
}

// stranger sends what comes to its mind.
type stranger struct {
	*rand.Rand
	t      testing.TB
	n      *node
	packed [][]byte // seeds in msgpack

	// Of the visit that goes on.
	msgpack bool
	packer  *packer // nil: it offers no compression
}

// inMsgpack are frames in the other codec.
func inMsgpack(t testing.TB, frames ...string) (packed [][]byte) {
	t.Helper()
	for _, f := range frames {
		d, err := codec.MakeData(codec.JSON, []byte(f))
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, d.In(codec.Msgpack))
	}
	return packed
}

// codes that PROTOCOL.md defines for a server to send, but 1011: that would be a
// fault of the node.
var defined = map[uint16]bool{
	0: true, 1000: true, 1001: true, 1002: true, 1003: true, 1007: true, 1008: true, 1009: true, 1012: true, 1013: true,
	4400: true, 4401: true, 4403: true, 4409: true, 4500: true, 4529: true,
}

// visit is one connection; it returns the code that it was closed with, if it was.
func (s *stranger) visit() (code uint16, err error) {
	tcp, err := net.Dial("tcp", s.n.addr)
	if err != nil {
		return 0, err
	}
	defer tcp.Close()
	_ = tcp.SetDeadline(time.Now().Add(5 * time.Second))
	c := tcp
	if s.n.tls {
		c = tls.Client(tcp, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	}
	out := s.opening()
	for range s.IntN(20) {
		out = append(out, s.message()...)
	}
	if s.IntN(4) == 0 {
		s.mutate(out)
	}
	for len(out) > 0 {
		k := 1 + s.IntN(len(out))
		if _, err := c.Write(out[:k]); err != nil {
			break // it was refused: what it was told is to be read
		}
		out = out[k:]
	}
	switch s.IntN(3) {
	case 0: // it goes without a word
		if s.IntN(2) == 0 {
			_ = tcp.(*net.TCPConn).SetLinger(0)
		}
		return 0, nil
	case 1:
		_, _ = c.Write(closing(1000, ""))
	}
	// Of what was left open the node hears the end.
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
	return closeCode(c), nil
}

// opening is a handshake, mostly a good one, and mostly a hello.
func (s *stranger) opening() []byte {
	head := request
	s.msgpack, s.packer = s.IntN(2) == 0, nil
	if s.msgpack {
		head += "Sec-WebSocket-Protocol: pulse.v1.msgpack\r\n"
	}
	if s.IntN(2) == 0 {
		head += "Sec-WebSocket-Extensions: permessage-deflate\r\n"
		s.packer = newPacker(s.t, s.IntN(10))
	}
	out := []byte(head + "\r\n")
	if s.IntN(10) == 0 {
		s.mutate(out)
	}
	if s.IntN(4) > 0 {
		out = append(out, s.wrap(s.doc(0))...)
	}
	return out
}

// doc is a seed in the visit's codec.
func (s *stranger) doc(i int) []byte {
	if s.msgpack {
		return bytes.Clone(s.packed[i])
	}
	return []byte(seeds[i])
}

// wrap makes a message of a document, compressed or not.
func (s *stranger) wrap(doc []byte) []byte {
	head := byte(fin | text)
	if s.msgpack {
		head = fin | bin
	}
	if s.packer != nil && s.IntN(2) == 0 {
		head, doc = head|rsv1, s.packer.pack(doc)
		if s.IntN(8) == 0 {
			s.mutate(doc)
		}
	}
	if s.IntN(10) == 0 {
		head = byte(s.Uint32())
	}
	if len(doc) > 125 && head&8 != 0 {
		doc = doc[:125]
	}
	if cut := s.IntN(len(doc) + 1); s.IntN(5) == 0 {
		return join(frame(head&^fin, doc[:cut]), frame(fin|cont, doc[cut:]))
	}
	return frame(head, doc)
}

// message is a seed that something has happened to, as one frame or in fragments.
func (s *stranger) message() []byte {
	doc := s.doc(s.IntN(len(seeds)))
	for range s.IntN(4) {
		switch s.IntN(4) {
		case 0:
			s.mutate(doc)
		case 1:
			h := hostile[s.IntN(len(hostile))]
			at := s.IntN(len(doc) + 1)
			doc = slices.Insert(doc, at, []byte(h)...)
		case 2:
			doc = doc[:s.IntN(len(doc)+1)]
		case 3:
			doc = append(doc, doc...)
		}
	}
	return s.wrap(doc)
}

func (s *stranger) mutate(b []byte) {
	for range 1 + s.IntN(3) {
		if len(b) > 0 {
			b[s.IntN(len(b))] = byte(s.Uint32())
		}
	}
}

// closeCode reads to the end and returns the code of the close frame, if one came.
func closeCode(c net.Conn) (code uint16) {
	var all []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil || len(all) > 8<<20 {
			break
		}
	}
	_, b, ok := strings.Cut(string(all), "\r\n\r\n")
	if !ok || !strings.HasPrefix(string(all), "HTTP/1.1 101") {
		return 0
	}
	for len(b) >= 2 {
		n, head := int(b[1]), 2
		switch {
		case n == 126 && len(b) >= 4:
			n, head = int(binary.BigEndian.Uint16([]byte(b[2:]))), 4
		case n == 127 && len(b) >= 10:
			n, head = int(binary.BigEndian.Uint64([]byte(b[2:]))), 10
		}
		if len(b) < head+n {
			break
		}
		if b[0]&15 == cls && n >= 2 {
			return binary.BigEndian.Uint16([]byte(b[head:]))
		}
		b = b[head+n:]
	}
	return 0
}

// neighbour publishes numbers into a room of its own and gets each of them back
// once, in order, until it is stopped.
func (p *peer) neighbour(stop <-chan struct{}) (n int, err error) {
	for {
		select {
		case <-stop:
			return n, nil
		default:
		}
		n++
		doc, head := say(p.room, fmt.Sprint(n)), byte(fin|text)
		if p.msgpack {
			doc, head = inMsgpack(p.t, string(doc))[0], fin|bin
		}
		if _, err := p.Write(frame(head, doc)); err != nil {
			return n, err
		}
		for {
			f, err := p.next()
			if err != nil {
				return n, err
			}
			text := p.inflated(f)
			if p.msgpack {
				d, err := codec.MakeData(codec.Msgpack, text)
				if err != nil {
					return n, err
				}
				text = d.In(codec.JSON)
			}
			var event struct {
				T, Data string
				Offset  int
			}
			if err := json.Unmarshal(text, &event); err != nil {
				return n, err
			}
			if event.T != "event" {
				continue // a ping, or a status
			}
			if event.Data != fmt.Sprint(n) || event.Offset != n {
				return n, fmt.Errorf("event %d with %q, want %d", event.Offset, event.Data, n)
			}
			break
		}
	}
}

// Strangers send bytes by chance, hundreds of them at once, in both codecs,
// compressed and not, over TCP and over TLS; the node lives, its neighbours miss
// nothing, every close has a code that is defined, and nothing of the strangers
// stays.
func TestStorm(t *testing.T) {
	packed := inMsgpack(t, seeds...)
	onBoth(t, func(t *testing.T, n *node) { storm(t, n, packed) })
}

func storm(t *testing.T, n *node, packed [][]byte) {
	const strangers, visits = 8, 60
	stop := make(chan struct{})
	var quiet sync.WaitGroup
	neighbours := 0
	for _, subprotocol := range []string{"pulse.v1.json", "pulse.v1.msgpack"} {
		for _, offer := range []string{"", "permessage-deflate"} {
			p := n.open(t, subprotocol, offer)
			_ = p.SetDeadline(time.Now().Add(2 * time.Minute))
			neighbours++
			quiet.Go(func() {
				events, err := p.neighbour(stop)
				if err != nil || events < 10 {
					t.Errorf("a neighbour after %d events: %v", events, err)
				}
			})
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	seed := uint64(time.Now().UnixNano())
	var all sync.WaitGroup
	var mu sync.Mutex
	codes := map[uint16]int{}
	for i := range strangers {
		all.Go(func() {
			s := &stranger{Rand: rand.New(rand.NewPCG(seed, uint64(i))), t: t, n: n, packed: packed}
			for range visits {
				code, err := s.visit()
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	close(stop)
	quiet.Wait()
	for code := range codes {
		if !defined[code] {
			t.Errorf("closed %d (seed %d)", code, seed)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > goroutines+neighbours; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before the storm there were %d (seed %d)", runtime.NumGoroutine(), goroutines, seed)
		}
		time.Sleep(10 * time.Millisecond) // polls for what ends by itself
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	// What stays for a while: histories, records of detached sessions, pooled buffers.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 24<<20 {
		t.Errorf("the heap has grown by %d bytes (seed %d)", grown, seed)
	}
	t.Log("closed:", codes)
}
