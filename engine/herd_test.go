package engine

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// Of many members of a tenant that are reset at once those beyond the first hundred are
// told when their turn is to fetch what they need; another tenant's do not wait for them.
func TestResetHerdsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) { c.Limits.SessionMaxRooms = 1000 })
		c := dial(t, e, codec.JSON, memory.Options{})
		c.hello("acme/alice")
		turn := func(c *client, i int) string {
			t.Helper()
			r, _ := c.ask(fmt.Sprintf(`{"t":"join","room":"chat:%d","epoch":"gone","offset":7}`, i))
			if r.at("ok.reset") != "epoch" {
				t.Fatalf("join %d: %v", i, r)
			}
			return fmt.Sprint(r.at("ok.after_ms"))
		}
		for i := range 200 { // time stands still meanwhile
			want := "<nil>"
			if i >= 100 {
				want = fmt.Sprint(i - 99)
			}
			if got := turn(c, i); got != want {
				t.Fatalf("reset %d waits %s ms, want %s", i+1, got, want)
			}
		}
		other := dial(t, e, codec.JSON, memory.Options{})
		other.hello("globex/bob")
		if got := turn(other, 1); got != "<nil>" {
			t.Errorf("another tenant's waits %s ms", got)
		}
	})
}
