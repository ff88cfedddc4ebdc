package redis

import (
	"slices"
	"testing"
	"time"
)

var began = time.Unix(1000, 0)

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

// A lease of 15 s is prolonged each 5 s, tried again each second when that fails, and
// given up 13 s after what prolonged it was sent.
func TestTenure(t *testing.T) {
	n := tenure{life: 15 * time.Second, id: "a"}
	for _, step := range []struct {
		at   float64
		due  bool
		over bool
		do   string // after it: "", or what the server answers: "ok", "new", "lost"
		sent float64
		says bool // what answered says
	}{
		{at: 0, due: true},
		{at: 0.5, do: "lost", sent: 0},
		{at: 1, due: false},
		{at: 100, due: true}, // nothing of it is known yet: it lasts
		{at: 100.1, do: "new", sent: 100},
		{at: 104.9, due: false},
		{at: 105, due: true},
		{at: 106, due: false, do: "ok", sent: 105}, // once, until it is answered
		{at: 109, due: false},
		{at: 110, due: true, do: "new", sent: 110, says: true}, // it had been forgotten
		{at: 115, due: true, do: "lost", sent: 115},
		{at: 115.9, due: false},
		{at: 116, due: true, do: "lost", sent: 116},
		{at: 122.9, due: true, do: "lost", sent: 122.9},
		{at: 123, over: true},
		{at: 900, over: true, due: true},
	} {
		now := at(step.at)
		if n.over(now) != step.over {
			t.Errorf("at %v: over %v", step.at, n.over(now))
		}
		if due := n.due(now); due != step.due {
			t.Errorf("at %v: due %v", step.at, due)
		}
		if step.do != "" {
			if says := n.answered("a", at(step.sent), now, step.do != "lost", step.do == "ok"); says != step.says {
				t.Errorf("at %v: forgotten %v", step.at, says)
			}
		}
	}
	n.begin("b")
	if !n.due(at(900)) || n.over(at(2000)) {
		t.Error("a new name is not told at once, or ends")
	}
	if n.answered("a", at(900), at(901), true, true); n.over(at(2000)) || n.due(at(2000)) {
		t.Error("an answer about the old name is taken for the new one's")
	}
}

// A node is dead when its lease is missed twice by one that has been whole for a lease;
// who sees it waits for up to a third of one.
func TestLookout(t *testing.T) {
	fresh := func() *lookout { return &lookout{life: 15 * time.Second, dead: map[string]missing{}} }
	// twice looks, and looks again five seconds later.
	twice := func(l *lookout, seconds, chance float64) {
		l.seen("x", false, at(seconds), chance)
		l.seen("x", false, at(seconds+5), 0)
	}
	for name, rule := range map[string]struct {
		do   func(l *lookout)
		at   float64
		dead []string
	}{
		"never connected":   {func(l *lookout) { twice(l, 100, 0) }, 1000, nil},
		"not yet whole":     {func(l *lookout) { l.disturbed(at(0), false); twice(l, 9.9, 0) }, 1000, nil},
		"whole for a lease": {func(l *lookout) { l.disturbed(at(0), false); twice(l, 15, 0) }, 20, []string{"x"}},
		"looked at once":    {func(l *lookout) { l.disturbed(at(0), false); l.seen("x", false, at(15), 0) }, 1000, nil},
		"the first look after a lease counts": {func(l *lookout) {
			l.disturbed(at(0), false)
			l.seen("x", false, at(14.9), 0)
			twice(l, 15, 0)
		}, 20, []string{"x"}},
		"by chance, later": {func(l *lookout) { l.disturbed(at(0), false); twice(l, 15, 0.99) }, 19.9, nil},
		"by chance, then":  {func(l *lookout) { l.disturbed(at(0), false); twice(l, 15, 0.99) }, 20, []string{"x"}},
		"a name that was new at the first look": {func(l *lookout) {
			l.disturbed(at(0), false)
			l.seen("x", false, at(15), 0)
			l.seen("x", true, at(20), 0)
			l.seen("x", false, at(40), 0)
		}, 1000, nil},
		"disturbed meanwhile": {func(l *lookout) {
			l.disturbed(at(0), false)
			twice(l, 15, 0.5)
			l.disturbed(at(20), false)
		}, 1000, nil},
		"away": {func(l *lookout) {
			l.disturbed(at(0), false)
			l.disturbed(at(1), true)
			twice(l, 500, 0)
		}, 1000, nil},
	} {
		l := fresh()
		rule.do(l)
		if dead := l.due(at(rule.at)); !slices.Equal(dead, rule.dead) {
			t.Errorf("%s: %v are dead, want %v", name, dead, rule.dead)
		}
		if dead := l.due(at(rule.at)); len(dead) > 0 {
			t.Errorf("%s: %v are dead once more", name, dead)
		}
	}
}
