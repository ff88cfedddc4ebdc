package mailbox

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/backpressure"
)

// model is the naive mailbox: slices, and no thought of cost. It predicts each
// outcome and each removal exactly, and of deliveries all but the lane that is
// next: within a lane they must come in its order.
type model struct {
	items, bytes int
	lanes        [backpressure.Lanes][]*posted
	signals      map[int]uint32
	paused       bool
	suspended    bool
	closed       bool
	removed      []removal
}

type posted struct {
	id   int
	lane backpressure.Lane
	Item
	// loose: it may have been claimed by a batch that was interrupted. It has its
	// place back, but newer ones need not be coalesced into it.
	loose bool
}

// loosen is what an interrupted batch does to what waits.
func (m *model) loosen() {
	for _, lane := range m.lanes {
		for _, p := range lane {
			p.loose = true
		}
	}
}

func (m *model) limits(l backpressure.Lane) (items, bytes int) {
	if l == control {
		return ControlItems, ControlBytes
	}
	return m.items, m.bytes
}

func (m *model) size(l backpressure.Lane) (n int) {
	for _, p := range m.lanes[l] {
		n += p.Size
	}
	return n
}

// post predicts the outcome. replaced is the older one that the mailbox found,
// or -1; it decides where the model leaves it open.
func (m *model) post(p *posted, replaced any) backpressure.Outcome {
	if m.closed {
		return backpressure.Closed
	}
	lane := &m.lanes[p.lane]
	items, bytes := m.limits(p.lane)
	if p.Size > bytes {
		return backpressure.TooLarge
	}
	if p.Policy == backpressure.CoalesceLatest && p.Key != 0 {
		for i, old := range *lane {
			if old.Policy != backpressure.CoalesceLatest || old.Key != p.Key {
				continue
			}
			if old.loose && old.id != replaced {
				continue
			}
			if m.size(p.lane)-old.Size+p.Size > bytes {
				return backpressure.Backpressured
			}
			(*lane)[i] = p
			m.removed = append(m.removed, removal{old.id, backpressure.Coalesced})
			return backpressure.Coalesced
		}
	}
	for len(*lane) >= items || m.size(p.lane)+p.Size > bytes {
		if p.Policy != backpressure.DropOldest || len(*lane) == 0 {
			return backpressure.Backpressured
		}
		m.removed = append(m.removed, removal{(*lane)[0].id, backpressure.Backpressured})
		*lane = (*lane)[1:]
	}
	*lane = append(*lane, p)
	return backpressure.Accepted
}

// front takes id from the front of its lane; false if it is not there.
func (m *model) front(id int) (*posted, bool) {
	for l, lane := range m.lanes {
		if len(lane) > 0 && lane[0].id == id {
			m.lanes[l] = lane[1:]
			return lane[0], true
		}
	}
	return nil, false
}

func (m *model) waiting() (n int) {
	for _, lane := range m.lanes {
		n += len(lane)
	}
	return n
}

// Random posts of every policy, signals, pauses, panics, resumes,
// restarts and a stop: nothing that was accepted is lost, repeated or out of
// order, and nothing is removed without its owner hearing why.
func TestModel(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runModel(t, seed) })
	}
}

