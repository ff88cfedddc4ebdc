package client

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/yaza-dev/pulse/codec"
)

// roomModel is a room as a client meets it: a history that keeps few events, one
// membership, and frames that are under way to its feed.
type roomModel struct {
	t      *testing.T
	r      *rand.Rand
	feed   feed
	keeps  uint64
	head   uint64
	online bool
	member bool
	pipe   []func()

	// What the consumer has been given.
	at     codec.Position
	seen   int // transient events
	missed int // transient events
	sent   int // transient events, to a member
	gaps   int
	resets int
}

func (m *roomModel) position() codec.Position { return codec.Position{Epoch: "ep", Offset: m.head} }

func (m *roomModel) publish() {
	m.head++
	if m.member {
		m.send(m.head)
	}
}

func (m *roomModel) send(offset uint64) {
	e := codec.NewEvent(codec.Topic{Room: "chat"}, "e", codec.Data{}, codec.Origin{}).At(codec.Position{Epoch: "ep", Offset: offset})
	m.pipe = append(m.pipe, func() { m.feed.event(e, 10) })
}

func (m *roomModel) publishTransient() {
	if !m.member {
		return
	}
	m.sent++
	e := codec.NewEvent(codec.Topic{Room: "chat"}, "t", codec.Data{}, codec.Origin{})
	m.pipe = append(m.pipe, func() { m.feed.event(e, 10) })
}

// resets the member at the head, as for one that fell behind.
func (m *roomModel) reset() {
	if m.member {
		r := &codec.Reset{Reason: codec.ResetOverflow, Position: m.position()}
		m.pipe = append(m.pipe, func() { m.feed.reset(r, 10) })
	}
}

// join answers what the feed asks for.
func (m *roomModel) join() {
	if !m.online || !m.feed.wantsJoin() {
		return
	}
	from, resume := m.feed.ask()
	m.member = true
	r := &codec.JoinResult{Position: m.position()}
	switch {
	case resume && from.Offset+m.keeps >= m.head:
		r.Position, r.Recovered = from, true
	case resume:
		r.Reset = codec.ResetExpired
	}
	m.pipe = append(m.pipe, func() { m.feed.joined(r, 10) })
	for offset := r.Position.Offset + 1; offset <= m.head; offset++ {
		m.send(offset)
	}
}

func (m *roomModel) deliver() {
	if len(m.pipe) > 0 {
		m.pipe[0]()
		m.pipe = m.pipe[1:]
	}
}

func (m *roomModel) lose() {
	m.online, m.member, m.pipe = false, false, nil
	m.feed.lost()
}

func (m *roomModel) consume() bool {
	item, ok := m.feed.next()
	m.join()
	if !ok {
		return false
	}
	switch item := item.(type) {
	case *Event:
		if item.Position.IsZero() {
			m.seen++
			break
		}
		if m.at.IsZero() || item.Position.Offset != m.at.Offset+1 {
			m.t.Fatalf("%v after %v", item.Position, m.at)
		}
		m.at = item.Position
	case *Reset:
		m.resets++
		if item.Position.Offset < m.at.Offset {
			m.t.Fatalf("reset back to %v from %v", item.Position, m.at)
		}
		m.at = item.Position
	case *Gap:
		m.gaps++
		m.missed += item.Missed
		if item.Position != m.at {
			m.t.Fatalf("a gap at %v after %v", item.Position, m.at)
		}
	}
	return true
}

func (m *roomModel) check() {
	if n := len(m.feed.items); n > m.feed.bound.Items+1 || m.feed.bytes > m.feed.bound.Bytes {
		m.t.Fatalf("%d items, %d bytes", n, m.feed.bytes)
	}
	if len(m.feed.items) == 0 && m.feed.given != m.feed.taken {
		m.t.Fatalf("given %v, taken %v, nothing waits", m.feed.given, m.feed.taken)
	}
}

// Whatever comes in whatever order: the consumer gets every buffered event once and
// in order, or a reset; what is lost of the others is counted; the bound holds.
func TestFeedAgainstAModelOfItsRoom(t *testing.T) {
	gaps, resets := 0, 0
	for seed := range uint64(400) {
		lossy := seed%2 == 0
		m := &roomModel{t: t, r: rand.New(rand.NewPCG(seed, 1)), keeps: 8, head: 3, online: true}
		m.feed.bound = Bound{Items: 1 + int(seed%5), Bytes: 35}
		m.join()
		for range 300 {
			switch n := m.r.IntN(100); {
			case n < 20:
				m.publish()
			case n < 30:
				m.publishTransient()
			case n < 60:
				m.deliver()
			case n < 95:
				m.consume()
			case n < 96:
				m.reset()
			case n < 98 && lossy:
				m.lose()
			default:
				m.online = true
				m.join()
			}
			m.check()
		}
		m.online = true
		for m.join(); len(m.pipe) > 0 || len(m.feed.items) > 0; m.check() {
			m.deliver()
			m.consume()
		}
		if m.at != m.position() || m.feed.given != m.at || m.feed.state != whole {
			t.Fatalf("seed %d: the consumer ends at %v, the feed at %v, %v; the head is %v", seed, m.at, m.feed.given, m.feed.state, m.head)
		}
		if !lossy && m.seen+m.missed != m.sent {
			t.Fatalf("seed %d: of %d transient events %d were seen and %d counted", seed, m.sent, m.seen, m.missed)
		}
		gaps, resets = gaps+m.gaps, resets+m.resets
	}
	if gaps < 400 || resets < 800 {
		t.Errorf("the model tries too little: %d gaps, %d resets", gaps, resets)
	}
}

