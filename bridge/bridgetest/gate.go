package bridgetest

import (
	"sync/atomic"
	"testing"
)

// gate opens when it was passed a number of times; passing once more shows in
// excess.
type gate struct {
	left   atomic.Int64
	opened chan struct{}
}

func newGate(n int) *gate {
	g := &gate{opened: make(chan struct{})}
	g.left.Store(int64(n))
	return g
}

func (g *gate) pass() {
	if g.left.Add(-1) == 0 {
		close(g.opened)
	}
}

func (g *gate) wait(t *testing.T) {
	t.Helper()
	receive(t, g.opened, "a callback")
	if n := g.left.Load(); n < 0 {
		t.Fatalf("%d callbacks too many", -n)
	}
}
