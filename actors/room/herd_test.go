package room

import (
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Few go at once; of many each has a turn of its own, a thousand a second; whoever is
// given the state waits for nothing, and takes nobody's turn.
func TestHerdIsSpread(t *testing.T) {
	now := time.Now()
	var h Herd
	turns := func(n int, data codec.Data) (last time.Duration) {
		t.Helper()
		for range n {
			next := h.turn(data, now)
			if next < last {
				t.Fatalf("%v after %v", next, last)
			}
			last = next
		}
		return last
	}
	state, err := codec.NewData(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		n     int
		data  codec.Data
		last  time.Duration
	}{
		{0, 100, codec.Data{}, 0},
		{0, 1000, state, 0},
		{0, 1, codec.Data{}, time.Millisecond},
		{0, 1999, codec.Data{}, 2 * time.Second},
		{time.Second, 500, codec.Data{}, 1500 * time.Millisecond},
		{time.Minute, 100, codec.Data{}, 0},
		{0, 40_000, codec.Data{}, 30 * time.Second},
	} {
		now = now.Add(step.after)
		if got := turns(step.n, step.data); got != step.last {
			t.Errorf("%d more, %v later: the last waits %v, want %v", step.n, step.after, got, step.last)
		}
	}
	if got := (*Herd)(nil).turn(codec.Data{}, now); got != 0 {
		t.Errorf("without a herd: %v", got)
	}
}

// Each reset takes a turn, in the answer to a join or after it, unless it brings the
// state; joins that are none do not.
func TestResetsTakeTurns(t *testing.T) {
	for name, c := range map[string]struct {
		kind  Kind
		turns time.Duration
	}{
		"nothing is given":   {plain, 2},
		"the state is given": {(&book{}).kind(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.kind)
			s.broker.publish(5)
			s.open()
			soon := time.Now().Add(10 * time.Second)
			h := &Herd{next: soon}
			s.room.cfg.Env.Herd = h
			live := s.member("carol")
			s.run()
			live.frames()
			s.broker.history = history{epoch: "e1", epochs: 1}
			s.peer("alice", 64).join(at("e0:3"))
			s.run()
			if got := h.next.Sub(soon); got != c.turns*herdEach {
				t.Errorf("turns of %v were taken, want %v", got, c.turns*herdEach)
			}
		})
	}
}
