package codec

// MaxOffset is the largest offset, id or sequence number on the wire: the
// largest integer up to which every reader, doubles included, is exact.
const MaxOffset = 1<<53 - 1

// Position is a place in a room's history. An offset means nothing without its
// epoch, so the two travel together; offset 0 is before the first event.
type Position struct {
	Epoch  string // opaque, 1-16 bytes; empty only in the zero position
	Offset uint64 // at most MaxOffset
}

// IsZero reports whether there is no position at all.
func (p Position) IsZero() bool { return p.Epoch == "" && p.Offset == 0 }
