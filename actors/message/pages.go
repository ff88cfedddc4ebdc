package message

import (
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

const (
	// eventRest is how much larger an event may count for a bridge than it is on the
	// wire.
	eventRest = 1 << 10
	// pageRest is what a reply with a page of members needs besides the members.
	pageRest = 4 << 10
)

// HistoryPage reads what a history request asks for, cut to a frame of most bytes in
// codec in. The room itself is not asked, and need not be there. done is called once,
// on any goroutine.
func HistoryPage(b bridge.Broker, topic codec.Topic, asked codec.History, in codec.Codec, most int, done func(*codec.HistoryResult, *codec.Error)) {
	p := &historyPage{broker: b, topic: topic, asked: asked, in: in, most: most, done: done}
	b.Read(topic, bridge.ReadRequest{
		Since: asked.Position, HasSince: asked.HasPosition, Limit: asked.Limit, Reverse: asked.Reverse,
		Bytes: most + asked.Limit*eventRest,
	}, p.read)
}

// historyPage is a page under way. Its methods are the bridge's, one after the
// other.
type historyPage struct {
	broker bridge.Broker
	topic  codec.Topic
	asked  codec.History
	in     codec.Codec
	most   int
	done   func(*codec.HistoryResult, *codec.Error)
	reset  codec.ResetReason
}

// read takes the page that was asked for.
func (h *historyPage) read(p bridge.Page, err *codec.Error) {
	switch {
	case err != nil:
		h.done(nil, err)
	case p.Reset != codec.ResetNone && !h.asked.Reverse:
		// The client goes on with what is left: where that begins is one more read.
		h.reset = p.Reset
		h.broker.Read(h.topic, bridge.ReadRequest{Limit: 1}, h.oldest)
	default:
		ok := &codec.HistoryResult{Room: h.topic.Room, Events: p.Events, More: p.More, Reset: p.Reset}
		if n := max(1, ok.Fits(h.in, h.most)); n < len(p.Events) {
			ok.Events, ok.More = p.Events[:n], true
		}
		switch n := len(ok.Events); {
		case n > 0:
			ok.Position = ok.Events[n-1].Position
		case h.asked.Reverse && h.asked.HasPosition && p.Reset == codec.ResetNone:
			ok.Position = h.asked.Position // nothing is before it
		default:
			ok.Position = p.Head
		}
		h.done(ok, nil)
	}
}

// oldest answers a request whose position does not hold: going on from the result
// begins with the oldest event that is kept.
func (h *historyPage) oldest(p bridge.Page, err *codec.Error) {
	if err != nil {
		h.done(nil, err)
		return
	}
	ok := &codec.HistoryResult{Room: h.topic.Room, Position: p.Head, Reset: h.reset}
	if len(p.Events) > 0 {
		ok.Position, ok.More = p.Events[0].Position, true
		ok.Position.Offset--
	}
	h.done(ok, nil)
}

// PresencePage reads what a presence request asks for, cut to a frame of most bytes.
// done is called once, on any goroutine.
func PresencePage(b bridge.Presence, topic codec.Topic, asked codec.PresenceQuery, most int, done func(*codec.PresenceResult, *codec.Error)) {
	b.List(topic, asked.After, asked.Limit, func(p bridge.MemberPage, err *codec.Error) {
		if err != nil {
			done(nil, err)
			return
		}
		n, size := 0, pageRest
		for n < len(p.Members) {
			if size += p.Members[n].Size(); size > most && n > 0 {
				break
			}
			n++
		}
		ok := &codec.PresenceResult{Room: topic.Room, PE: p.Mark.Epoch, Seq: p.Mark.Seq, Count: p.Count, Members: p.Members[:n]}
		if n > 0 && (p.More || n < len(p.Members)) {
			ok.After = p.Members[n-1].Subject
		}
		done(ok, nil)
	})
}
