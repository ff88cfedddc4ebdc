package codec

import (
	"time"
	"unicode/utf8"
)

// Code is the kind of a refusal. Inside the engine only kinds are passed about;
// texts and HTTP numbers exist on the wire alone. The zero value is no code.
type Code uint8

const (
	CodeBadRequest Code = iota + 1
	CodeUnsupported
	CodeUnauthenticated
	CodeForbidden
	CodeNotFound
	CodeConflict
	CodeNotJoined
	CodeExpired
	CodeTooLarge
	CodeRateLimited
	CodeQuotaExceeded
	CodeBackpressured
	CodeUnavailable
	CodeDraining
	CodeDeadlineExceeded
	CodeInternal
	CodeUnknownType
)

var codes = [...]struct {
	text   string
	status int
	retry  bool // may be tried again: retry_after_ms is on the wire
}{
	0:                    {"", 500, false},
	CodeBadRequest:       {"bad_request", 400, false},
	CodeUnsupported:      {"unsupported", 400, false},
	CodeUnauthenticated:  {"unauthenticated", 401, false},
	CodeForbidden:        {"forbidden", 403, false},
	CodeNotFound:         {"not_found", 404, false},
	CodeConflict:         {"conflict", 409, false},
	CodeNotJoined:        {"not_joined", 409, false},
	CodeExpired:          {"expired", 410, false},
	CodeTooLarge:         {"too_large", 413, false},
	CodeRateLimited:      {"rate_limited", 429, true},
	CodeQuotaExceeded:    {"quota_exceeded", 429, true},
	CodeBackpressured:    {"backpressured", 503, true},
	CodeUnavailable:      {"unavailable", 503, true},
	CodeDraining:         {"draining", 503, true},
	CodeDeadlineExceeded: {"deadline_exceeded", 504, false},
	CodeInternal:         {"internal", 500, false},
	CodeUnknownType:      {"unknown_type", 400, false},
}

// String is the code's text on the wire, a bounded metric label too.
func (c Code) String() string { return codes[c].text }

// HTTPStatus is the status of an HTTP answer refused with c.
func (c Code) HTTPStatus() int { return codes[c].status }

// Retryable reports whether the same request may succeed later. Exactly these
// codes carry retry_after_ms.
func (c Code) Retryable() bool { return codes[c].retry }

func codeOf(text string) Code {
	for c := CodeBadRequest; c <= CodeUnknownType; c++ {
		if codes[c].text == text {
			return c
		}
	}
	return 0
}

// Scope says whose limit a refusal came from.
type Scope uint8

const (
	ScopeNone Scope = iota
	ScopeSession
	ScopeRoom
	ScopeTenant
	ScopeNode
)

var scopes = [...]string{"", "session", "room", "tenant", "node"}

// String is the scope's text on the wire; empty for ScopeNone.
func (s Scope) String() string { return scopes[s] }

// Error is a refusal as a client sees it.
type Error struct {
	Code       Code
	Message    string        // fixed text, never what a client sent
	RetryAfter time.Duration // counts only if Code.Retryable
	Scope      Scope
	Data       Data // a handler's own
}

// NewError makes a refusal that is final for its request.
func NewError(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Retry makes a refusal that may be tried again after a while.
func Retry(code Code, scope Scope, after time.Duration, message string) *Error {
	return &Error{Code: code, Message: message, RetryAfter: after, Scope: scope}
}

// Valid reports whether the protocol can say e: a code and a scope that it has, and
// text. Errors that code other than the engine's makes are to be asked.
func (e *Error) Valid() bool {
	return e.Code != 0 && int(e.Code) < len(codes) && int(e.Scope) < len(scopes) && utf8.ValidString(e.Message)
}

func (e *Error) Error() string { return "codec: " + e.Code.String() + ": " + e.Message }

// RetryAfterMS is what retry_after_ms says: whole milliseconds, rounded up, at
// least 1; 0 when the code is not to be retried.
func (e *Error) RetryAfterMS() int64 {
	if !e.Code.Retryable() {
		return 0
	}
	return max(1, millis(e.RetryAfter))
}
