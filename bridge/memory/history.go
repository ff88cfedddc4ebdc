package memory

import (
	"crypto/rand"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// kept is one event of a history with the instant of its coming, which alone
// decides its age: what an event says of its time is not trusted.
type kept struct {
	event *codec.Event
	at    int64
}

// history is what one topic keeps: a run of events with consecutive offsets that
// ends at the head. It is pure; instants are given.
type history struct {
	epoch string
	head  uint64 // offset of the newest event, kept or not
	run   backpressure.Ring[kept]
	bytes int64 // sum of Size over run

	limit bridge.Retention // in force: that of the last event taken
}

func newHistory() history {
	return history{epoch: rand.Text()[:16]}
}

func (h *history) position() codec.Position { return codec.Position{Epoch: h.epoch, Offset: h.head} }

// append gives e the next offset. The caller has made sure that there is one.
func (h *history) append(e *codec.Event, now int64) *codec.Event {
	h.head++
	e = e.At(h.position())
	h.run.Push(kept{e, now})
	h.bytes += int64(e.Size())
	return e
}

// excess reports whether the oldest event must go.
func (h *history) excess(now int64) bool {
	n := h.run.Len()
	return n > 0 && (n > h.limit.Events ||
		h.limit.Bytes > 0 && h.bytes > h.limit.Bytes ||
		h.limit.Age > 0 && now-h.run.At(0).at >= int64(h.limit.Age))
}

// drop removes the oldest event. There is one.
func (h *history) drop() *codec.Event {
	oldest, _ := h.run.Pop()
	h.bytes -= int64(oldest.event.Size())
	return oldest.event
}

// page answers a read from what is kept; the caller has dropped what is too old.
func (h *history) page(req bridge.ReadRequest) bridge.Page {
	page := bridge.Page{Head: h.position()}
	n := uint64(h.run.Len())
	before := h.head - n // offset of the newest event that is gone
	from, to := uint64(0), n
	if req.HasSince {
		since := req.Since.Offset
		switch {
		case req.Since.Epoch != h.epoch || since > h.head:
			page.Reset = codec.ResetEpoch
			return page
		case req.Reverse:
			to = max(since, before+1) - before - 1
		case since < before:
			page.Reset = codec.ResetExpired
			return page
		default:
			from = since - before
		}
	}
	available := int(to - from)
	at := func(i int) *codec.Event {
		if req.Reverse {
			return h.run.At(int(to) - 1 - i).event
		}
		return h.run.At(int(from) + i).event
	}
	take, bytes := 0, 0
	for take < min(available, req.Limit) {
		bytes += at(take).Size()
		if take > 0 && req.Bytes > 0 && bytes > req.Bytes {
			break
		}
		take++
	}
	page.More = take < available
	if take > 0 {
		page.Events = make([]*codec.Event, take)
		for i := range page.Events {
			page.Events[i] = at(i)
		}
	}
	return page
}
