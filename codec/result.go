package codec

import "time"

// Result is what a successful request is answered with: *JoinResult,
// *LeaveResult, *PublishResult, *CommandResult, *HistoryResult, *PresenceResult
// or *TokenResult.
type Result interface {
	// encode appends the object that "ok" holds.
	encode(dst []byte, c Codec) []byte
}

// JoinResult is the first thing that a membership hears.
type JoinResult struct {
	Room      string
	Position  Position // where delivery starts
	Recovered bool
	Reset     ResetReason
	After     time.Duration // with Reset; 0: not sent
	PE        string        // presence epoch; empty: nothing about presence is sent
	Seq       uint64
	Members   []Member // nil: the list does not fit, the count stands alone
	Count     int
	Data      Data // snapshot at Position, optional
}

// LeaveResult confirms that nothing of the room will follow.
type LeaveResult struct{ Room string }

// Outcome is what became of an accepted publish.
type Outcome uint8

const (
	Accepted  Outcome = iota + 1 // the engine took it under the declared policy
	Coalesced                    // it replaced one of its key that still waited
)

var outcomes = [...]string{"", "accepted", "coalesced"}

func (o Outcome) String() string { return outcomes[o] }

// PublishResult says what became of an event.
type PublishResult struct {
	Outcome   Outcome
	EID       string
	Position  Position // zero: not buffered
	Duplicate bool
}

// CommandResult is a handler's answer; absent data is sent as null.
type CommandResult struct {
	Data      Data
	Duplicate bool // the result of an earlier command with the same dedup key
}

// HistoryResult is one page of buffered events.
type HistoryResult struct {
	Room     string
	Position Position // where to go on
	Events   []*Event
	More     bool
	Reset    ResetReason
}

// PresenceResult is one page of members.
type PresenceResult struct {
	Room, PE string
	Seq      uint64
	Count    int
	Members  []Member
	After    string // subject to go on after; empty: no more
}

// TokenResult confirms renewed credentials.
type TokenResult struct {
	Exp    int64 // ms since 1970
	Resume string
}
