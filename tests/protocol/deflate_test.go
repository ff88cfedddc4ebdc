package protocol

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

const tail = "\x00\x00\xff\xff"

// packer is the client's side of compression, with a context that goes on.
type packer struct {
	out bytes.Buffer
	w   *flate.Writer
}

func newPacker(t testing.TB, level int) *packer {
	t.Helper()
	k := new(packer)
	var err error
	if k.w, err = flate.NewWriter(&k.out, level); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *packer) pack(b []byte) []byte {
	k.out.Reset()
	_, _ = k.w.Write(b)
	_ = k.w.Flush()
	return bytes.Clone(bytes.TrimSuffix(k.out.Bytes(), []byte(tail)))
}

// inflated is a server's payload, each message by itself.
func (p *peer) inflated(f got) []byte {
	p.t.Helper()
	if !f.packed {
		return f.payload
	}
	r := flate.NewReader(io.MultiReader(bytes.NewReader(f.payload), strings.NewReader(tail+"\x01"+tail)))
	b, err := io.ReadAll(r)
	if err != nil {
		p.t.Fatalf("a compressed frame of the server: %v", err)
	}
	return b
}

// Section 12, compression of messages of all sizes, with each offer of window and
// takeover: RFC 7692, 7.
func TestCompression(t *testing.T) {
	offers := []struct {
		number, offer string
		takeover      bool
	}{
		{"12.1", "permessage-deflate", true},
		{"12.2", "permessage-deflate; client_no_context_takeover", false},
		{"12.3", "permessage-deflate; client_max_window_bits", true},
		{"12.4", "permessage-deflate; client_max_window_bits=15; server_no_context_takeover", true},
		{"12.5", "permessage-deflate; server_max_window_bits=9, permessage-deflate; client_no_context_takeover", false},
	}
	onBoth(t, func(t *testing.T, n *node) {
		for _, o := range offers {
			for level, content := range map[int]string{1: "the same over and over ", 9: "letters of chance ", 0: "stored "} {
				t.Run(fmt.Sprintf("%s %s, %q at level %d", o.number, o.offer, content, level), func(t *testing.T) {
					t.Parallel()
					p := n.open(t, "pulse.v1.json", o.offer)
					if !p.deflate {
						t.Fatal("no compression was agreed")
					}
					random := rand.New(rand.NewPCG(1, uint64(level)))
					k := newPacker(t, level)
					for _, size := range []int{0, 1, 16, 63, 64, 125, 126, 1024, 8192, 32768, 60000, 10} {
						said := strings.Repeat(content, size/len(content)+1)[:size]
						if level == 9 {
							b := []byte(said)
							for i := range b {
								b[i] = 'a' + byte(random.IntN(26))
							}
							said = string(b)
						}
						if !o.takeover {
							k = newPacker(t, level)
						}
						doc := k.pack(say(p.room, said))
						// In one frame, or in fragments of which only the first has the bit.
						if cut := len(doc) / 3; size%2 == 0 {
							p.send(join(frame(noFin|rsv1|text, doc[:cut]), frame(noFin|cont, doc[cut:2*cut]), frame(fin|cont, doc[2*cut:])))
						} else {
							p.send(frame(fin|rsv1|text, doc))
						}
						f := p.read()
						var event struct{ T, Data string }
						if err := json.Unmarshal(p.inflated(f), &event); err != nil || event.T != "event" || event.Data != said {
							t.Fatalf("%d bytes: %v, %.60s", size, err, p.inflated(f))
						}
						if wantPacked := level == 1 && size > 1000; wantPacked && !f.packed {
							t.Errorf("%d bytes that repeat came as they are", size)
						}
						p.send(frame(fin|text, p.pinging(0))) // not compressed, between
						p.ponged()
					}
				})
			}
		}
	})
}

// Section 13, what RFC 7692 forbids or allows within a compressed message.
func TestCompressedMessages(t *testing.T) {
	doc := padded(1, 200)
	pack := func(b []byte) []byte { return newPacker(t, 6).pack(b) }
	final := func(b []byte) []byte { // with a last block, which 7.2.3.4 allows
		var out bytes.Buffer
		w, _ := flate.NewWriter(&out, 6)
		_, _ = w.Write(b)
		_ = w.Close()
		return append(out.Bytes(), 0)
	}
	onBoth(t, func(t *testing.T, n *node) {
		for _, s := range []script{
			{number: "13.1", rule: "compressed", send: frame(fin|rsv1|text, pack(doc))},
			{number: "13.2", rule: "not compressed, though it might be", send: frame(fin|text, doc)},
			{number: "13.3", rule: "a last block", send: frame(fin|rsv1|text, final(doc))},
			{number: "13.4", rule: "the bit on a continuation", send: join(frame(noFin|rsv1|text, pack(doc)[:9]), frame(fin|rsv1|cont, pack(doc)[9:])), close: 1002},
			{number: "13.5", rule: "the bit on a ping", send: frame(fin|rsv1|ping, nil), close: 1002},
			{number: "13.6", rule: "other bits beside", send: frame(fin|rsv1|rsv2|text, pack(doc)), close: 1002},
			{number: "13.7", rule: "bytes that are no deflate", send: frame(fin|rsv1|text, []byte{0xFF, 0xFF, 0xFF}), close: 1002},
			{number: "13.8", rule: "a reference before the beginning", send: frame(fin|rsv1|text, refersBack(t)), close: 1002},
			{number: "13.9", rule: "inflated as long as may be", send: frame(fin|rsv1|text, pack(padded(1, maxMessage)))},
			{number: "13.10", rule: "inflated one byte more", send: frame(fin|rsv1|text, pack(padded(1, maxMessage+1))), close: 1009},
			{number: "13.11", rule: "a bomb", send: frame(fin|rsv1|text, pack(make([]byte, 32<<20))[:32000]), close: 1009},
			{number: "13.12", rule: "text that is not UTF-8 once inflated", send: frame(fin|rsv1|text, pack(say("echo", "\xC3("))), close: 1007},
			{number: "13.13", rule: "a ping between compressed fragments", pongs: []string{"x"},
				send: join(frame(noFin|rsv1|text, pack(doc)[:9]), frame(fin|ping, []byte("x")), frame(fin|cont, pack(doc)[9:]))},
			{number: "13.14", rule: "a closed connection takes no more", send: join(closing(1000, ""), frame(fin|rsv1|text, pack(doc))), close: 1000},
		} {
			t.Run(s.number+" "+s.rule, func(t *testing.T) {
				t.Parallel()
				p := n.open(t, "pulse.v1.json", "permessage-deflate")
				p.play(s)
			})
		}
	})
}

// refersBack is the second of two messages that share a context, without the first.
func refersBack(t *testing.T) []byte {
	k := newPacker(t, 9)
	k.pack([]byte(strings.Repeat("0123456789abcdefghijklmnop", 100)))
	b := k.pack([]byte(strings.Repeat("0123456789abcdefghijklmnop", 100)))
	if len(b) > 40 {
		t.Fatalf("%d bytes do not refer back", len(b))
	}
	return b
}
