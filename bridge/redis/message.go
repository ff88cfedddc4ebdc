package redis

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/yaza-dev/pulse/codec"
)

// A text is an envelope in base64, filled up with noughts to a multiple of three
// bytes, so that it has no padding and more may follow: what comes after an
// envelope is passed over. It stands in messages as it is, and in a member as
//
//	<offset>|<text><13 digits: ms since 1970 when it was taken><7 digits: size>
//
// whose second part is base64 as a whole.
//
// A message is a line, "1 node epoch first past end", and a line for each text.
// Epoch "-": events that are not kept. Past and end are the epoch before and where
// it ended, or "-" and 0. What follows in the first line is passed over.
const (
	memberTail     = 20
	messageVersion = "1"
	none           = "-"
)

var errMessage = errors.New("redis: no message of this version")

// texts writes envelopes; its memory is used again.
type texts struct {
	limits  codec.EnvelopeLimits
	scratch []byte
}

func (w *texts) of(e *codec.Event, buffered bool) (string, error) {
	b, err := codec.AppendEnvelope(w.scratch[:0], e, buffered, w.limits)
	if err != nil {
		return "", err
	}
	for len(b)%3 != 0 {
		b = append(b, 0)
	}
	n := len(b)
	b = append(b, make([]byte, base64.StdEncoding.EncodedLen(n))...)
	base64.StdEncoding.Encode(b[n:], b[:n])
	text := string(b[n:])
	if w.scratch = b; cap(b) > 1<<20 {
		w.scratch = nil
	}
	return text, nil
}

// event reads a text.
func event(topic codec.Topic, at codec.Position, text string, most int) (*codec.Event, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", codec.ErrEnvelope, err)
	}
	v, err := codec.DecodeEnvelope(raw)
	if err != nil {
		return nil, err
	}
	return v.Event(topic, at, most)
}

// memberOf takes a member apart.
func memberOf(member string) (offset uint64, text string, err error) {
	number, rest, ok := strings.Cut(member, "|")
	if !ok || len(rest) < memberTail {
		return 0, "", fmt.Errorf("%w: no member", codec.ErrEnvelope)
	}
	offset, err = strconv.ParseUint(number, 10, 64)
	if err != nil || offset > codec.MaxOffset {
		return 0, "", fmt.Errorf("%w: no offset", codec.ErrEnvelope)
	}
	return offset, rest[:len(rest)-memberTail], nil
}

// notice is the first line of a message; events are cut off it one by one.
type notice struct {
	node     string
	first    codec.Position // zero: not kept
	previous codec.Position
	texts    string
}

func readNotice(message string) (n notice, err error) {
	line, texts, ok := strings.Cut(message, "\n")
	var fields [6]string
	for i := range fields {
		fields[i], line, _ = strings.Cut(line, " ")
	}
	if !ok || fields[0] != messageVersion {
		return notice{}, errMessage
	}
	n.node, n.texts = fields[1], texts
	if fields[2] == none {
		return n, nil
	}
	if n.first, err = position(fields[2], fields[3]); err != nil {
		return notice{}, err
	}
	if fields[4] != none {
		n.previous, err = position(fields[4], fields[5])
	}
	return n, err
}

func position(epoch, offset string) (codec.Position, error) {
	o, err := strconv.ParseUint(offset, 10, 64)
	if err != nil || o > codec.MaxOffset || epoch == "" || len(epoch) > 16 {
		return codec.Position{}, errMessage
	}
	return codec.Position{Epoch: epoch, Offset: o}, nil
}

// next is the next text, and whether there was one.
func (n *notice) next() (text string, ok bool) {
	if n.texts == "" {
		return "", false
	}
	text, n.texts, _ = strings.Cut(n.texts, "\n")
	return text, true
}

// passingMessage is what a node publishes by itself.
func passingMessage(node string, texts []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s - 0 - 0", messageVersion, node)
	for _, text := range texts {
		b.WriteByte('\n')
		b.WriteString(text)
	}
	return b.Bytes()
}
