package backpressure

// Ready is a set of lanes, bit 1<<lane.
type Ready uint8

// With is the set with lane l in it.
func (r Ready) With(l Lane) Ready { return r | 1<<l }

// Has reports whether lane l is in the set.
func (r Ready) Has(l Lane) bool { return r&(1<<l) != 0 }

// Picker chooses the lane to serve next by weight, in rotations of at most 15 picks: a lane that stays ready gets its weight in each, 8, 4,
// 2 or 1, control first. What others leave unused ends the rotation early. So control passes after at most 7 picks, and lossy is served
// after at most 28, whatever the others do. The zero value is ready to use.
type Picker struct {
	left [Lanes]uint8 // picks left in this rotation
}

// Pick is the next lane among ready, and counts as one entry served. False when none is ready.
func (p *Picker) Pick(ready Ready) (Lane, bool) {
	ready &= 1<<Lanes - 1
	if ready == 0 {
		return 0, false
	}
	for {
		for l := range Lane(Lanes) {
			if ready.Has(l) && p.left[l] > 0 {
				p.left[l]--
				return l, true
			}
		}
		p.left = laneWeights
	}
}
