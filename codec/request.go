package codec

import "time"

// Request is what a client's message asks for: *Hello, *Join, *Leave, *Publish,
// *Command, *Ack, *History, *PresenceQuery, *Token, *Ping, *Pong, or *Fault for
// a request that is refused before anyone looks at it. All names and numbers in
// it keep the grammar.
type Request interface {
	// RequestID is the id that the one reply must carry; 0 when there is none.
	RequestID() uint64
}

// Hello opens or resumes a session. It has no faults: a hello with a field of
// the wrong type is malformed.
type Hello struct {
	Token, Client, Resume string
	Accept                []string
	Rooms                 []HelloRoom
}

// HelloRoom is one join in a hello. With Err the room is refused by itself and
// only Room counts, as the client gave it.
type HelloRoom struct {
	Join
	Err *Error
}

// Join asks for membership; with a position it resumes from there.
type Join struct {
	ID          uint64
	Room        string
	Position    Position
	HasPosition bool
	Presence    bool // wants members and presence frames
	NoEcho      bool // does not want its own session's events
	Data        Data // presence data, optional
}

// Leave ends a membership.
type Leave struct {
	ID   uint64
	Room string
}

// Publish offers an event. Without an ID nobody waits for a reply.
type Publish struct {
	ID          uint64
	Room, Event string
	Data        Data   // always there, null included
	DedupKey    string // 1-256 bytes; empty: none
	TTL         time.Duration
	HasTTL      bool
}

// Command is a request to a room's handler, or without a room to the tenant's.
type Command struct {
	ID          uint64
	Room, Name  string
	Data        Data // optional
	Deadline    time.Duration
	HasDeadline bool
	DedupKey    string
}

// Ack says that everything up to the position is processed.
type Ack struct {
	Room     string
	Position Position
}

// History asks for buffered events after the position, or before it in reverse.
type History struct {
	ID          uint64
	Room        string
	Position    Position
	HasPosition bool
	Limit       int // 1-1000
	Reverse     bool
}

// PresenceQuery asks for a page of members in order of subject.
type PresenceQuery struct {
	ID    uint64
	Room  string
	Limit int    // 1-1000
	After string // subject; empty: from the first
}

// Token renews the credentials.
type Token struct {
	ID    uint64
	Token string
}

// Ping is answered by a pong with its id. As a document it is the server's own
// and has no id.
type Ping struct{ ID uint64 }

// Pong answers a ping. As a request its id means nothing and is 0.
type Pong struct{ ID uint64 }

// Fault is a request that was well formed and is refused: a field of the wrong
// type, a name outside the grammar, a type that nobody knows.
//
// With an ID it is answered by a reply, without one by an error frame, except
// CodeUnknownType, which then is answered by nothing and only counted.
type Fault struct {
	ID   uint64
	Type string // the frame's t if it is a known one
	Room string // if it is known and within the grammar
	Err  *Error
}

func (*Hello) RequestID() uint64           { return 0 }
func (r *Join) RequestID() uint64          { return r.ID }
func (r *Leave) RequestID() uint64         { return r.ID }
func (r *Publish) RequestID() uint64       { return r.ID }
func (r *Command) RequestID() uint64       { return r.ID }
func (*Ack) RequestID() uint64             { return 0 }
func (r *History) RequestID() uint64       { return r.ID }
func (r *PresenceQuery) RequestID() uint64 { return r.ID }
func (r *Token) RequestID() uint64         { return r.ID }
func (r *Ping) RequestID() uint64          { return r.ID }
func (r *Pong) RequestID() uint64          { return r.ID }
func (r *Fault) RequestID() uint64         { return r.ID }
