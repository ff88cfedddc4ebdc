package transport

import (
	"net/http"
	"strconv"

	"github.com/yaza-dev/pulse/codec"
)

// Refuse answers an HTTP request with err, as {"err":{…}} with the status of its
// code, and with Retry-After where it may be tried again.
func Refuse(w http.ResponseWriter, err *codec.Error) {
	RefuseStatus(w, err, err.Code.HTTPStatus())
}

// RetryAfter says when a request that was refused with err may be tried again, if
// it may.
func RetryAfter(w http.ResponseWriter, err *codec.Error) {
	if ms := err.RetryAfterMS(); ms > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt((ms+999)/1000, 10))
	}
}

// RefuseStatus is Refuse with another status, for the refusals of HTTP itself
// (405, 426) that the protocol has no code for.
func RefuseStatus(w http.ResponseWriter, err *codec.Error, status int) {
	RetryAfter(w, err)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// A client that is gone cannot be told that it was refused.
	_, _ = w.Write(codec.AppendAnswer(nil, codec.JSON, nil, err))
}
