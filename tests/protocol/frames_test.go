package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// padded is a ping frame of the protocol, n bytes long.
func padded(id, n int) []byte { return (&peer{id: id - 1}).pinging(n) }

// Section 1, framing: RFC 6455, 5.2.
func TestFraming(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		i := 0
		for _, size := range []int{0, 125, 126, 127, 128, 4096, 65535, maxMessage} {
			for _, chop := range []int{0, 1, 997} {
				if chop == 1 && size > 1000 {
					continue
				}
				i++
				t.Run(fmt.Sprintf("1.1.%d text of %d bytes in writes of %d", i, size, chop), func(t *testing.T) {
					t.Parallel()
					p := n.open(t, "pulse.v1.json", "")
					b := frame(fin|text, p.pinging(size))
					for step := max(chop, 1<<30*(1-min(chop, 1))); len(b) > 0; {
						k := min(step, len(b))
						p.send(b[:k])
						b = b[k:]
					}
					p.ponged()
				})
			}
		}
		t.Run("1.2.1 binary messages speak msgpack", func(t *testing.T) {
			p := n.open(t, "pulse.v1.msgpack", "")
			p.send(frame(fin|bin, []byte("\x82\xa1t\xa4ping\xa2id\x07")))
			if f := p.read(); f.op != bin || !bytes.Contains(f.payload, []byte("pong")) {
				t.Errorf("%+v", f)
			}
		})
		sixteen := func(n int) []byte { return binary.BigEndian.AppendUint16([]byte{126}, uint16(n)) }
		sixtyFour := func(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{127}, n) }
		unmasked := append([]byte{fin | text, 20}, padded(1, 20)...)
		zeroMask := append([]byte{fin | text, 0x80 | 20, 0, 0, 0, 0}, padded(1, 20)...)
		n.run(t, []script{
			{number: "1.3.1", rule: "a length in 16 bits that fits 7", send: frameWith(fin|text, sixteen(20), padded(1, 20)), close: 1002},
			{number: "1.3.2", rule: "a length in 64 bits that fits 16", send: frameWith(fin|text, sixtyFour(300), padded(1, 300)), close: 1002},
			{number: "1.3.3", rule: "the most significant bit of 64 is set", send: frameWith(fin|text, sixtyFour(1<<63), nil), close: 1002},
			{number: "1.3.4", rule: "a frame without a mask", send: unmasked, close: 1002},
			{number: "1.3.5", rule: "a mask of zeros is a mask", send: zeroMask},
			{number: "1.3.6", rule: "several frames in one write", send: join(frame(fin|text, padded(1, 0)), frame(fin|text, padded(2, 0)), frame(fin|ping, []byte("x"))), pongs: []string{"x"}},
			{number: "1.4.1", rule: "a message of the other kind is malformed", send: frame(fin|bin, padded(1, 0)), close: 4400},
			{number: "1.4.2", rule: "an empty message is malformed", send: frame(fin|text, nil), close: 4400},
		})
	})
}

