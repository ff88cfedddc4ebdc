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

// A position that an event of another has told is not told again.
func TestPositionsThatAnEventToldAreNotToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		ann := join(t, e, "acme/ann", `{"room":"chat:1","echo":false}`)
		bob := join(t, e, "acme/bob", `{"room":"chat:1"}`)
		const publish = `{"t":"publish","room":"chat:1","event":"message","data":1}`
		ann.send(publish)
		if f := ann.until("position"); f.offset() != 1 {
			t.Fatal(f)
		}
		ann.ask(publish) // its position waits for a second to pass
		bob.ask(publish)
		if f := ann.until("event"); f.offset() != 3 {
			t.Fatal(f)
		}
		time.Sleep(2 * time.Second) // in the bubble
		ann.send(publish)
		if f := ann.next(); f.t() != "position" || f.offset() != 4 {
			t.Errorf("a position that is known is told: %v", f)
		}
	})
}
