package room

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

var testTopic = codec.Topic{Tenant: "acme", Room: "chat:1"}

// at reads "epoch:offset".
func at(s string) codec.Position {
	epoch, offset, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(offset, 10, 64)
	if err != nil {
		panic(err)
	}
	return codec.Position{Epoch: epoch, Offset: n}
}

// run reads "epoch:from-to" as events at these positions.
func run(s string) (events []*codec.Event) {
	from, to, ok := strings.Cut(s, "-")
	if !ok {
		_, to, _ = strings.Cut(s, ":")
	}
	last := at("e:" + to)
	for p := at(from); p.Offset <= last.Offset; p.Offset++ {
		events = append(events, newEvent(p))
	}
	return events
}

func newEvent(p codec.Position) *codec.Event {
	return codec.NewEvent(testTopic, "message", codec.Data{}, codec.Origin{EID: fmt.Sprint(p)}).At(p)
}

func offsets(events []*codec.Event) string {
	var s []string
	for _, e := range events {
		s = append(s, fmt.Sprint(e.Position.Offset))
	}
	return strings.Join(s, " ")
}

// Steps: "arrive EVENTS [after POSITION]", "head POSITION", "ask",
// "page HEAD [EVENTS]", "reset REASON HEAD". What follows "->" is what comes out,
// and "gap" if something is to be read then.
func TestSequencer(t *testing.T) {
	for _, c := range []struct{ name, start, steps string }{
		{"what is next is handed out", "a:5", `
			arrive a:6-7 -> 6 7
			arrive a:8 -> 8`},
		{"what came before is dropped, also in part", "a:5", `
			arrive a:4-5 ->
			arrive a:5-7 -> 6 7
			arrive a:6-7 ->`},
		{"what lies above a gap waits for the read", "a:5", `
			arrive a:8-9 -> gap
			arrive a:10 -> gap
			ask -> gap
			page a:10 a:6-10 -> 6 7 8 9 10`},
		{"a page that ends below what is held", "a:5", `
			arrive a:8-9 -> gap
			ask -> gap
			page a:9 a:6-7 -> 6 7 8 9`},
		{"a gap that arrivals fill needs no page", "a:5", `
			arrive a:8 -> gap
			ask -> gap
			arrive a:6-7 -> 6 7 8
			page a:8 a:6-8 ->`},
		{"a page of which the beginning has arrived meanwhile", "a:5", `
			head a:9 -> gap
			ask -> gap
			arrive a:6 -> 6 gap
			page a:9 a:6-9 -> 7 8 9`},
		{"a page by pieces", "a:0", `
			head a:4 -> gap
			ask -> gap
			page a:4 a:1-2 -> 1 2 gap
			ask -> gap
			page a:4 a:3-4 -> 3 4`},
		{"more than is held is read", "a:0", `
			arrive a:2-100 -> gap
			ask -> gap
			page a:100 a:1 -> ` + offsets(run("a:1-65")) + ` gap
			ask -> gap
			page a:100 a:66-100 -> ` + offsets(run("a:66-100"))},
		{"held events are consecutive", "a:0", `
			arrive a:2-3 -> gap
			arrive a:6 -> gap
			ask -> gap
			page a:6 a:1 -> 1 2 3 gap`},
		{"a page that is older than what is known leaves the gap", "a:5", `
			head a:6 -> gap
			ask -> gap
			head a:9 -> gap
			page a:6 a:6 -> 6 gap`},
		{"a page from before the gap was known", "a:5", `
			head b:1 -> gap
			ask -> gap
			head a:8 -> gap
			page a:5 -> gap
			ask -> gap
			page a:8 a:6-8 -> 6 7 8`},
		{"two pages in a row that do not bring what exists", "a:5", `
			head a:8 -> gap
			ask -> gap
			page a:5 -> gap
			ask -> gap
			page a:5 -> reset:overflow a:5`},
		{"a page with events ends the row", "a:5", `
			head a:8 -> gap
			ask -> gap
			page a:5 -> gap
			ask -> gap
			page a:8 a:6 -> 6 gap
			ask -> gap
			page a:6 -> gap`},
		{"the history is gone", "a:5", `
			head a:90 -> gap
			ask -> gap
			reset expired a:90 -> reset:expired a:90
			arrive a:91 -> 91`},
		{"the history is gone, and has gone on meanwhile", "a:5", `
			head a:90 -> gap
			ask -> gap
			head a:92 -> gap
			reset expired a:90 -> reset:expired a:90 gap
			ask -> gap
			page a:92 a:91-92 -> 91 92`},
		{"a new epoch that begins where this one ended", "a:5", `
			arrive b:6-7 after a:5 -> 6 7
			arrive b:8 -> 8`},
		{"a new epoch of which the end of the last one is missing", "a:5", `
			arrive b:8 after a:7 -> gap
			ask -> gap
			page b:8 b:6-8 -> 6 7 8`},
		{"a new epoch after another end than ours", "a:5", `
			arrive b:4 after a:3 -> gap
			ask -> gap
			reset epoch b:4 -> reset:epoch b:4
			arrive b:5 -> 5`},
		{"a new epoch that nobody announced", "a:5", `
			arrive b:1-2 -> gap
			ask -> gap
			reset epoch b:2 -> reset:epoch b:2`},
		{"a new epoch of which only the head is known", "a:5", `
			head b:6 -> gap
			ask -> gap
			page b:6 b:6 -> 6
			arrive b:7 -> 7`},
		{"an arrival of a past epoch, repeated late", "b:9", `
			arrive a:4-5 -> gap
			ask -> gap
			page b:9 ->
			arrive b:10 -> 10`},
		{"a page of a past epoch", "a:5", `
			head a:6 -> gap
			ask -> gap
			arrive b:6 after a:5 -> 6
			page a:7 a:6-7 -> gap
			ask -> gap
			page b:6 ->`},
		{"an epoch heard of while the answer is on its way", "a:5", `
			head a:6 -> gap
			ask -> gap
			head b:1 -> gap
			page a:6 a:6 -> 6 gap
			ask -> gap
			reset epoch b:1 -> reset:epoch b:1`},
		{"a reset of a position that was left meanwhile is asked again", "a:5", `
			head a:6 -> gap
			ask -> gap
			arrive a:6 -> 6
			reset expired a:6 -> gap
			ask -> gap
			page a:6 ->`},
		{"a read that failed is asked again", "a:5", `
			head b:1 -> gap
			ask -> gap
			ask -> gap
			reset epoch b:1 -> reset:epoch b:1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sequencer
			s.start(at(c.start))
			var since codec.Position
			for step := range strings.Lines(strings.TrimSpace(c.steps)) {
				do, want, _ := strings.Cut(strings.TrimSpace(step), "->")
				w := strings.Fields(do)
				var deliver []*codec.Event
				reset := codec.ResetNone
				switch w[0] {
				case "arrive":
					b := bridge.Batch{Events: run(w[1])}
					if len(w) > 2 {
						b.Previous = at(w[3])
					}
					deliver = s.arrived(b)
				case "head":
					s.atLeast(at(w[1]))
				case "ask":
					since = s.ask()
				case "page":
					p := bridge.Page{Head: at(w[1])}
					if len(w) > 2 {
						p.Events = run(w[2])
					}
					deliver, reset = s.page(since, p)
				case "reset":
					p := bridge.Page{Head: at(w[2]), Reset: codec.ResetExpired}
					if w[1] == "epoch" {
						p.Reset = codec.ResetEpoch
					}
					deliver, reset = s.page(since, p)
				}
				got := offsets(deliver)
				if reset != codec.ResetNone {
					got = fmt.Sprintf("reset:%v %s:%d", reset, s.pos.Epoch, s.pos.Offset)
				}
				if s.gap() {
					got = strings.TrimSpace(got + " gap")
				}
				if got != strings.TrimSpace(want) {
					t.Fatalf("%s: got %q", step, got)
				}
			}
		})
	}
}

// history is a topic as a broker keeps it, with the epochs that it has been
// through. It is what the model test takes for true.
type history struct {
	epoch   string
	head    uint64
	events  []*codec.Event // of all that count, by offset - 1
	kept    uint64         // offsets up to here are gone
	lineage []codec.Position
	epochs  int
}

func (h *history) publish(n int) []*codec.Event {
	from := len(h.events)
	for range n {
		h.head++
		h.events = append(h.events, newEvent(codec.Position{Epoch: h.epoch, Offset: h.head}))
	}
	return h.events[from:]
}

// fail begins another epoch, having lost the last events; 0: none.
func (h *history) fail(lost uint64) codec.Position {
	lost = min(lost, h.head-h.kept)
	h.head -= lost
	h.events = h.events[:h.head]
	end := codec.Position{Epoch: h.epoch, Offset: h.head}
	h.lineage = append(h.lineage, end)
	h.epochs++
	h.epoch = fmt.Sprint("e", h.epochs)
	return end
}

func (h *history) holds(p codec.Position) bool {
	if p.Epoch == h.epoch {
		return p.Offset <= h.head
	}
	for i, end := range h.lineage {
		if end.Epoch == p.Epoch {
			// What it has must have outlived every epoch since.
			for _, later := range h.lineage[i:] {
				if p.Offset > later.Offset {
					return false
				}
			}
			return true
		}
	}
	return false
}

func (h *history) read(since codec.Position, limit int) bridge.Page {
	p := bridge.Page{Head: codec.Position{Epoch: h.epoch, Offset: h.head}}
	switch {
	case !h.holds(since):
		p.Reset = codec.ResetEpoch
	case since.Offset < h.kept:
		p.Reset = codec.ResetExpired
	default:
		p.Events = h.events[since.Offset:min(since.Offset+uint64(limit), h.head)]
	}
	return p
}

// Batches late, lost, repeated and in another order; pages late; epochs that lose
// events and epochs that lose none; a history that forgets.
func TestSequencerAgainstANaiveHistory(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 3))
		h := &history{epoch: "e0"}
		h.publish(random.IntN(5))
		var s sequencer
		s.start(codec.Position{Epoch: h.epoch, Offset: h.head})
		told := s.pos // what a member that was live from the start holds
		var way []bridge.Batch
		var page *bridge.Page
		var since codec.Position
		resets := 0

		take := func(events []*codec.Event) {
			for _, e := range events {
				if e.Position.Offset != told.Offset+1 {
					t.Fatalf("seed %d: %v after %v", seed, e.Position, told)
				}
				told = e.Position
			}
			if told.Offset != s.pos.Offset {
				t.Fatalf("seed %d: told up to %v, the position is %v", seed, told, s.pos)
			}
		}
		land := func() {
			deliver, reset := s.page(since, *page)
			page = nil
			if reset != codec.ResetNone {
				told = s.pos
				resets++
				if reset == codec.ResetOverflow {
					t.Fatalf("seed %d: the broker had everything", seed)
				}
			}
			take(deliver)
		}
		ask := func() {
			since = s.ask()
			p := h.read(since, 1+random.IntN(20))
			page = &p
		}
		lossy := false
		for range 60 {
			switch random.IntN(12) {
			case 0, 1, 2, 3:
				b := bridge.Batch{Events: h.publish(1 + random.IntN(4))}
				switch random.IntN(4) {
				case 0: // lost, and told of at once or later
					if random.IntN(2) == 0 {
						s.atLeast(codec.Position{Epoch: h.epoch, Offset: h.head})
					}
				default:
					way = append(way, b)
				}
			case 4, 5, 6, 7:
				if len(way) > 0 {
					i := min(random.IntN(len(way)), random.IntN(3))
					take(s.arrived(way[i]))
					if random.IntN(5) > 0 {
						way = append(way[:i], way[i+1:]...)
					}
				}
			case 8:
				if page == nil && s.gap() {
					ask()
				}
			case 9:
				if page != nil {
					land()
				}
			case 10:
				if random.IntN(4) == 0 {
					lost := uint64(random.IntN(2) * random.IntN(4))
					lossy = lossy || lost > 0
					previous := h.fail(lost)
					way = append(way, bridge.Batch{Previous: previous, Events: h.publish(1 + random.IntN(3))})
				}
			case 11:
				if random.IntN(4) == 0 {
					h.kept = max(h.kept, h.head-min(h.head, uint64(random.IntN(6))))
				}
			}
		}
		// In the end every head is learned, and all that was asked is answered.
		s.atLeast(codec.Position{Epoch: h.epoch, Offset: h.head})
		for range 1000 {
			if page == nil && !s.gap() {
				break
			}
			if page == nil {
				ask()
			}
			land()
		}
		if s.pos != (codec.Position{Epoch: h.epoch, Offset: h.head}) {
			t.Fatalf("seed %d: came to rest at %v, the head is %s:%d", seed, s.pos, h.epoch, h.head)
		}
		if resets > 0 && !lossy && h.kept == 0 {
			t.Fatalf("seed %d: reset though nothing was lost", seed)
		}
	}
}