// Section 2, pings: RFC 6455, 5.5.2 and 5.5.3.
func TestPings(t *testing.T) {
	long := strings.Repeat("p", 125)
	onBoth(t, func(t *testing.T, n *node) {
		n.run(t, []script{
			{number: "2.1", rule: "without a payload", send: frame(fin|ping, nil), pongs: []string{""}},
			{number: "2.2", rule: "with a payload", send: frame(fin|ping, []byte("Hello, world!")), pongs: []string{"Hello, world!"}},
			{number: "2.3", rule: "with bytes that are no text", send: frame(fin|ping, []byte{0, 0xFF, 0xFE, 0xC3}), pongs: []string{"\x00\xFF\xFE\xC3"}},
			{number: "2.4", rule: "of 125 bytes", send: frame(fin|ping, []byte(long)), pongs: []string{long}},
			{number: "2.5", rule: "of 126 bytes", send: frame(fin|ping, []byte(long+"p")), close: 1002},
			{number: "2.6", rule: "byte by byte", send: frame(fin|ping, []byte(long)), chop: 1, pongs: []string{long}},
			{number: "2.7", rule: "a pong that nobody asked for", send: frame(fin|pong, []byte("unsolicited"))},
			{number: "2.8", rule: "pongs of any payload, then a ping", send: join(frame(fin|pong, nil), frame(fin|pong, []byte(long)), frame(fin|ping, []byte("z"))), pongs: []string{"z"}},
			{number: "2.9", rule: "in fragments", send: join(frame(noFin|ping, []byte("a")), frame(fin|cont, []byte("b"))), close: 1002},
			{number: "2.10", rule: "a pong in fragments", send: frame(noFin|pong, []byte("a")), close: 1002},
		})
		t.Run("2.11 of many pings at least the last is answered", func(t *testing.T) {
			p := n.open(t, "pulse.v1.json", "")
			var b []byte
			for i := range 50 {
				b = append(b, frame(fin|ping, fmt.Appendf(nil, "%02d", i))...)
			}
			p.send(b)
			last := ""
			for _, f := range p.alive() {
				if f.op == pong {
					if s := string(f.payload); s <= last {
						t.Errorf("pong %q after %q", s, last)
					}
					last = string(f.payload)
				}
			}
			if last != "49" {
				t.Errorf("the last pong is %q", last)
			}
		})
	})
}

// Sections 3 and 4, reserved bits and opcodes: RFC 6455, 5.2.
func TestReserved(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		var scripts []script
		for i, bits := range []byte{rsv1, rsv2, rsv3, rsv1 | rsv2, rsv1 | rsv3, rsv2 | rsv3, rsv1 | rsv2 | rsv3} {
			scripts = append(scripts,
				script{number: fmt.Sprintf("3.%d.1", i+1), rule: fmt.Sprintf("bits %02X on text", bits), send: frame(fin|bits|text, padded(1, 0)), close: 1002},
				script{number: fmt.Sprintf("3.%d.2", i+1), rule: fmt.Sprintf("bits %02X on a ping", bits), send: frame(fin|bits|ping, nil), close: 1002},
				script{number: fmt.Sprintf("3.%d.3", i+1), rule: fmt.Sprintf("bits %02X on a close", bits), send: frame(fin|bits|cls, nil), close: 1002},
				script{number: fmt.Sprintf("3.%d.4", i+1), rule: fmt.Sprintf("bits %02X on a continuation", bits),
					send: join(frame(noFin|text, padded(1, 0)), frame(fin|bits|cont, nil)), close: 1002},
				script{number: fmt.Sprintf("3.%d.5", i+1), rule: fmt.Sprintf("bits %02X behind a good message", bits),
					send: join(frame(fin|text, padded(1, 0)), frame(fin|ping, []byte("first")), frame(fin|bits|text, nil)), close: 1002, pongs: []string{"first"}},
			)
		}
		for _, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
			scripts = append(scripts,
				script{number: fmt.Sprintf("4.%d.1", op), rule: "an opcode that is reserved", send: frame(fin|op, nil), close: 1002},
				script{number: fmt.Sprintf("4.%d.2", op), rule: "an opcode that is reserved, with a payload", send: frame(fin|op, []byte("payload")), close: 1002},
				script{number: fmt.Sprintf("4.%d.3", op), rule: "an opcode that is reserved, within a message", send: join(frame(noFin|text, padded(1, 0)), frame(fin|op, nil)), close: 1002},
			)
		}
		n.run(t, scripts)
	})
}

