package bridge_test

import (
	"testing"

	"github.com/yaza-dev/pulse/bridge"
)

// States are metric labels: each its own, and nothing beyond.
func TestStateNames(t *testing.T) {
	for s, want := range map[bridge.State]string{
		bridge.Connecting: "connecting", bridge.Up: "up", bridge.Degraded: "degraded", bridge.Down: "down", 200: "unknown",
	} {
		if got := s.String(); got != want {
			t.Errorf("State(%d) is %q, want %q", s, got, want)
		}
	}
}
