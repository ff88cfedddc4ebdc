package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// A member that does not want its own events is told where it stands once a second
// at most, however much it publishes, and up to the last.
func TestPositionsAreToldOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		c := join(t, e, "acme/ann", `{"room":"chat:1","echo":false}`)
		const events = 50
		told, offset := 0, uint64(0)
		hear := func(frames []frame) {
			for _, f := range frames {
				if f.t() == "position" {
					told, offset = told+1, f.offset()
				}
			}
		}
		for range events {
			_, before := c.ask(`{"t":"publish","room":"chat:1","event":"message","data":1}`)
			hear(before)
			time.Sleep(100 * time.Millisecond) // in the bubble
		}
		time.Sleep(2 * time.Second)
		_, before := c.ask(`{"t":"leave","room":"chat:2"}`)
		hear(before)
		if told < 4 || told > events/10+1 || offset != events {
			t.Errorf("told %d times, the last time %d", told, offset)
		}
	})
}
