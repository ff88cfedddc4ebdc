package codec

import "time"

// Document is one frame from the server: *Welcome, *Reply, *Event,
// *PresenceFrame, *PositionFrame, *Reset, *Left, *Status, *Expiring, *Drain,
// *Ping, *Pong or *ErrorFrame.
type Document interface {
	// encode appends the frame; it cannot fail.
	encode(dst []byte, c Codec) []byte
}

// Welcome answers a hello.
type Welcome struct {
	Session         string
	Resume          string // empty: not sent (a stream that cannot be resumed by token)
	ResumeTTL       time.Duration
	Resumed         bool
	Node            string
	Tenant, Subject string
	Transport       string // websocket, sse, webtransport
	Codec           Codec
	Compression     bool
	Accept          []string
	Ping, Pong      time.Duration
	MaxMessageBytes int
	MaxFrameBytes   int
	Now, Exp        int64 // ms since 1970
	Live            bool
	Rooms           []WelcomeRoom // one for each that was asked for, in order
}

// WelcomeRoom is the result of one join in a hello: OK, or else Err.
type WelcomeRoom struct {
	Room string // as given
	OK   *JoinResult
	Err  *Error
}

// Reply answers the request ID: with Err, or else with OK.
type Reply struct {
	ID  uint64
	OK  Result
	Err *Error
}

// Member is one subject present in a room.
type Member struct {
	Subject  string
	Sessions int
	Data     Data // optional
}

// PresenceFrame tells a change of members. It says exactly one thing: with Full
// the whole list, else the changes if there are any, else the count alone.
type PresenceFrame struct {
	Room         string
	PE           string // presence epoch
	Seq, Prev    uint64
	Join, Update []Member
	Leave        []string
	Full         bool
	Members      []Member
	Count        int
}

// PositionFrame tells where a membership stands after events that were withheld.
type PositionFrame struct {
	Room     string
	Position Position
}

// Reset says that what the client holds is no longer a prefix of the history.
type Reset struct {
	Room     string
	Reason   ResetReason
	Position Position
	Data     Data          // snapshot at Position, optional
	After    time.Duration // wait before fetching state elsewhere; 0: not sent
}

// Left ends a membership from the server's side.
type Left struct {
	Room   string
	Reason LeftReason
}

// Status tells whether events from other nodes come in time.
type Status struct {
	Live   bool
	Reason string // optional
}

// Expiring warns that the credentials end.
type Expiring struct{ In time.Duration }

// Drain asks the client to reconnect at a moment in the range.
type Drain struct {
	ReconnectMin, ReconnectMax time.Duration
	Deadline                   time.Duration
	Reason                     string
}

// ErrorFrame refuses a frame that had no id.
type ErrorFrame struct {
	Err  *Error
	Re   string // t of the frame, optional
	Room string // optional
}

// ResetReason is why a position does not hold any more. The zero value is no
// reset.
type ResetReason uint8

const (
	ResetNone     ResetReason = iota
	ResetExpired              // it asked for what is gone
	ResetEpoch                // the history is another one
	ResetOverflow             // it fell behind further than the buffer reaches
)

var resetReasons = [...]string{"", "expired", "epoch", "overflow"}

func (r ResetReason) String() string { return resetReasons[r] }

// LeftReason is why the server ended a membership.
type LeftReason uint8

const (
	LeftKicked LeftReason = iota + 1
	LeftForbidden
	LeftStopped
)

var leftReasons = [...]string{"", "kicked", "forbidden", "stopped"}

func (r LeftReason) String() string { return leftReasons[r] }
