package redis

import "testing"

// So many a second, ten seconds' worth at once; one that was there already costs nothing,
// and who has everything is forgotten.
func TestNewRoomsAreRationed(t *testing.T) {
	n := newNewRooms(func(tenant string) int { return map[string]int{"acme": 2, "globex": 0}[tenant] })
	takes := func(tenant string, seconds float64, want int) {
		t.Helper()
		got := 0
		for range 100 {
			if n.take(tenant, at(seconds)) {
				got++
			}
		}
		if got != want {
			t.Errorf("at %v s %s makes %d rooms, want %d", seconds, tenant, got, want)
		}
	}
	takes("acme", 0, 20)
	takes("globex", 0, 100)
	takes("acme", 0.4, 0)
	takes("acme", 2.5, 5)
	n.giveBack("acme")
	takes("acme", 2.5, 1)
	n.look(at(3))
	if len(n.left) != 1 {
		t.Errorf("%d are remembered", len(n.left))
	}
	n.look(at(13))
	if len(n.left) != 0 {
		t.Error("who has everything is remembered")
	}
	n.giveBack("acme") // of before
	takes("acme", 13, 20)
	if free := newNewRooms(nil); !free.take("acme", at(0)) || len(free.left) != 0 {
		t.Error("without a limit it limits")
	}
}