func TestFeedPresence(t *testing.T) {
	f := feed{bound: Bound{10, 1000}, presence: true}
	want := func(rule string, want string) {
		t.Helper()
		got := ""
		for item, ok := f.next(); ok; item, ok = f.next() {
			if p, is := item.(*Presence); is {
				got += fmt.Sprintf("full=%v members=%d join=%d leave=%d count=%d;", p.Full, len(p.Members), len(p.Join), len(p.Leave), p.Count)
			} else {
				got += fmt.Sprintf("%T;", item)
			}
		}
		if got != want {
			t.Errorf("%s: %s", rule, got)
		}
	}
	members := []codec.Member{{Subject: "a"}, {Subject: "b"}}
	f.ask()
	f.joined(&codec.JoinResult{Position: codec.Position{Epoch: "e"}, PE: "p", Seq: 4, Members: members, Count: 2}, 1)
	want("a join brings the list", "*client.Reset;full=true members=2 join=0 leave=0 count=2;")
	f.changed(&codec.PresenceFrame{PE: "p", Prev: 4, Seq: 5, Join: members[:1], Leave: []string{"b"}}, 1)
	f.changed(&codec.PresenceFrame{PE: "p", Prev: 5, Seq: 6, Count: 9000}, 1)
	want("changes in a row", "full=false members=0 join=1 leave=1 count=0;full=false members=0 join=0 leave=0 count=9000;")
	f.changed(&codec.PresenceFrame{PE: "q", Prev: 1, Seq: 2, Full: true, Members: members, Count: 2}, 1)
	want("full holds whatever was before", "full=true members=2 join=0 leave=0 count=2;")
	f.changed(&codec.PresenceFrame{PE: "q", Prev: 3, Seq: 4, Join: members}, 1)
	f.changed(&codec.PresenceFrame{PE: "q", Prev: 4, Seq: 5, Join: members}, 1)
	want("a change that does not follow", "*client.Gap;")
	if !f.wantsJoin() {
		t.Error("the room is not joined again")
	}
	f.ask()
	f.joined(&codec.JoinResult{Position: codec.Position{Epoch: "e"}, Recovered: true, PE: "q", Seq: 5, Members: members, Count: 2}, 1)
	want("brings the list", "full=true members=2 join=0 leave=0 count=2;")
	f.changed(&codec.PresenceFrame{PE: "r", Prev: 5, Seq: 6, Join: members}, 1)
	want("nor one of another presence epoch", "*client.Gap;")
	f.ask()
	f.joined(&codec.JoinResult{Position: codec.Position{Epoch: "e"}, Recovered: true, PE: "r", Seq: 5, Count: 9000}, 1)
	want("a list that does not fit", "full=false members=0 join=0 leave=0 count=9000;")

	f = feed{bound: Bound{10, 1000}}
	f.ask()
	f.joined(&codec.JoinResult{Position: codec.Position{Epoch: "e"}, Recovered: true, PE: "q", Seq: 5, Members: members}, 1)
	f.changed(&codec.PresenceFrame{PE: "q", Full: true}, 1)
	want("presence that was not asked for", "")
}

// Positions that come without an item move the consumer's when nothing waits.
func TestFeedPositions(t *testing.T) {
	p := func(offset uint64) codec.Position { return codec.Position{Epoch: "e", Offset: offset} }
	f := feed{bound: Bound{10, 1000}, taken: p(1), given: p(1)}
	if from, resume := f.ask(); from != p(1) || !resume {
		t.Errorf("asks from %v", from)
	}
	f.moveTo(p(9)) // of an older membership
	f.joined(&codec.JoinResult{Position: p(1), Recovered: true}, 1)
	f.moveTo(p(2))
	if f.given != p(2) {
		t.Errorf("nothing waits: %v", f.given)
	}
	f.event(codec.NewEvent(codec.Topic{}, "e", codec.Data{}, codec.Origin{}).At(p(3)), 1)
	f.moveTo(p(4))
	if f.given != p(2) || f.taken != p(4) {
		t.Errorf("an event waits: %v of %v", f.given, f.taken)
	}
	if f.next(); f.given != p(4) {
		t.Errorf("all is given: %v", f.given)
	}
	f.lost()
	if from, _ := f.ask(); from != p(4) {
		t.Errorf("comes back from %v", from)
	}
}
