package session

import (
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// eventRest is how much larger an event may count for a bridge than it is on the
// wire.
const eventRest = 1 << 10

var errUnread = codec.Retry(codec.CodeBackpressured, codec.ScopeSession, time.Second, "too much waits to be read for another page")

// history reads a page of a room's buffered events from the bridge; the room itself
// is not asked, and need not be there.
func (s *Session) history(r *codec.History) *codec.Error {
	if !s.allows(auth.History, r.Room) {
		return errForbidden
	}
	if s.cfg.Kinds.Of(codec.RoomKind(r.Room)) == nil {
		return errNoKind
	}
	if err := s.within(r); err != nil {
		return err
	}
	if !s.beginPage() {
		return errUnread
	}
	q := &historyQuery{s: s, topic: codec.Topic{Tenant: s.cfg.Identity.Tenant, Room: r.Room}, asked: *r}
	s.cfg.Broker.Read(q.topic, bridge.ReadRequest{
		Since: r.Position, HasSince: r.HasPosition, Limit: r.Limit, Reverse: r.Reverse,
		Bytes: s.cfg.Limits.MaxFrameBytes + r.Limit*eventRest,
	}, q.read)
	return nil
}

// beginPage says whether a page more may be asked for. A reply is taken past the
// queue's bounds, and a page may be as large as a frame: so there must be place for
// all that are under way, endPage by endPage.
func (s *Session) beginPage() bool {
	if s.out.Waiting()+int(s.pages.Add(1))*s.cfg.Limits.MaxFrameBytes > s.cfg.Out.Bytes {
		s.pages.Add(-1)
		return false
	}
	return true
}

// endPage queues the reply with the page, or with why there is none; callable by
// anyone.
func (s *Session) endPage(reply *codec.Reply) {
	s.out.Reply(nil, backpressure.Control, codec.NewFrame(reply), mailbox.Seat{}, false)
	s.pages.Add(-1)
}

// historyQuery is a request under way. Its methods are the bridge's, on any
// goroutine, one after the other.
type historyQuery struct {
	s     *Session // only what is immutable, atomic, or has a lock
	topic codec.Topic
	asked codec.History
	reset codec.ResetReason
}

// read takes the page that was asked for.
func (q *historyQuery) read(p bridge.Page, err *codec.Error) {
	switch {
	case err != nil:
		q.answer(nil, err)
	case p.Reset != codec.ResetNone && !q.asked.Reverse:
		// The client goes on with what is left: where that begins is one more read.
		q.reset = p.Reset
		q.s.cfg.Broker.Read(q.topic, bridge.ReadRequest{Limit: 1}, q.oldest)
	default:
		ok := &codec.HistoryResult{Room: q.topic.Room, Events: p.Events, More: p.More, Reset: p.Reset}
		n := max(1, ok.Fits(q.s.out.Framing().Protocol.Codec(), q.s.cfg.Limits.MaxFrameBytes))
		if n < len(p.Events) {
			ok.Events, ok.More = p.Events[:n], true
		}
		switch n := len(ok.Events); {
		case n > 0:
			ok.Position = ok.Events[n-1].Position
		case q.asked.Reverse && q.asked.HasPosition && p.Reset == codec.ResetNone:
			ok.Position = q.asked.Position // nothing is before it
		default:
			ok.Position = p.Head
		}
		q.answer(ok, nil)
	}
}

// oldest answers a request whose position does not hold: going on from the result
// begins with the oldest event that is kept.
func (q *historyQuery) oldest(p bridge.Page, err *codec.Error) {
	ok := &codec.HistoryResult{Room: q.topic.Room, Position: p.Head, Reset: q.reset}
	if len(p.Events) > 0 {
		ok.Position, ok.More = p.Events[0].Position, true
		ok.Position.Offset--
	}
	q.answer(ok, err)
}

func (q *historyQuery) answer(ok *codec.HistoryResult, err *codec.Error) {
	reply := &codec.Reply{ID: q.asked.ID, Err: err}
	if err == nil {
		reply.OK = ok
	}
	q.s.endPage(reply)
}
