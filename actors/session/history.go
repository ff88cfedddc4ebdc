package session

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

var errUnread = codec.Retry(codec.CodeBackpressured, codec.ScopeSession, time.Second, "too much waits to be read for another page")

// history reads a page of a room's buffered events from the bridge; the room itself
// is not asked, and need not be there.
func (s *Session) history(r *codec.History) *codec.Error {
	if _, err := s.asks(auth.History, r.Room); err != nil {
		return err
	}
	if err := s.within(r); err != nil {
		return err
	}
	if !s.beginPage() {
		return errUnread
	}
	in, id := s.out.Framing().Protocol.Codec(), r.ID
	message.HistoryPage(s.cfg.Broker, s.topic(r.Room), *r, in, s.cfg.Limits.MaxFrameBytes, func(ok *codec.HistoryResult, err *codec.Error) {
		reply := &codec.Reply{ID: id, Err: err}
		if err == nil {
			reply.OK = ok
		}
		s.endPage(frameOf(reply, ok))
	})
	return nil
}

// frameOf is the frame of a reply with events, which is not compressed if one of
// them must not be.
func frameOf(reply *codec.Reply, ok *codec.HistoryResult) *codec.Frame {
	if ok != nil && slices.ContainsFunc(ok.Events, func(e *codec.Event) bool { return e.Secret }) {
		return codec.NewSecretFrame(reply)
	}
	return codec.NewFrame(reply)
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
func (s *Session) endPage(reply *codec.Frame) {
	s.out.Reply(nil, backpressure.Control, reply, mailbox.Seat{}, false)
	s.pages.Add(-1)
}