func runModel(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	m := &model{items: 1 + rnd.IntN(8), bytes: 50 + rnd.IntN(200), signals: make(map[int]uint32)}
	account := backpressure.NewAccount(nil, 0)
	r := newRig(t, m.items, func(c *options) {
		c.Bytes, c.Account = m.bytes, account
		if seed%2 == 0 {
			c.Lanes = &LanePool{}
		}
	})
	signals := make([]Signal, 5)
	for i := range signals {
		signals[i].Init(i)
	}
	var pauseIn, panicIn int

	r.handle = func(msg any) {
		if m.suspended || m.closed {
			t.Fatalf("delivery of %v: suspended %v, closed %v", msg, m.suspended, m.closed)
		}
		switch msg := msg.(type) {
		case Raised:
			at := msg.Owner.(int)
			want(t, "bits", msg.Bits, m.signals[at])
			delete(m.signals, at)
		case int:
			if m.paused {
				t.Fatalf("delivery of %d while paused", msg)
			}
			p, ok := m.front(msg)
			if !ok {
				t.Fatalf("delivery of %d, which is not the first of its lane", msg)
			}
			if p.Expires != 0 && p.Expires <= r.now {
				t.Fatalf("delivery of %d, which has expired", msg)
			}
		}
		if pauseIn--; pauseIn == 0 {
			r.m.Pause()
			m.paused = true
			m.loosen()
		}
		if panicIn--; panicIn == 0 {
			m.suspended = true
			m.loosen()
			panic("model")
		}
	}
	// Removals: exactly those that the model predicts, plus the expired, which
	// it checks one by one as they come.
	told := 0
	settle := func() {
		for ; told < len(r.removed); told++ {
			got := r.removed[told]
			if got.o == backpressure.Expired {
				p, ok := m.front(got.msg.(int))
				if !ok || p.Expires == 0 || p.Expires > r.now {
					t.Fatalf("%v was not due", got)
				}
				continue
			}
			if len(m.removed) == 0 {
				t.Fatalf("removed without a reason: %v", got)
			}
			want(t, "removed", got, m.removed[0])
			m.removed = m.removed[1:]
		}
		want(t, "removals that nobody was told", len(m.removed), 0)
	}
	r.m.cfg.Removed = func(msg any, o backpressure.Outcome) {
		if s, ok := msg.(*Raised); ok {
			want(t, "bits of one that was removed", s.Bits, m.signals[s.Owner.(int)])
			delete(m.signals, s.Owner.(int))
			return
		}
		r.removed = append(r.removed, removal{msg, o})
		if o == backpressure.Expired { // in order with the deliveries
			settle()
		}
	}

	post := func(id int) {
		p := &posted{id: id, lane: backpressure.Lane(rnd.IntN(backpressure.Lanes))}
		p.Item = Item{
			Msg: id, Size: rnd.IntN(60), Key: uint64(rnd.IntN(4)),
			Policy: backpressure.Policy(rnd.IntN(3)),
		}
		if rnd.IntN(4) == 0 {
			p.Expires = r.now + int64(rnd.IntN(20))
		}
		got := r.m.Post(p.lane, p.Item)
		var replaced any = -1
		if got == backpressure.Coalesced {
			replaced = r.removed[len(r.removed)-1].msg
		}
		expect := m.post(p, replaced)
		want(t, fmt.Sprintf("outcome of %+v", *p), got, expect)
		settle()
	}

	for id := range 400 {
		switch n := rnd.IntN(100); {
		case n < 65:
			post(id)
		case n < 74:
			at, bits := rnd.IntN(len(signals)), uint32(1+rnd.IntN(7))
			want(t, "raise", r.m.Raise(&signals[at], bits), !m.closed)
			if !m.closed {
				m.signals[at] |= bits
			}
		case n < 76:
			pauseIn = 1 + rnd.IntN(6)
		case n < 78:
			panicIn = 1 + rnd.IntN(6)
		case n < 82:
			r.m.Resume()
			m.paused = false
		case n < 86: // the supervisor's answers
			m.suspended = false
			r.m.PostSystemMessage(&actor.ResumeMailbox{})
			r.run()
		case n < 87:
			r.m.PostSystemMessage(&actor.Restart{})
			if !m.closed {
				m.suspended = true
			}
		case n < 90:
			r.now += int64(rnd.IntN(10))
		default:
			r.pool.Step()
		}
	}
	// Everything that still waits comes out, unless a stop cuts it off.
	if seed%3 == 0 {
		m.closed = true
		for _, lane := range m.lanes {
			for _, p := range lane {
				m.removed = append(m.removed, removal{p.id, backpressure.Closed})
			}
		}
		m.lanes = [backpressure.Lanes][]*posted{}
		r.m.PostSystemMessage(&actor.Stop{})
		r.run()
		settle()
	} else {
		pauseIn, panicIn = 0, 0
		r.m.Resume()
		m.paused = false
		m.suspended = false
		r.m.PostSystemMessage(&actor.ResumeMailbox{})
		r.run()
		settle()
	}
	want(t, "signals left", len(m.signals), 0)
	want(t, "messages left", m.waiting(), 0)
	want(t, "counted", r.m.UserMessageCount(), 0)
	want(t, "ledger", account.Used(), 0)
}
