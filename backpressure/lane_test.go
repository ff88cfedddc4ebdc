package backpressure

import (
	"math/rand/v2"
	"testing"
)

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for p := range Policy(Policies) {
		seen[p.String()] = true
	}
	for l := range Lane(Lanes) {
		seen[l.String()] = true
	}
	for o := range Outcome(outcomes) {
		seen[o.String()] = true
		if o.Took() != (o == Accepted || o == Coalesced) {
			t.Errorf("%v: Took %v", o, o.Took())
		}
	}
	if len(seen) != Policies+Lanes+outcomes || seen[""] || seen["unknown"] {
		t.Errorf("names are missing or double: %v", seen)
	}
	for _, name := range []string{Lane(Lanes).String(), Policy(Policies).String(), Outcome(outcomes).String()} {
		if name != "unknown" {
			t.Errorf("%q for what does not exist", name)
		}
	}
}

func TestPickerSharesByWeight(t *testing.T) {
	var p Picker
	count := map[Lane]int{}
	all := Ready(0).With(Control).With(Interactive).With(Bulk).With(Lossy)
	for range 15 * 100 {
		l, _ := p.Pick(all)
		count[l]++
	}
	for l := range Lane(Lanes) {
		if count[l] != 100*int(laneWeights[l]) {
			t.Errorf("%v: %d of 1500, want %d", l, count[l], 100*int(laneWeights[l]))
		}
	}
	if l, ok := p.Pick(Ready(0).With(Lossy)); !ok || l != Lossy {
		t.Error("a lane alone has to wait")
	}
	if _, ok := p.Pick(0); ok {
		t.Error("picked from nothing")
	}
}

// However the others come and go, a lane that stays ready waits for the rest of its rotation and those before it in the next, and gets at
// least its weight in any 30 picks.
func TestPickerStarvesNoLane(t *testing.T) {
	before := 0 // weights of the lanes before it
	for stays := range Lane(Lanes) {
		limit := 15 - int(laneWeights[stays]) + before
		before += int(laneWeights[stays])
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, uint64(stays)))
			var p Picker
			var window []Lane
			for range 5000 {
				ready := Ready(rnd.IntN(1 << Lanes)).With(stays)
				l, ok := p.Pick(ready)
				if !ok || !ready.Has(l) {
					t.Fatalf("picked %v of %04b", l, ready)
				}
				if window = append(window, l); len(window) > 30 {
					window = window[1:]
				}
				count, waited := 0, 0
				for _, l := range window {
					waited++
					if l == stays {
						count++
						waited = 0
					}
				}
				if waited > limit {
					t.Fatalf("seed %d: %v waited for %d picks", seed, stays, waited)
				}
				if len(window) == 30 && count < int(laneWeights[stays]) {
					t.Fatalf("seed %d: %v got %d of 30", seed, stays, count)
				}
			}
		}
	}
}

func BenchmarkPicker(b *testing.B) {
	var p Picker
	for b.Loop() {
		p.Pick(15)
	}
}
