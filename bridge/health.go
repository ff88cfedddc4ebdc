package bridge

import "time"

// State says how far a bridge reaches.
type State uint8

const (
	Connecting State = iota // not yet up for the first time
	Up                      // whole
	Degraded                // works with a restriction: Health.Why
	Down                    // this node is alone; or the bridge is closed
)

var stateNames = [...]string{Connecting: "connecting", Up: "up", Degraded: "degraded", Down: "down"}

// String is a bounded metric label.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Health is a bridge's state at one moment.
type Health struct {
	State State
	Why   string    // for operators, fixed text; empty when Up
	Since time.Time // when State began
}
