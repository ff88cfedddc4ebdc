package backpressure

// Lane tells apart the kinds of work that wait for one receiver. Order holds within a lane, not across lanes.
type Lane uint8

const (
	// Control carries what keeps a session or a room alive: replies, pings, membership. Its bound is small.
	Control Lane = iota
	// Interactive carries what somebody waits for.
	Interactive
	// Bulk carries what may take its time.
	Bulk
	// Lossy carries what the next event replaces.
	Lossy

	// Lanes is the number of lanes.
	Lanes = 4
)

var laneNames = [Lanes]string{"control", "interactive", "bulk", "lossy"}

// laneWeights are how many entries of each lane are served in one rotation of a Picker, the only place that has them.
var laneWeights = [Lanes]uint8{8, 4, 2, 1}

// String is the lane's name in configuration and metrics.
func (l Lane) String() string {
	if l < Lanes {
		return laneNames[l]
	}
	return "unknown"
}
