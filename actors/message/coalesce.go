package message

import (
	"errors"
	"hash/maphash"
	"strings"

	"github.com/yaza-dev/pulse/codec"
)

const byField = "data."

// CheckCoalesceBy says what is wrong with a CoalesceBy.
func CheckCoalesceBy(by string) error {
	if field, ok := strings.CutPrefix(by, byField); ok && field != "" {
		return nil
	}
	switch by {
	case "session", "from", "event":
		return nil
	}
	return errors.New(`coalesce_by is one of "session", "from", "event", "data.FIELD"`)
}

// Coalescer gives coalescing keys. Its seed keeps clients from choosing events
// whose keys collide. It is immutable.
type Coalescer struct{ seed maphash.Seed }

// NewCoalescer makes a Coalescer with a seed of its own.
func NewCoalescer() *Coalescer { return &Coalescer{seed: maphash.MakeSeed()} }

// Key is what two events must have in common for the newer one to replace the
// older; 0: the event replaces nothing.
func (c *Coalescer) Key(p *EventPolicy, event, subject, session string, data codec.Data) uint64 {
	var by string
	switch p.CoalesceBy {
	case "":
		return 0
	case "session":
		by = session
	case "from":
		by = subject
	case "event":
	default:
		by, _ = data.Field(p.CoalesceBy[len(byField):])
	}
	var h maphash.Hash
	h.SetSeed(c.seed)
	h.WriteString(event)
	h.WriteByte(0)
	h.WriteString(by)
	return h.Sum64() | 1
}
