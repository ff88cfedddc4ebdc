package client

import (
	"fmt"

	"github.com/yaza-dev/pulse/codec"
)

// feedState is where a subscription's membership stands, as its client sees it.
type feedState uint8

const (
	apart  feedState = iota // no membership, and none asked for
	asked                   // a join is under way; frames belong to an older membership
	whole                   // every frame is taken
	behind                  // something did not fit; nothing is taken until it is joined anew
)

func (s feedState) String() string {
	return [...]string{"apart", "asked", "whole", "behind"}[s]
}

// feed is what waits for a subscription's consumer, and the place in the room's
// history up to which it was taken. It is pure and bounded: a frame that does not
// fit leaves the feed behind, with its position unmoved, and once the consumer has
// taken everything the room is joined again from there. So the consumer gets each
// buffered event once, or a Reset.
type feed struct {
	bound Bound

	state  feedState
	items  []entry // at most one Gap more than the bound
	bytes  int
	taken  codec.Position // up to where frames were taken: where a join goes on
	given  codec.Position // up to where the consumer was given
	again  bool           // what is asked for mends a feed that was behind
	missed int            // events that are not buffered, passed over meanwhile

	presence bool // wanted
	pe       string
	seq      uint64
}

type entry struct {
	item  Item
	size  int
	after codec.Position // what given is once the consumer has it
}

// ask begins a join, and says what it asks for: from where it stands.
func (f *feed) ask() (from codec.Position, resume bool) {
	f.again = f.state == behind
	f.state = asked
	return f.taken, !f.taken.IsZero()
}

// wantsJoin reports whether the room is to be joined (again).
func (f *feed) wantsJoin() bool {
	return f.state == apart || f.state == behind && len(f.items) == 0
}

// joined takes the answer to a join.
func (f *feed) joined(r *codec.JoinResult, size int) {
	if f.state != asked {
		panic(fmt.Sprintf("client: an answer to a join while %v", f.state))
	}
	f.state = whole
	if f.missed > 0 {
		f.fallShort(f.missed)
		f.missed = 0
	}
	if r.Recovered {
		f.moveTo(r.Position)
	} else {
		f.take(&Reset{r.Reset, r.Position, r.Data, r.After}, size, r.Position)
	}
	if f.presence && r.PE != "" {
		f.pe, f.seq = r.PE, r.Seq
		f.take(&Presence{Full: r.Members != nil, Members: r.Members, Count: r.Count}, size, f.taken)
	}
}

// lost ends the membership: with its connection, by the server, or by a refusal to
// join. What waits for the consumer stays.
func (f *feed) lost() { f.state, f.missed = apart, 0 }

func (f *feed) event(e *codec.Event, size int) {
	switch {
	case !e.Position.IsZero():
		f.take(eventOf(e), size, e.Position)
	case f.state == whole && f.fits(size):
		f.push(eventOf(e), size, f.taken)
	case f.state == asked && f.again:
		f.missed++
	case f.state == whole || f.state == behind:
		f.fallShort(1)
	}
}

func (f *feed) reset(r *codec.Reset, size int) {
	f.take(&Reset{r.Reason, r.Position, r.Data, r.After}, size, r.Position)
}

// moveTo takes a position that comes without an item.
func (f *feed) moveTo(p codec.Position) {
	if f.state != whole {
		return
	}
	f.taken = p
	if len(f.items) == 0 {
		f.given = p
	}
}

// changed takes a presence frame. One that does not follow the last leaves the
// feed behind: joining again brings the whole list.
func (f *feed) changed(p *codec.PresenceFrame, size int) {
	if f.state != whole || !f.presence {
		return
	}
	if !p.Full && (p.PE != f.pe || p.Prev != f.seq) {
		f.fallBehind()
		return
	}
	f.pe, f.seq = p.PE, p.Seq
	f.take(&Presence{p.Full, p.Members, p.Join, p.Update, p.Leave, p.Count}, size, f.taken)
}

func (f *feed) fits(size int) bool {
	return len(f.items) == 0 || len(f.items) < f.bound.Items && f.bytes+size <= f.bound.Bytes
}

// take puts an item in that must not be missed, and moves to p. While the feed is not
// whole, it belongs to an older membership or comes again.
func (f *feed) take(item Item, size int, p codec.Position) {
	if f.state != whole {
		return
	}
	if !f.fits(size) {
		f.fallBehind()
		return
	}
	f.push(item, size, p)
	f.taken = p
}

func (f *feed) push(item Item, size int, after codec.Position) {
	f.items = append(f.items, entry{item, size, after})
	f.bytes += size
}

func (f *feed) fallBehind() {
	f.state = behind
	f.fallShort(0)
}

// fallShort tells the consumer of events that it does not get now, at the place
// where they would have come.
func (f *feed) fallShort(missed int) {
	if n := len(f.items); n > 0 {
		if gap, ok := f.items[n-1].item.(*Gap); ok {
			gap.Missed += missed
			return
		}
	}
	f.push(&Gap{Position: f.taken, Missed: missed}, 0, f.taken)
}

// next hands out the next item.
func (f *feed) next() (Item, bool) {
	if len(f.items) == 0 {
		return nil, false
	}
	e := f.items[0]
	f.items[0] = entry{}
	f.items = f.items[1:]
	f.bytes -= e.size
	if f.given = e.after; len(f.items) == 0 {
		f.items = nil
		f.given = f.taken
	}
	return e.item, true
}
