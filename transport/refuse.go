package transport

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Refuse answers an HTTP request with err, as {"err":{…}} with the status of its
// code, and with Retry-After where it may be tried again.
func Refuse(w http.ResponseWriter, err *codec.Error) {
	RefuseStatus(w, err, err.Code.HTTPStatus())
}

// RefuseStatus is Refuse with another status, for the refusals of HTTP itself
// (405, 426) that the protocol has no code for.
func RefuseStatus(w http.ResponseWriter, err *codec.Error, status int) {
	body := refusal{Code: err.Code.String(), Message: err.Message}
	if err.Code.Retryable() {
		body.RetryAfterMS = max(1, err.RetryAfter.Milliseconds())
		seconds := max(1, (err.RetryAfter+time.Second-1)/time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if err.Scope != codec.ScopeNone {
		body.Scope = err.Scope.String()
	}
	if !err.Data.IsZero() {
		body.Data = err.Data.In(codec.JSON)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The client may be gone: then there is nobody to tell.
	_ = json.NewEncoder(w).Encode(struct {
		Err refusal `json:"err"`
	}{body})
}

type refusal struct {
	Code         string          `json:"code"`
	Message      string          `json:"message"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"`
	Scope        string          `json:"scope,omitempty"`
	Data         json.RawMessage `json:"data,omitempty"`
}
