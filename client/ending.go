package client

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// ending is how a connection, or an attempt at one, came to its end.
type ending struct {
	code int    // close code, or 0 when there was none
	hint spread // when the server asks to come back
	soon bool   // the moment that it asked for is now
	err  error  // what to tell
}

// verdict is what a client does about an ending.
type verdict uint8

const (
	comeBack verdict = iota
	stayClosed
	renewToken
)

// Close codes with a meaning of their own; see verdict for the ranges.
const (
	codeUnauthenticated = 4401
	codeForbidden       = 4403
)

func (e ending) verdict() verdict {
	switch c := e.code; {
	case c == codeUnauthenticated:
		return renewToken
	case c == 1000, c == 1002, c == 1003, c == 1007, c == 1008, c == 1009, c == 1010, c/100 == 44:
		return stayClosed
	}
	return comeBack
}

// CloseError says that the server ended the connection, or refused it, with a
// close code of the protocol.
type CloseError struct {
	Code   int
	Reason string
}

func (e *CloseError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("client: closed with %d %s", e.Code, e.Reason))
}

// endedBy reads what ended a connection that was there.
func endedBy(err error) ending {
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed):
		code := int(closed.Code)
		return ending{code: code, hint: rangeOf(code, closed.Reason), err: &CloseError{code, closed.Reason}}
	case errors.Is(err, websocket.ErrMessageTooBig):
		// Coming back would bring the same frame again.
		return ending{code: int(websocket.StatusMessageTooBig), err: fmt.Errorf("client: a frame over the bound: %w", err)}
	}
	return ending{err: fmt.Errorf("client: connection lost: %w", err)}
}

// rangeOf reads the range "low-high" in ms that a leaving node gives as reason.
func rangeOf(code int, reason string) spread {
	low, high, ok := strings.Cut(reason, "-")
	if code != int(websocket.StatusGoingAway) && code != int(websocket.StatusServiceRestart) || !ok {
		return spread{}
	}
	from, err1 := strconv.ParseUint(low, 10, 31)
	to, err2 := strconv.ParseUint(high, 10, 31)
	if err1 != nil || err2 != nil || to < from {
		return spread{}
	}
	return spread{time.Duration(from) * time.Millisecond, time.Duration(to) * time.Millisecond}
}

// refusedBy reads an attempt that ended before the upgrade; response may be nil.
// What the server says about the request as such (400, 403) holds for the next one
// too; what stands between (404, 502) may pass.
func refusedBy(response *http.Response, err error) ending {
	e := ending{err: fmt.Errorf("client: dial: %w", err)}
	if response == nil {
		return e
	}
	switch response.StatusCode {
	case http.StatusUnauthorized:
		e.code = codeUnauthenticated
	case http.StatusForbidden:
		e.code = codeForbidden
	case http.StatusBadRequest:
		e.code = int(websocket.StatusPolicyViolation)
	}
	if s, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 20); err == nil {
		wait := time.Duration(s) * time.Second
		e.hint = spread{wait, wait + wait/2}
	}
	return e
}
