package ws

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/yaza-dev/pulse/codec"
)

// checker follows the bytes of one client and says how far they keep RFC 6455. It
// is pure: no socket, no clock, and nothing is allocated for what a client merely
// declares. It needs to look at headers and at the payload of a close only; text
// is checked by whoever assembles messages.
//
// Of the reserved bits only the one that says that a message is compressed can have
// been agreed; such a message may be a little larger than it will be.
type checker struct {
	max     int  // immutable; the longest message, in bytes
	deflate bool // immutable; compression was agreed

	// The frame in progress.
	header [14]byte
	have   uint8  // bytes of header that came
	need   uint8  // bytes of header in all, as far as is known; 0 before the second byte
	size   uint64 // payload length, as declared
	left   uint64 // payload bytes still to come; the header is whole then

	// The message in progress.
	fragmented bool // more fragments must come
	packed     bool // it is compressed
	sum        uint64

	closing []byte // unmasked payload of a close frame, so far
}

// verdict is why nothing more is read: the peer's close, or its violation.
type verdict struct {
	cause codec.Cause
	reply []byte // the close frame that answers it
}

func violation(cause codec.Cause, reason string) *verdict {
	return &verdict{cause, closeFrame(cause.CloseCode(), reason)}
}

// Step takes the bytes that came next. It returns how many of them are in order:
// all, or with a verdict those before the byte that brought it. That byte is the
// last of a close frame, or makes a violation certain, so that whoever is given
// only what is in order never has such a frame whole. After a verdict Step must
// not be called again.
func (c *checker) Step(p []byte) (int, *verdict) {
	for i := 0; i < len(p); {
		if c.left == 0 {
			if n := c.common(p[i:]); n > 0 {
				i += n
				continue
			}
			c.header[c.have] = p[i]
			c.have++
			if v := c.checkHeader(); v != nil {
				return i, v
			}
			i++
			continue
		}
		n := int(min(c.left, uint64(len(p)-i)))
		if c.opcode() == opClose {
			c.unmask(p[i : i+n])
		}
		i += n
		if c.left -= uint64(n); c.left == 0 {
			if c.opcode() == opClose {
				return i - 1, c.checkClose()
			}
			c.have, c.need = 0, 0
		}
	}
	return len(p), nil
}

// common passes a header that is there whole and begins a message that is neither
// fragmented nor compressed, since nearly all are such. It returns its length; 0
// leaves it, be it in order or not, to be looked at byte by byte.
func (c *checker) common(p []byte) int {
	const need = 6
	if c.have > 0 || c.fragmented || len(p) < need || p[0] != bitFin|opText && p[0] != bitFin|opBinary || p[1] <= bitMask {
		return 0
	}
	size, n := int(p[1]&^bitMask), need
	switch {
	case size == 127:
		return 0
	case size == 126:
		size, n = int(binary.BigEndian.Uint16(p[2:])), need+2
		if size <= maxControl || len(p) < n {
			return 0
		}
	}
	if size > c.max {
		return 0
	}
	c.header[0], c.left = p[0], uint64(size)
	return n
}

func (c *checker) opcode() byte { return c.header[0] & 0x0F }

func (c *checker) control() bool { return c.header[0]&0x08 != 0 }

// checkHeader judges the header byte that came last.
func (c *checker) checkHeader() *verdict {
	var v *verdict
	switch {
	case c.have == 1:
		v = c.checkFirst()
	case c.have == 2:
		v = c.checkSecond()
	case c.have == 4 && c.need == 8:
		v = c.checkSize(uint64(binary.BigEndian.Uint16(c.header[2:])), maxControl+1)
	case c.have == 10 && c.need == 14:
		v = c.checkSize(binary.BigEndian.Uint64(c.header[2:]), 1<<16)
	}
	if v != nil || c.have != c.need {
		return v
	}
	return c.begin()
}

func (c *checker) checkFirst() *verdict {
	first := c.header[0]
	rsv := first & bitsRsv
	if c.deflate && (c.opcode() == opText || c.opcode() == opBinary) {
		c.packed = rsv == bitRsv1
		rsv &^= bitRsv1
	}
	if rsv != 0 {
		return violation(codec.CauseProtocol, "reserved bit")
	}
	switch c.opcode() {
	case opText, opBinary:
		if c.fragmented {
			return violation(codec.CauseProtocol, "new message within a message")
		}
	case opContinuation:
		if !c.fragmented {
			return violation(codec.CauseProtocol, "continuation of nothing")
		}
	case opClose, opPing, opPong:
		if first&bitFin == 0 {
			return violation(codec.CauseProtocol, "fragmented control frame")
		}
	default:
		return violation(codec.CauseProtocol, "unknown opcode")
	}
	return nil
}

func (c *checker) checkSecond() *verdict {
	second := c.header[1]
	if second&bitMask == 0 {
		return violation(codec.CauseProtocol, "frame without mask")
	}
	short := second &^ bitMask
	switch {
	case short > maxControl && c.control():
		return violation(codec.CauseProtocol, "long control frame")
	case short == 126:
		c.need = 8
	case short == 127:
		c.need = 14
	default:
		c.need = 6
		return c.checkSize(uint64(short), 0)
	}
	return nil
}

// checkSize judges a declared length, of which least is the smallest that may be
// written in this way.
func (c *checker) checkSize(n, least uint64) *verdict {
	switch {
	case n < least:
		return violation(codec.CauseProtocol, "length not minimal")
	case n >= 1<<63:
		return violation(codec.CauseProtocol, "length over 63 bits")
	case !c.control() && c.sum+n > uint64(c.most()):
		return violation(codec.CauseTooLarge, "message too large")
	}
	c.size = n
	return nil
}

// most is how long the message in progress may be as it is sent.
func (c *checker) most() int {
	if c.packed {
		return c.max + slack(c.max)
	}
	return c.max
}

// begin takes note of a frame whose header is whole and in order.
func (c *checker) begin() *verdict {
	if !c.control() {
		c.fragmented = c.header[0]&bitFin == 0
		c.sum += c.size
		if !c.fragmented {
			c.sum = 0
		}
	}
	if c.left = c.size; c.left > 0 {
		return nil
	}
	if c.opcode() == opClose {
		return c.checkClose()
	}
	c.have, c.need = 0, 0
	return nil
}

func (c *checker) unmask(p []byte) {
	mask := c.header[2:6] // a control frame has the short header
	for _, b := range p {
		c.closing = append(c.closing, b^mask[len(c.closing)&3])
	}
}

// noCode stands for a close frame without a code; it is never sent.
const noCode = 1005

func (c *checker) checkClose() *verdict {
	p := c.closing
	if len(p) == 0 {
		return &verdict{codec.CauseOf(noCode), appendFrame(nil, opClose, nil)}
	}
	if len(p) == 1 {
		return violation(codec.CauseProtocol, "close code cut short")
	}
	code := binary.BigEndian.Uint16(p)
	if !mayBeSent(code) {
		return violation(codec.CauseProtocol, "close code not allowed")
	}
	if !utf8.Valid(p[2:]) {
		return violation(codec.CauseInvalidText, "close reason is not UTF-8")
	}
	return &verdict{codec.CauseOf(code), closeFrame(code, "")}
}

// mayBeSent says whether a close frame may carry code: RFC 6455, section 7.4, and
// the codes registered since.
func mayBeSent(code uint16) bool {
	switch {
	case code >= 3000 && code < 5000:
		return true
	case code < 1000 || code > 1014:
		return false
	}
	return code != 1004 && code != 1005 && code != 1006
}
