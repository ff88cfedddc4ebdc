package codec

import "time"

const aliasSlack = 512

type writer struct {
	codec Codec
	b     []byte
}

func (d *Welcome) append(w *writer)       {}
func (d *Reply) append(w *writer)         {}
func (d *Event) append(w *writer)         {}
func (d *PresenceFrame) append(w *writer) {}
func (d *PositionFrame) append(w *writer) {}
func (d *Reset) append(w *writer)         {}
func (d *Left) append(w *writer)          {}
func (d *Status) append(w *writer)        {}
func (d *Expiring) append(w *writer)      {}
func (d *Drain) append(w *writer)         {}
func (d *Ping) append(w *writer)          {}
func (d *Pong) append(w *writer)          {}
func (d *ErrorFrame) append(w *writer)    {}

func (r *JoinResult) appendResult(w *writer)     {}
func (r *LeaveResult) appendResult(w *writer)    {}
func (r *PublishResult) appendResult(w *writer)  {}
func (r *CommandResult) appendResult(w *writer)  {}
func (r *HistoryResult) appendResult(w *writer)  {}
func (r *PresenceResult) appendResult(w *writer) {}
func (r *TokenResult) appendResult(w *writer)    {}

func decodeRequest(c Codec, message []byte) (Request, error) { return nil, ErrMalformed }

// DecodeDocument decodes one server frame, for clients and tests. An error wraps
// ErrMalformed, or is ErrUnknownType.
func DecodeDocument(c Codec, message []byte) (Document, error) { return nil, ErrUnknownType }

// AppendAnswer writes {"ok":…} or {"err":…}, the body of an HTTP answer.
func AppendAnswer(dst []byte, c Codec, ok Result, err *Error) []byte { return dst }

// MakeData validates one value. raw is kept, not copied.
func MakeData(c Codec, raw []byte) (Data, error) { return Data{c, raw}, nil }

// NewData makes data from a Go value.
func NewData(v any) (Data, error) { return Data{}, nil }

// In returns the value in codec c: unchanged in its own, transcoded in the other.
func (d Data) In(c Codec) []byte { return d.raw }

// Unmarshal decodes the value into v, integers exact.
func (d Data) Unmarshal(v any) error { return nil }

// Field returns the canonical text of a top-level scalar field; equal values in
// both codecs give equal texts.
func (d Data) Field(name string) (key string, ok bool) { return "", false }

func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func indexText[T any](table []T, text func(int) string, want string) int {
	for i := 1; i < len(table); i++ {
		if text(i) == want {
			return i
		}
	}
	return 0
}
