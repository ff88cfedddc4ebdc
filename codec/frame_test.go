package codec

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// countingProtocol counts how often something is encoded.
type countingProtocol struct {
	Protocol
	encoded atomic.Int64
}

func (p *countingProtocol) Append(dst []byte, d Document) []byte {
	p.encoded.Add(1)
	runtime.Gosched() // lets others come to the same frame meanwhile
	return p.Protocol.Append(dst, d)
}

func testFramings() (text, binary *Framing, encoded [2]*countingProtocol) {
	encoded = [2]*countingProtocol{{Protocol: Protocols()[JSON]}, {Protocol: Protocols()[Msgpack]}}
	text = &Framing{Name: "text", Protocol: encoded[0], Wrap: func(dst, doc []byte) []byte { return append(append(dst, "data:"...), doc...) }}
	binary = &Framing{Name: "binary", Protocol: encoded[1]}
	return text, binary, encoded
}

func TestFrameIsEncodedOncePerFraming(t *testing.T) {
	text, binary, encoded := testFramings()
	twin := &Framing{Name: "text", Protocol: encoded[0]}
	e := benchEvent(JSON)
	for range 3 {
		if got, want := e.Bytes(text), append([]byte("data:"), Protocols()[JSON].Append(nil, e)...); !bytes.Equal(got, want) {
			t.Fatalf("%s, want %s", got, want)
		}
		if got, want := e.Bytes(binary), Protocols()[Msgpack].Append(nil, e); !bytes.Equal(got, want) {
			t.Fatalf("%x, want %x", got, want)
		}
	}
	if a, b := encoded[0].encoded.Load(), encoded[1].encoded.Load(); a != 1 || b != 1 {
		t.Errorf("encoded %d and %d times", a, b)
	}
	if e.Bytes(twin); encoded[0].encoded.Load() != 2 {
		t.Error("framings are not told apart by identity")
	}
}

func TestFrameConcurrently(t *testing.T) {
	text, binary, encoded := testFramings()
	const rounds = 200
	for range rounds {
		f := NewFrame(&Left{Room: "chat", Reason: LeftKicked})
		var first [2]atomic.Pointer[byte]
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			all.Go(func() {
				<-start
				for i, fr := range []*Framing{text, binary, text, binary} {
					b := &f.Bytes(fr)[0]
					if first := &first[i%2]; !first.CompareAndSwap(nil, b) && first.Load() != b {
						t.Error("two sessions got different bytes")
					}
				}
			})
		}
		close(start)
		all.Wait()
	}
	if a, b := encoded[0].encoded.Load(), encoded[1].encoded.Load(); a != rounds || b != rounds {
		t.Errorf("%d frames were encoded %d and %d times", rounds, a, b)
	}
}

// A delivery allocates nothing after the first one of its framing.
func TestFrameAllocates(t *testing.T) {
	text, binary, _ := testFramings()
	e := benchEvent(JSON)
	e.Bytes(text)
	e.Bytes(binary)
	if n := testing.AllocsPerRun(1000, func() { e.Bytes(text); e.Bytes(binary) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Encoding into a buffer that is large enough allocates nothing, transcoding
// included.
func TestAppendAllocates(t *testing.T) {
	for _, p := range Protocols() {
		for _, from := range []Codec{JSON, Msgpack} {
			e := benchEvent(from)
			buf := make([]byte, 0, 4096)
			if n := testing.AllocsPerRun(100, func() { buf = p.Append(buf[:0], e) }); n != 0 {
				t.Errorf("%s with data in %s: %v allocations", p.Name(), from, n)
			}
		}
	}
}

// The buffer that frames are encoded in is used again; their bytes are not in it.
func TestFrameBytesAreTheirOwn(t *testing.T) {
	_, binary, _ := testFramings()
	a := NewFrame(&Status{Reason: "a"}).Bytes(binary)
	kept := string(a)
	for range 10 {
		NewFrame(&Status{Reason: "bbbb"}).Bytes(binary)
	}
	if string(a) != kept {
		t.Error("bytes of a frame changed")
	}
}

func TestEventAt(t *testing.T) {
	text, _, _ := testFramings()
	e := NewEvent(Topic{"acme", "chat"}, "said", jsonData(`1`), Origin{EID: "e1", From: "bob", Session: "s", TS: 5})
	bare := string(e.Bytes(text))
	at := e.At(Position{"ep", 3})
	if got := string(at.Bytes(text)); got == bare || got != `data:{"t":"event","room":"chat","event":"said","data":1,"eid":"e1","epoch":"ep","offset":3,"from":"bob","session":"s","ts":5}` {
		t.Error(got)
	}
	if !e.Position.IsZero() || string(e.Bytes(text)) != bare {
		t.Error("At changed the event itself")
	}
	if &at.Data.Raw()[0] != &e.Data.Raw()[0] {
		t.Error("data is not shared")
	}
}

func TestEventSize(t *testing.T) {
	e := NewEvent(Topic{"acme", "chat"}, "said", jsonData(`"12345"`), Origin{EID: "e1", From: "bob", Session: "s"}).At(Position{"ep", 3})
	if got := e.Size() - eventOverhead; got != 4+4+4+7+2+3+1+2 {
		t.Errorf("texts and data count %d", got)
	}
}

// Texts that an embedder or a client chose cannot break a frame: what is not
// UTF-8 is replaced, what JSON does not allow is escaped.
func TestTextsCannotBreakFrames(t *testing.T) {
	for in, want := range map[string]string{"a\xffb": "a\uFFFDb", "\"\\\n\x00\u2028": "\"\\\n\x00\u2028"} {
		d := &Welcome{Rooms: []WelcomeRoom{{Room: in, Err: NewError(CodeBadRequest, in)}}}
		for _, p := range Protocols() {
			got, err := DecodeDocument(p.Codec(), p.Append(nil, d))
			if err != nil {
				t.Fatal(err)
			}
			if room := got.(*Welcome).Rooms[0]; room.Room != want || room.Err.Message != want {
				t.Errorf("%s: %q became %q", p.Name(), in, room.Room)
			}
		}
	}
}

// A presence frame says one thing, whatever else is filled in.
func TestPresenceFrameSaysOneThing(t *testing.T) {
	someone := []Member{{Subject: "alice", Sessions: 1}}
	full := &PresenceFrame{Full: true, Members: someone, Join: someone, Update: someone, Leave: []string{"bob"}, Count: 1}
	if got := Protocols()[JSON].Append(nil, full); bytes.Contains(got, []byte("join")) || bytes.Contains(got, []byte("update")) || bytes.Contains(got, []byte("leave")) {
		t.Errorf("%s", got)
	}
	changes := &PresenceFrame{Members: someone, Leave: []string{"bob"}, Count: 1}
	if got := Protocols()[JSON].Append(nil, changes); bytes.Contains(got, []byte("members")) || bytes.Contains(got, []byte("count")) {
		t.Errorf("%s", got)
	}
}
