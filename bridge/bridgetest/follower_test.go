package bridgetest_test

import (
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/codec"
)

// script is a broker whose reads are answered by hand.
type script struct {
	reads   []codec.Position // positions read from
	answers []func(bridge.Page, *codec.Error)
}

func (s *script) Read(_ codec.Topic, r bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	s.reads = append(s.reads, r.Since)
	s.answers = append(s.answers, done)
}
func (s *script) Subscribe(codec.Topic, bridge.Sink)                          {}
func (s *script) Unsubscribe(codec.Topic, bridge.Sink)                        {}
func (s *script) Attempt(codec.Topic, bridge.Attempt, func(bridge.Attempted)) {}
func (s *script) Settle(codec.Topic, bridge.Settlement)                       {}
func (s *script) Health() bridge.Health                                       { return bridge.Health{} }
func (s *script) Watch(func(bridge.Health)) func()                            { return func() {} }
func (s *script) Close()                                                      {}
func (s *script) Publish(codec.Topic, bridge.Retention, []bridge.Publication, func([]bridge.Published)) {
}

func (s *script) answer(p bridge.Page) {
	done := s.answers[0]
	s.answers = s.answers[1:]
	done(p, nil)
}

func at(epoch string, offset uint64) codec.Position {
	return codec.Position{Epoch: epoch, Offset: offset}
}

// run makes events from one offset up to another.
func run(epoch string, from, to uint64) (events []*codec.Event) {
	for o := from; o <= to; o++ {
		events = append(events, codec.NewEvent(room, "e", codec.Data{}, codec.Origin{}).At(at(epoch, o)))
	}
	return events
}

func TestFollower(t *testing.T) {
	arrive := func(f *bridgetest.Follower, epoch string, from, to uint64) {
		f.Arrived(bridge.Batch{Events: run(epoch, from, to)})
	}
	change := func(f *bridgetest.Follower, previous codec.Position, epoch string, from, to uint64) {
		f.Arrived(bridge.Batch{Previous: previous, Events: run(epoch, from, to)})
	}
	for _, c := range []struct {
		name   string
		steps  func(f *bridgetest.Follower, s *script) // the follower is live at A:5
		log    []uint64
		at     codec.Position
		reads  []codec.Position
		resets int
	}{
		{"the next is delivered", func(f *bridgetest.Follower, s *script) {
			arrive(f, "A", 6, 7)
			arrive(f, "A", 8, 8)
		}, []uint64{6, 7, 8}, at("A", 8), nil, 0},
		{"what it has is dropped", func(f *bridgetest.Follower, s *script) {
			arrive(f, "A", 3, 5)
			arrive(f, "A", 4, 6)
			arrive(f, "A", 4, 6)
		}, []uint64{6}, at("A", 6), nil, 0},
		{"a higher one is read up to", func(f *bridgetest.Follower, s *script) {
			arrive(f, "A", 8, 8)
			arrive(f, "A", 9, 9) // while the read is out
			s.answer(bridge.Page{Head: at("A", 9), Events: run("A", 6, 9)})
			s.answer(bridge.Page{Head: at("A", 9)})
		}, []uint64{6, 7, 8, 9}, at("A", 9), []codec.Position{at("A", 5), at("A", 9)}, 0},
		{"page after page", func(f *bridgetest.Follower, s *script) {
			f.Gap(at("A", 8))
			s.answer(bridge.Page{Head: at("A", 8), Events: run("A", 6, 7), More: true})
			s.answer(bridge.Page{Head: at("A", 8), Events: run("A", 8, 8)})
		}, []uint64{6, 7, 8}, at("A", 8), []codec.Position{at("A", 5), at("A", 7)}, 0},
		{"a gap that is none", func(f *bridgetest.Follower, s *script) {
			f.Gap(at("A", 5))
			f.Gap(at("A", 2))
		}, nil, at("A", 5), nil, 0},
		{"a new epoch whose previous is its own, and it has its end", func(f *bridgetest.Follower, s *script) {
			change(f, at("A", 5), "B", 6, 7)
		}, []uint64{6, 7}, at("B", 7), nil, 0},
		{"the same, and it has not come to the end", func(f *bridgetest.Follower, s *script) {
			change(f, at("A", 7), "B", 8, 8)
			s.answer(bridge.Page{Head: at("B", 8), Events: append(run("A", 6, 7), run("B", 8, 8)...)})
		}, []uint64{6, 7, 8}, at("B", 8), []codec.Position{at("B", 5)}, 0},
		{"the same, and it saw what was lost", func(f *bridgetest.Follower, s *script) {
			change(f, at("A", 4), "B", 5, 5)
			s.answer(bridge.Page{Head: at("B", 5), Reset: codec.ResetEpoch})
			arrive(f, "B", 6, 6)
		}, []uint64{6}, at("B", 6), []codec.Position{at("A", 5)}, 1},
		{"a new epoch over one that it never saw, in whose past it is", func(f *bridgetest.Follower, s *script) {
			change(f, at("B", 5), "C", 6, 6)
			s.answer(bridge.Page{Head: at("C", 6), Events: run("C", 6, 6)})
		}, []uint64{6}, at("C", 6), []codec.Position{at("A", 5)}, 0},
		{"a quiet change of epoch", func(f *bridgetest.Follower, s *script) {
			f.Gap(at("B", 5))
			s.answer(bridge.Page{Head: at("B", 5)})
			arrive(f, "B", 6, 6)
		}, []uint64{6}, at("B", 6), []codec.Position{at("A", 5)}, 0},
		{"a reset that answers a place which arrivals have left", func(f *bridgetest.Follower, s *script) {
			f.Gap(at("A", 9))
			arrive(f, "A", 6, 7)
			s.answer(bridge.Page{Head: at("A", 9), Reset: codec.ResetExpired})
			s.answer(bridge.Page{Head: at("A", 9), Events: run("A", 8, 9)})
		}, []uint64{6, 7, 8, 9}, at("A", 9), []codec.Position{at("A", 5), at("A", 7)}, 0},
		{"a page that arrivals have overtaken", func(f *bridgetest.Follower, s *script) {
			f.Gap(at("A", 7))
			change(f, at("A", 5), "B", 6, 8)
			s.answer(bridge.Page{Head: at("A", 5)})
		}, []uint64{6, 7, 8}, at("B", 8), []codec.Position{at("A", 5)}, 0},
		{"a page of an epoch that arrivals have left, at the same offset", func(f *bridgetest.Follower, s *script) {
			f.Gap(at("A", 6))
			change(f, at("A", 5), "B", 6, 6)
			s.answer(bridge.Page{Head: at("A", 6), Events: run("A", 6, 6)})
			arrive(f, "B", 7, 7)
		}, []uint64{6, 7}, at("B", 7), []codec.Position{at("A", 5)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{}
			f := bridgetest.Follow(s, room)
			f.Subscribed(at("A", 5), nil)
			c.steps(f, s)
			var log []uint64
			for _, e := range f.Log() {
				log = append(log, e.Position.Offset)
			}
			if !slices.Equal(log, c.log) || f.Position() != c.at || !slices.Equal(s.reads, c.reads) || len(f.Resets()) != c.resets {
				t.Errorf("log %v, at %v, reads %v, resets %v", log, f.Position(), s.reads, f.Resets())
			}
			if len(s.answers) != 0 {
				t.Errorf("%d reads still out", len(s.answers))
			}
		})
	}
}