// Section 5, fragmentation: RFC 6455, 5.4.
func TestFragmentation(t *testing.T) {
	doc := padded(1, 60)
	onBoth(t, func(t *testing.T, n *node) {
		n.run(t, []script{
			{number: "5.1", rule: "two fragments", send: join(frame(noFin|text, doc[:9]), frame(fin|cont, doc[9:]))},
			{number: "5.2", rule: "two fragments, byte by byte", send: join(frame(noFin|text, doc[:9]), frame(fin|cont, doc[9:])), chop: 1},
			{number: "5.3", rule: "empty fragments", send: join(frame(noFin|text, nil), frame(noFin|cont, nil), frame(noFin|cont, doc), frame(fin|cont, nil))},
			{number: "5.4", rule: "a ping between fragments is answered at once",
				send: join(frame(noFin|text, doc[:9]), frame(fin|ping, []byte("between")), frame(fin|cont, doc[9:])), pongs: []string{"between"}},
			{number: "5.5", rule: "a pong between fragments", send: join(frame(noFin|text, doc[:9]), frame(fin|pong, nil), frame(fin|cont, doc[9:]))},
			{number: "5.6", rule: "a continuation of nothing", send: frame(fin|cont, doc), close: 1002},
			{number: "5.7", rule: "a continuation of nothing, not final", send: frame(noFin|cont, doc), close: 1002},
			{number: "5.8", rule: "a continuation behind a whole message", send: join(frame(fin|text, doc), frame(fin|cont, doc)), close: 1002},
			{number: "5.9", rule: "a new message within a message", send: join(frame(noFin|text, doc[:9]), frame(fin|text, doc)), close: 1002},
			{number: "5.10", rule: "a new message in fragments within a message", send: join(frame(noFin|text, doc[:9]), frame(noFin|bin, doc)), close: 1002},
			{number: "5.11", rule: "a close between fragments", send: join(frame(noFin|text, doc[:9]), closing(1000, "")), close: 1000},
			{number: "5.12", rule: "a close in fragments", send: frame(noFin|cls, nil), close: 1002},
		})
		t.Run("5.13 one byte a fragment", func(t *testing.T) {
			p := n.open(t, "pulse.v1.json", "")
			doc := p.pinging(300)
			b := frame(noFin|text, doc[:1])
			for i := 1; i < len(doc)-1; i++ {
				b = append(b, frame(noFin|cont, doc[i:i+1])...)
			}
			p.send(append(b, frame(fin|cont, doc[len(doc)-1:])...))
			p.ponged()
		})
	})
}

// Section 9, limits: PROTOCOL.md 3, "Size".
func TestLimits(t *testing.T) {
	half := bytes.Repeat([]byte(" "), maxMessage/2)
	declared := func(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{127}, n) }
	onBoth(t, func(t *testing.T, n *node) {
		n.run(t, []script{
			{number: "9.1", rule: "as long as may be", send: frame(fin|text, padded(1, maxMessage))},
			{number: "9.2", rule: "one byte more", send: frame(fin|text, padded(1, maxMessage+1)), close: 1009},
			{number: "9.3", rule: "a header alone is enough", send: frameWith(fin|text, declared(maxMessage+1), nil), close: 1009},
			{number: "9.4", rule: "a header that declares 2^62", send: frameWith(fin|text, declared(1<<62), nil), close: 1009},
			{number: "9.5", rule: "fragments in all as long as may be", send: join(frame(noFin|text, padded(1, maxMessage/2)), frame(fin|cont, half))},
			{number: "9.6", rule: "fragments in all too long, by a header", send: join(frame(noFin|text, half), frame(noFin|cont, half), frameWith(fin|cont, []byte{1}, nil)), close: 1009},
			{number: "9.7", rule: "what came before counts", send: join(frame(fin|ping, []byte("x")), frameWith(fin|text, declared(1<<40), nil)), close: 1009, pongs: []string{"x"}},
			{number: "9.8", rule: "sums begin anew with each message", send: join(frame(fin|text, padded(1, maxMessage)), frame(noFin|text, padded(2, maxMessage/2)), frame(fin|cont, half))},
		})
	})
}
