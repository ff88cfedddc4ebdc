package redis

import (
	"strconv"
	"strings"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// frame is what one step on the server changed in a topic, as all nodes hear it:
//
//	1 <node> <epoch> <seq before> <seq> <1: the node is dead, and taken out>
//	<parts>
//
// A part is j(oined), u(pdated) or l(eft), the subject and, but for who left, "sessions
// data", each after its length and ":". What follows in the first line is passed over.
type frame struct {
	node   string // whose change it was, or who was taken out
	gone   bool
	change bridge.PresenceChange
}

// empty: nobody came, changed or left.
func (f *frame) empty() bool {
	return len(f.change.Joined)+len(f.change.Updated)+len(f.change.Left) == 0
}

func readFrame(message string) (f frame, err error) {
	line, parts, ok := strings.Cut(message, "\n")
	var fields [6]string
	for i := range fields {
		fields[i], line, _ = strings.Cut(line, " ")
	}
	if !ok || fields[0] != messageVersion {
		return f, errMessage
	}
	f.node, f.gone = fields[1], fields[5] == "1"
	before, err := mark(fields[2], fields[3])
	if err != nil {
		return f, err
	}
	f.change.Prev = before.Seq
	if f.change.Mark, err = mark(fields[2], fields[4]); err != nil {
		return f, err
	}
	for parts != "" && err == nil {
		letter := parts[0]
		var subject, rest string
		if subject, parts, err = cutText(parts[1:]); err != nil {
			break
		}
		if letter == 'l' {
			f.change.Left = append(f.change.Left, subject)
			continue
		}
		if rest, parts, err = cutText(parts); err != nil {
			break
		}
		var m codec.Member
		m, err = readMember(subject, rest)
		switch letter {
		case 'j':
			f.change.Joined = append(f.change.Joined, m)
		case 'u':
			f.change.Updated = append(f.change.Updated, m)
		default:
			err = errMessage
		}
	}
	return f, err
}

// cutText takes a text off, which stands after its length.
func cutText(s string) (text, rest string, err error) {
	length, rest, ok := strings.Cut(s, ":")
	n, err := strconv.ParseUint(length, 10, 31)
	if !ok || err != nil || uint64(len(rest)) < n {
		return "", "", errMessage
	}
	return rest[:n], rest[n:], nil
}

func mark(epoch, seq string) (bridge.Mark, error) {
	p, err := position(epoch, seq)
	return bridge.Mark{Epoch: p.Epoch, Seq: p.Offset}, err
}

// The letters of data. It is kept as it is, after its letter.
const (
	noData      = "-"
	jsonData    = "j"
	msgpackData = "m"
)

func dataText(d codec.Data) string {
	switch {
	case d.IsZero():
		return noData
	case d.Codec() == codec.JSON:
		return jsonData + string(d.Raw())
	default:
		return msgpackData + string(d.Raw())
	}
}

// readMember reads "sessions data".
func readMember(subject, text string) (m codec.Member, err error) {
	number, data, _ := strings.Cut(text, " ")
	m.Subject = subject
	if m.Sessions, err = strconv.Atoi(number); err != nil || data == "" {
		return m, errMessage
	}
	switch letter, raw := data[:1], []byte(data[1:]); letter {
	case noData:
	case jsonData:
		m.Data, err = codec.MakeData(codec.JSON, raw)
	case msgpackData:
		m.Data, err = codec.MakeData(codec.Msgpack, raw)
	default:
		err = errMessage
	}
	return m, err
}
