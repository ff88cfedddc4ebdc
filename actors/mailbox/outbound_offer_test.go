package mailbox

import (
	"testing"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// offerFrame is Offer in a room's turn.
func (r *outRig) offerFrame(name string, s Seat) (ok bool) {
	r.push(func(t *scheduler.Turn) { ok = r.out.Offer(t, nil, interactive, named(name), s) })
	return ok
}

// A frame that is offered keeps the order of its lane, and of its membership.
func TestOfferKeepsTheOrderOfAMembership(t *testing.T) {
	r := newOpenRig(t, 8, 1<<16)
	s := seat(0, 2)
	r.enter(s)
	r.out.Reserve()
	r.reply(interactive, "join", s, true)
	r.offerFrame("with the reply", s)
	r.deliver(s, event("a", interactive))
	r.offerFrame("b", s)
	r.deliver(s, event("c", interactive))
	want(t, "in order", r.written(), []string{"join", "with the reply", "a", "b", "c"})
	r.out.Reserve()
	r.reply(interactive, "leave", seat(0, 3), true)
	r.offerFrame("too late", s)
	want(t, "after it", r.written(), []string{"leave"})
	r.ended()
}

func TestOfferKeepsTheBounds(t *testing.T) {
	r := newOpenRig(t, 3, 1<<16)
	s := seat(0, 2)
	r.opened(s)
	for i, name := range []string{"a", "b", "c", "one too many"} {
		if ok := r.offerFrame(name, s); ok != (i < 3) {
			t.Errorf("%s was taken: %v", name, ok)
		}
	}
	want(t, "what was taken", r.written(), []string{"a", "b", "c"})
	if !r.offerFrame("d", s) {
		t.Error("the queue is empty, and takes nothing")
	}
	want(t, "and later", r.written(), []string{"d"})
	r.ended()
}

func TestOfferIntoAnEmptyQueueWhateverItsSize(t *testing.T) {
	r := newOpenRig(t, 8, 4)
	s := seat(0, 2)
	r.opened(s)
	if !r.offerFrame("large", s) || r.offerFrame("another", s) {
		t.Error("an empty queue takes one frame, a queue that is full none")
	}
	want(t, "written", r.written(), []string{"large"})
	r.ended()
}

// Who offers to a session that is ending has nothing to make up for.
func TestOfferToASessionThatEnds(t *testing.T) {
	r := newOpenRig(t, 8, 1<<16)
	s := seat(0, 2)
	r.opened(s)
	r.out.Finish(codec.CauseNormal, "")
	if !r.offerFrame("a", s) {
		t.Error("refused")
	}
	want(t, "written", r.written(), []string(nil))
}
