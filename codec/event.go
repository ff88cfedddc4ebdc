package codec

// Origin says where an event comes from.
type Origin struct {
	EID           string // unique per event
	From, Session string // subject and session; empty when the server published
	TS            int64  // ms since 1970
	Secret        bool   // never compressed
	Trace         *Trace // nil: its way is not followed
}

// Trace names the span of a publish that is followed, so that other nodes can link to
// it. It is what W3C's Trace Context calls trace-id and parent-id, and is sampled.
type Trace struct {
	ID   [16]byte
	Span [8]byte
}

// Event is one event of a room, and the frame that carries it to every member.
// It is made by NewEvent or At and never changes afterwards.
type Event struct {
	Frame
	Origin
	Topic    Topic
	Name     string
	Data     Data     // absent is sent as null
	Position Position // zero: not buffered
}

// NewEvent makes an event that has no position (yet).
func NewEvent(topic Topic, name string, data Data, origin Origin) *Event {
	e := &Event{Topic: topic, Name: name, Data: data, Origin: origin}
	e.Frame.doc, e.Frame.secret = e, origin.Secret
	return e
}

// At is the same event at a position. Data is shared; bytes that were made
// before are not.
func (e *Event) At(p Position) *Event {
	at := NewEvent(e.Topic, e.Name, e.Data, e.Origin)
	at.Position = p
	return at
}

// eventOverhead is charged for each kept event besides its texts: the structs,
// one encoding's header, and what of its message Decode may leave pinned.
const eventOverhead = 256 + aliasSlack

// Size is what an event's history is charged for it, in bytes. Encoded frames
// are not in it: they belong to whoever keeps them.
func (e *Event) Size() int {
	return eventOverhead + e.Data.Len() + len(e.Topic.Tenant) + len(e.Topic.Room) + len(e.Name) +
		len(e.EID) + len(e.From) + len(e.Session) + len(e.Position.Epoch)
}
